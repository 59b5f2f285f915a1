"""The network of large pools: cards of a type, interfaces of a launch, subnets, security and placement groups."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from gpukube_sandbox import daemon
from gpukube_sandbox.eks.instances import TYPES
from sandbox_tests.eks.aws import ACCOUNT, NAME, REGION, Aws, Json, nodes
from sandbox_tests.waiting import wait_for

if TYPE_CHECKING:
    import httpx

    from gpukube_sandbox.daemon import SandboxInfo

PLACE = {"account": ACCOUNT, "region": REGION}
OWN_TABLE = {"g4ad.xlarge", "p3.2xlarge", "p3.8xlarge", "p3.16xlarge", "p6e-gb200.36xlarge"}
"""Types that moto's copy of EC2's answers does not have."""


def efa(cards: int, *, first: int = 1) -> list[Json]:
    """Interfaces as EC2's guide lays them out: one for IP, then one of EFA alone on each card."""
    primary = {"NetworkCardIndex": 0, "DeviceIndex": 0, "InterfaceType": "interface", "DeleteOnTermination": True}
    on_first = [{"NetworkCardIndex": 0, "DeviceIndex": 1, "InterfaceType": "efa-only", "DeleteOnTermination": True}]
    others = [{**on_first[0], "NetworkCardIndex": card, "DeviceIndex": 0} for card in range(1, cards)]
    return [primary, *(on_first if first else []), *others]


def private(aws: Aws, zone: str) -> str:
    """The private subnet of a zone."""
    filters = [
        {"Name": "availability-zone", "Values": [f"{REGION}{zone}"]},
        {"Name": "map-public-ip-on-launch", "Values": ["false"]},
    ]
    (found,) = aws.client("ec2").describe_subnets(Filters=filters)["Subnets"]
    return str(found["SubnetId"])


def p5(aws: Aws, **data: Any) -> Json:  # noqa: ANN401 - data of a template
    """What a group of H100 machines is made of."""
    template = aws.template(**{"NetworkInterfaces": efa(32), **data})
    return {"instanceTypes": ["p5.48xlarge"], "subnets": [private(aws, "a")], "launchTemplate": template}


# what types have


def described(aws: Aws) -> dict[str, Json]:
    """All instance types, by name."""
    pages = aws.client("ec2").get_paginator("describe_instance_types").paginate()
    return {entry["InstanceType"]: entry for page in pages for entry in page["InstanceTypes"]}


def test_cards_and_disks_when_compared_with_ec2s_own_answers_then_the_same(aws: Aws) -> None:
    moto = pytest.importorskip("moto")
    path = Path(moto.__file__).parent / "ec2" / "resources" / "instance_types.json.gz"
    theirs = json.loads(gzip.decompress(path.read_bytes()))

    def facts(entry: Json) -> Json:
        network, storage = entry["NetworkInfo"], entry.get("InstanceStorageInfo", {})
        cards = [
            (card["NetworkCardIndex"], card["MaximumNetworkInterfaces"], card["InterfaceTypes"])
            for card in network["NetworkCards"]
        ]
        names = ("EfaSupported", "EfaInfo", "MaximumNetworkCards", "MaximumNetworkInterfaces")
        placement = set(entry["PlacementGroupInfo"]["SupportedStrategies"])
        disks = [storage.get("Disks"), storage.get("TotalSizeInGB"), storage.get("NvmeSupport")]
        return {"cards": cards, "disks": disks, "placement": placement, **{name: network.get(name) for name in names}}

    ours = described(aws)
    assert {name for name in TYPES if name not in theirs} == OWN_TABLE
    for name in TYPES.keys() - OWN_TABLE:
        assert facts(ours[name]) == facts(theirs[name]), name


def test_cards_when_of_an_ultraserver_then_the_first_is_for_ip_and_odd_ones_have_one_interface(aws: Aws) -> None:
    cards = described(aws)["p6e-gb200.36xlarge"]["NetworkInfo"]["NetworkCards"]
    assert [card["MaximumNetworkInterfaces"] for card in cards] == [2, 1] * 8 + [2]
    assert [("efa-only" in card["InterfaceTypes"]) for card in cards] == [False, *[True] * 16]


# interfaces


LAYOUTS: dict[str, tuple[str, str, list[Json]]] = {
    "p4d": ("p4d.24xlarge", "a", efa(4)),
    "p5": ("p5.48xlarge", "a", efa(32)),
    "p6-b300": ("p6-b300.48xlarge", "c", efa(17, first=0)),
    "g6e of one card": ("g6e.8xlarge", "a", efa(1)),
    "the old layout": (
        "p4d.24xlarge",
        "a",
        [{"NetworkCardIndex": at, "DeviceIndex": min(at, 1), "InterfaceType": "efa"} for at in range(4)],
    ),
}


@pytest.mark.parametrize("case", LAYOUTS)
def test_group_when_its_interfaces_fit_the_type_then_its_nodes_join(aws: Aws, case: str) -> None:
    kind, zone, interfaces = LAYOUTS[case]
    template = aws.template(NetworkInterfaces=interfaces)
    group = aws.create("gpu", instanceTypes=[kind], subnets=[private(aws, zone)], launchTemplate=template)
    assert (group["status"], group["health"]["issues"]) == ("ACTIVE", [])
    version = aws.client("ec2").describe_launch_template_versions(LaunchTemplateId=template["id"], Versions=["1"])
    assert version["LaunchTemplateVersions"][0]["LaunchTemplateData"]["NetworkInterfaces"] == interfaces


def test_node_when_the_plugin_of_efa_runs_then_it_has_as_many_as_its_template(aws: Aws, kube: httpx.Client) -> None:
    aws.create("gpu", **p5(aws))
    labels, image = (
        {"name": "efa"},
        "602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/aws-efa-k8s-device-plugin:v0.5.20",
    )
    pods = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "efa", "image": image}]}}
    body = {"metadata": {"name": "efa"}, "spec": {"selector": {"matchLabels": labels}, "template": pods}}
    kube.post("/apis/apps/v1/namespaces/kube-system/daemonsets", json=body).raise_for_status()
    wait_for(lambda: nodes(kube, "gpu")[0]["status"]["allocatable"].get("vpc.amazonaws.com/efa") == "32")
    assert "vpc.amazonaws.com/efa" not in nodes(kube, "system")[0]["status"]["allocatable"]


def test_version_when_its_interfaces_do_not_fit_the_type_then_refused(aws: Aws) -> None:
    aws.create("gpu", **p5(aws))
    ec2 = aws.client("ec2")
    ec2.create_launch_template_version(
        LaunchTemplateName="gpukube-a", LaunchTemplateData={"NetworkInterfaces": efa(33)}, SourceVersion="1"
    )
    with pytest.raises(aws.eks.exceptions.InvalidRequestException, match="network card index 32"):
        aws.eks.update_nodegroup_version(
            clusterName=NAME, nodegroupName="gpu", launchTemplate={"name": "gpukube-a", "version": "2"}
        )


def test_group_when_a_type_of_several_lacks_a_card_then_refused(aws: Aws) -> None:
    template = aws.template(NetworkInterfaces=efa(2))
    with pytest.raises(aws.eks.exceptions.InvalidRequestException, match=r"index 1 is not valid for g6e\.12xlarge"):
        aws.ask("gpu", instanceTypes=["g6e.24xlarge", "g6e.12xlarge"], launchTemplate=template)


def test_group_when_of_efa_in_a_public_subnet_then_its_nodes_never_join(aws: Aws) -> None:
    filters = [{"Name": "map-public-ip-on-launch", "Values": ["true"]}]
    public = aws.client("ec2").describe_subnets(Filters=[*filters, {"Name": "availability-zone", "Values": ["*a"]}])
    group = aws.create("gpu", **{**p5(aws), "subnets": [public["Subnets"][0]["SubnetId"]]})
    assert group["status"] == "CREATE_FAILED"
    assert group["health"]["issues"][0]["code"] == "NodeCreationFailure"


# several types


def test_group_when_it_has_several_types_then_the_first_that_its_zones_offer(aws: Aws, kube: httpx.Client) -> None:
    types = ["p5e.48xlarge", "p5en.48xlarge", "p5.48xlarge"]
    group = aws.create("gpu", instanceTypes=types, subnets=[private(aws, "a")], capacityType="SPOT")
    assert group["instanceTypes"] == types
    assert {node["metadata"]["labels"]["node.kubernetes.io/instance-type"] for node in nodes(kube, "gpu")} == {
        "p5.48xlarge"
    }


@pytest.mark.parametrize(("market", "expected"), [("ON_DEMAND", "g6e.2xlarge"), ("SPOT", "g5.2xlarge")])
def test_group_when_all_of_its_types_are_offered_then_the_first_on_demand_and_the_cheapest_on_spot(
    aws: Aws, kube: httpx.Client, market: str, expected: str
) -> None:
    types = ["g6e.2xlarge", "g6.12xlarge", "g5.2xlarge"]
    aws.create("gpu", instanceTypes=types, capacityType=market)
    assert [node["metadata"]["labels"]["node.kubernetes.io/instance-type"] for node in nodes(kube, "gpu")] == [expected]


# volumes


def test_group_when_its_volume_key_is_declared_then_active_else_its_launches_fail(aws: Aws) -> None:
    disk = {"VolumeSize": 100, "VolumeType": "gp3", "Encrypted": True, "KmsKeyId": "alias/gpu"}
    template = aws.template(BlockDeviceMappings=[{"DeviceName": "/dev/xvda", "Ebs": disk}])
    failed = aws.create("gpu", launchTemplate=template)
    assert failed["status"] == "CREATE_FAILED"
    assert "Client.InvalidKMSKey.InvalidState" in failed["health"]["issues"][0]["message"]
    daemon.declare(aws.info, "eks", **PLACE, kmsKeys=["alias/gpu"])
    assert aws.create("other", launchTemplate=template)["status"] == "ACTIVE"


# subnets


def test_route_tables_when_of_a_subnet_then_they_tell_a_private_one_from_a_public_one(aws: Aws) -> None:
    ec2 = aws.client("ec2")

    def gateway(subnet: str) -> Json:
        tables = ec2.describe_route_tables(Filters=[{"Name": "association.subnet-id", "Values": [subnet]}])
        (table,) = tables["RouteTables"]
        (route,) = [route for route in table["Routes"] if route["DestinationCidrBlock"] == "0.0.0.0/0"]
        assert route["State"] == "active"
        return dict(route)

    for subnet in ec2.describe_subnets()["Subnets"]:
        found = gateway(subnet["SubnetId"])
        expected = "GatewayId" if subnet["MapPublicIpOnLaunch"] else "NatGatewayId"
        assert {"GatewayId", "NatGatewayId"} & found.keys() == {expected}
    (main,) = ec2.describe_route_tables(Filters=[{"Name": "association.main", "Values": ["true"]}])["RouteTables"]
    assert [route["GatewayId"] for route in main["Routes"]] == ["local"]
    with pytest.raises(ClientError, match="InvalidRouteTableID"):
        ec2.describe_route_tables(RouteTableIds=["rtb-1"])


# security groups


def allows_itself(ec2: Any, group: str) -> tuple[bool, bool]:  # noqa: ANN401 - a client of boto3
    """Whether a security group allows everything in from and out to itself, by its rules and by its permissions."""
    rules = ec2.describe_security_group_rules(Filters=[{"Name": "group-id", "Values": [group]}])["SecurityGroupRules"]
    by_rule = {
        rule["IsEgress"]
        for rule in rules
        if rule["IpProtocol"] == "-1" and rule.get("ReferencedGroupInfo", {}).get("GroupId") == group
    }
    (shown,) = ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"]
    permissions = {False: shown["IpPermissions"], True: shown["IpPermissionsEgress"]}
    by_permission = {
        egress
        for egress, entries in permissions.items()
        if any(pair["GroupId"] == group for entry in entries for pair in entry["UserIdGroupPairs"])
    }
    assert by_rule == by_permission
    assert any(rule.get("CidrIpv4") == "0.0.0.0/0" and rule["IsEgress"] for rule in rules)
    return False in by_rule, True in by_rule


@pytest.mark.parametrize(("version", "out"), [("1.32.5", False), ("1.33.5", True)])
def test_security_group_when_of_a_cluster_then_it_lets_efa_out_from_kubernetes_1_33(
    sandbox: SandboxInfo, version: str, *, out: bool
) -> None:
    daemon.add_eks_cluster(sandbox, ACCOUNT, REGION, NAME, kubernetes_version=version)
    aws = Aws(sandbox)
    group = aws.eks.describe_cluster(name=NAME)["cluster"]["resourcesVpcConfig"]["clusterSecurityGroupId"]
    assert allows_itself(aws.client("ec2"), group) == (True, out)


def test_security_group_when_declared_then_for_efa_only_if_said_so(aws: Aws) -> None:
    daemon.declare(aws.info, "eks", **PLACE, securityGroups=["sg-1"], efaSecurityGroups=["sg-2"])
    assert allows_itself(aws.client("ec2"), "sg-1") == (False, False)
    assert allows_itself(aws.client("ec2"), "sg-2") == (True, True)
    interfaces = [{**entry, "Groups": ["sg-2"]} for entry in efa(32)]
    assert aws.create("gpu", **p5(aws, NetworkInterfaces=interfaces))["status"] == "ACTIVE"


# placement groups


def test_placement_group_when_made_then_described_by_name_id_and_filter_and_deleted(aws: Aws) -> None:
    ec2 = aws.client("ec2")
    tags = [{"ResourceType": "placement-group", "Tags": [{"Key": "owner", "Value": "ml"}]}]
    made = ec2.create_placement_group(GroupName="near", Strategy="cluster", TagSpecifications=tags)["PlacementGroup"]
    ec2.create_placement_group(GroupName="apart", Strategy="spread")
    arn = f"arn:aws:ec2:{REGION}:{ACCOUNT}:placement-group/near"
    assert (made["Strategy"], made["State"], made["GroupArn"]) == ("cluster", "available", arn)
    for query in (
        {"GroupNames": ["near"]},
        {"GroupIds": [made["GroupId"]]},
        {"Filters": [{"Name": "strategy", "Values": ["cluster"]}]},
        {"Filters": [{"Name": "tag:owner", "Values": ["ml"]}]},
    ):
        assert ec2.describe_placement_groups(**query)["PlacementGroups"] == [made]
    ec2.delete_placement_group(GroupName="near")
    assert [one["GroupName"] for one in ec2.describe_placement_groups()["PlacementGroups"]] == ["apart"]


def test_placement_group_when_it_has_machines_then_in_one_zone_and_not_to_be_deleted(
    aws: Aws, kube: httpx.Client
) -> None:
    ec2 = aws.client("ec2")
    ec2.create_placement_group(GroupName="near", Strategy="cluster")
    template = aws.template(Placement={"GroupName": "near"})
    three = {"minSize": 0, "maxSize": 3, "desiredSize": 3}
    aws.create("gpu", launchTemplate=template, scalingConfig=three)
    zones = {node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in nodes(kube, "gpu")}
    assert zones == {"us-east-1a"}
    placed = ec2.describe_instances(Filters=[{"Name": "tag:eks:nodegroup-name", "Values": ["gpu"]}])["Reservations"]
    assert [one["Placement"]["GroupName"] for entry in placed for one in entry["Instances"]] == ["near"] * 3
    with pytest.raises(ClientError, match="is in use and may not be deleted"):
        ec2.delete_placement_group(GroupName="near")
    wrong = "Instances in the near Placement Group must be launched in the us-east-1a Availability Zone"
    with pytest.raises(aws.eks.exceptions.InvalidRequestException, match=wrong):
        aws.ask("other", launchTemplate=template, subnets=[private(aws, "b")])
    aws.delete("gpu")
    wait_for(lambda: not nodes(kube, "gpu"))
    aws.create("none", launchTemplate=template, scalingConfig={**three, "desiredSize": 0})
    ec2.delete_placement_group(GroupName="near")
    aws.update("none", scalingConfig={"desiredSize": 1})
    wait_for(lambda: aws.group("none")["status"] == "DEGRADED")
    assert "InvalidPlacementGroup.Unknown" in aws.group("none")["health"]["issues"][0]["message"]


def test_placement_group_when_beside_a_reservation_then_capacity_only_if_the_reservation_has_it(aws: Aws) -> None:
    one = {"type": "p5.48xlarge", "zone": "a", "count": 2}
    reservations = [{**one, "id": "cr-1"}, {**one, "id": "cr-2", "placementGroup": "near"}]
    daemon.declare(aws.info, "eks", **PLACE, placementGroups=[{"name": "near"}], reservations=reservations)

    def made(reservation: str) -> Json:
        target = {"CapacityReservationTarget": {"CapacityReservationId": reservation}}
        data: dict[str, Any] = {"Placement": {"GroupName": "near"}, "CapacityReservationSpecification": target}
        template = aws.template(reservation, NetworkInterfaces=efa(32), **data)
        types, subnets = ["p5.48xlarge"], [private(aws, "a")]
        return aws.create(reservation, instanceTypes=types, subnets=subnets, launchTemplate=template)

    ec2 = aws.client("ec2")
    shown = {one["CapacityReservationId"]: one for one in ec2.describe_capacity_reservations()["CapacityReservations"]}
    assert shown["cr-2"]["PlacementGroupArn"] == f"arn:aws:ec2:{REGION}:{ACCOUNT}:placement-group/near"
    assert "PlacementGroupArn" not in shown["cr-1"]
    failed = made("cr-1")
    assert failed["status"] == "CREATE_FAILED"
    assert "InsufficientInstanceCapacity" in failed["health"]["issues"][0]["message"]
    assert made("cr-2")["status"] == "ACTIVE"
