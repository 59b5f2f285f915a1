"""EFA interfaces, security groups, and placement groups: in a launch template, and against what the account has."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pytest

from gpukube.core.diff import diff_fields
from gpukube.core.fields import HIGH_SPEED, PLACEMENT
from gpukube.core.values import Capacity, Operation, Reservation, Settings
from gpukube.endpoint import Endpoint
from gpukube.errors import CloudError, Conflict, SpecError
from gpukube_eks import EksProvider
from gpukube_eks.facts.fabric import FABRICS, efa_interfaces
from gpukube_eks.live.client import EksCloud
from gpukube_eks.pool.connectivity import require_private
from gpukube_eks.pool.network import SECURITY_GROUPS, changed_network, read_network
from gpukube_eks.pool.observe import observe_group
from gpukube_eks.pool.placement_groups import changed_placement, read_placement
from gpukube_eks.pool.translate import template_data
from tests.unit.gpukube_eks.fakes import FakeAws, refusal
from tests.unit.gpukube_eks.samples import CLUSTER, desired_of, eks_target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Desired, Observed, Target

Json = dict[str, object]
OWN, MINE, OTHER = "sg-0c1a51e500000000", "sg-0123456789abcdef0", "sg-0fedcba9876543210"
BLOCK = Capacity("reserved", reservation=Reservation("capacityBlock", "cr-0123456789abcdef0"))
ROLE = "arn:aws:iam::111122223333:role/nodes"
NAME = "gpukube/train/a100mig"


def interfaces(data: Mapping[str, object]) -> list[Json]:
    return cast("list[Json]", data["NetworkInterfaces"])


# In the launch template


@pytest.mark.parametrize(
    "machine", [name for name in FABRICS if name[:3] != "g7." and efa_interfaces(eks_target(name).machine)]
)
def test_interfaces_when_new_are_the_machines_with_what_ec2_wants_of_each(machine: str) -> None:
    target = eks_target(machine, high_speed=True, capacity=BLOCK, native={"securityGroups": [MINE]})
    made = interfaces(template_data(desired_of(target)))

    assert [(one["NetworkCardIndex"], one["DeviceIndex"], one["InterfaceType"]) for one in made] == [
        (one.card, one.device, one.kind) for one in efa_interfaces(target.machine)
    ]
    assert all(one["DeleteOnTermination"] is True and one["Groups"] == [MINE] for one in made)
    assert not {"SubnetId", "AssociatePublicIpAddress"} & {key for one in made for key in one}
    assert "SecurityGroupIds" not in template_data(desired_of(target))


def test_groups_when_there_are_no_interfaces_are_the_templates() -> None:
    data = template_data(desired_of(eks_target(native={"securityGroups": [OTHER, MINE]})))

    assert data["SecurityGroupIds"] == [OTHER, MINE]
    assert "NetworkInterfaces" not in data


EFA: Json = {"NetworkInterfaces": [{"InterfaceType": "efa", "Groups": [OWN], "Extra": 1}]}
PLAIN: Json = {"NetworkInterfaces": [{"DeviceIndex": 0, "Groups": [OWN], "AssociatePublicIpAddress": False}]}
NEW_EFA: Json = {"NetworkInterfaces": [{"InterfaceType": "efa-only", "Groups": [OWN, MINE]}]}


@pytest.mark.parametrize(
    ("new", "live", "declared", "changed"),
    [
        (NEW_EFA, {}, True, NEW_EFA),
        (NEW_EFA, {"SecurityGroupIds": [OTHER]}, True, {**NEW_EFA, "SecurityGroupIds": None}),
        (
            NEW_EFA,
            {"SecurityGroupIds": [OTHER]},
            False,
            {
                "NetworkInterfaces": [{"InterfaceType": "efa-only", "Groups": [OWN, MINE, OTHER]}],
                "SecurityGroupIds": None,
            },
        ),
        (NEW_EFA, PLAIN, True, NEW_EFA),
        (NEW_EFA, EFA, True, {"NetworkInterfaces": [{"InterfaceType": "efa", "Groups": [OWN, MINE], "Extra": 1}]}),
        ({}, EFA, False, {"NetworkInterfaces": None, "SecurityGroupIds": [OWN]}),
        (
            {"SecurityGroupIds": [OWN, MINE]},
            EFA,
            True,
            {"NetworkInterfaces": None, "SecurityGroupIds": [OWN, MINE]},
        ),
        ({"SecurityGroupIds": [OWN, MINE]}, {"SecurityGroupIds": [OTHER]}, True, {"SecurityGroupIds": [OWN, MINE]}),
        (
            {"SecurityGroupIds": [OWN, MINE]},
            PLAIN,
            True,
            {"NetworkInterfaces": [{"DeviceIndex": 0, "Groups": [OWN, MINE], "AssociatePublicIpAddress": False}]},
        ),
    ],
)
def test_network_when_changed_keeps_what_is_of_others(new: Json, live: Json, declared: object, changed: Json) -> None:
    assert changed_network(new, live, declared=bool(declared)) == changed


def test_network_when_read_is_without_the_clusters_own_group() -> None:
    assert read_network(NEW_EFA, OWN) == {HIGH_SPEED: True, SECURITY_GROUPS: (MINE,)}
    assert read_network({"SecurityGroupIds": [OWN]}, OWN) == {}
    assert read_network(PLAIN, OWN) == {}


@pytest.mark.parametrize(
    ("placement", "data", "read"),
    [
        ("", {}, "none"),
        ("none", {}, "none"),
        ("compact", {"GroupName": NAME}, "compact"),
        ("ml-ring", {"GroupName": "ml-ring"}, "ml-ring"),
        ("pg-0123456789abcdef0", {"GroupId": "pg-0123456789abcdef0"}, "pg-0123456789abcdef0"),
    ],
)
def test_placement_when_written_reads_back_the_same(placement: str, data: Json, read: str) -> None:
    desired = desired_of(eks_target(placement=placement))
    made = template_data(desired)

    assert made.get("Placement", {}) == data
    assert read_placement(made, NAME) == read
    assert ("placementGroup" in desired.create.params) == (placement == "compact")


def test_placement_when_changed_keeps_other_parts() -> None:
    live: Json = {"Placement": {"Tenancy": "dedicated", "GroupName": "x"}}

    assert changed_placement({"Placement": {"GroupName": "y"}}, live) == {
        "Placement": {"Tenancy": "dedicated", "GroupName": "y"}
    }
    assert changed_placement({}, live) == {"Placement": {"Tenancy": "dedicated"}}
    assert changed_placement({}, {"Placement": {"GroupName": "x"}}) == {"Placement": None}


def live(target: Target, data: Json | None = None) -> Observed:
    params = cast("Mapping[str, Json]", desired_of(target).create.params)
    made = params["launchTemplate"]["LaunchTemplateData"] if data is None else data
    return observe_group(params["nodegroup"], cast("Json", made), {}, OWN)


@pytest.mark.parametrize(
    ("before", "after", "fields"),
    [
        ({}, {"high_speed": True}, {HIGH_SPEED}),
        ({"high_speed": True}, {}, {HIGH_SPEED}),
        ({"high_speed": True}, {"high_speed": True}, set()),
        ({}, {"placement": "compact"}, {PLACEMENT}),
        ({"placement": "compact"}, {"placement": "none"}, {PLACEMENT}),
        ({"placement": "compact"}, {}, set()),
        ({"placement": "compact"}, {"placement": "ring"}, {PLACEMENT}),
        ({}, {"placement": "none"}, set()),
        ({"native": {"securityGroups": [MINE]}}, {"native": {"securityGroups": [OTHER]}}, {SECURITY_GROUPS}),
        ({"native": {"securityGroups": [MINE, OTHER]}}, {"native": {"securityGroups": [OTHER, MINE]}}, set()),
        ({"native": {"securityGroups": [MINE]}}, {}, set()),
    ],
)
def test_changes_when_compared_are_disruptive(before: Json, after: Json, fields: set[object]) -> None:
    old, new = (replace(eks_target(), **fields) for fields in (before, after))  # type: ignore[arg-type]  # test data
    changes = diff_fields(desired_of(new).fields, live(old).fields)

    assert {change.field for change in changes} == fields
    assert {EksProvider().update_row(change, changes).kind for change in changes} <= {"disruptive"}


# Against the account


def rules_of(group: str, *directions: str) -> list[Json]:
    pair = {"GroupId": group}
    return [
        {"GroupId": group, "IsEgress": one == "egress", "IpProtocol": "-1", "ReferencedGroupInfo": pair}
        for one in directions
    ]


def table(gateway: str, *subnets: str) -> Json:
    links = [{"SubnetId": name, "Main": False} for name in subnets] or [{"Main": True}]
    route = {"DestinationCidrBlock": "0.0.0.0/0", ("GatewayId" if gateway[0] == "i" else "NatGatewayId"): gateway}
    return {"Associations": links, "Routes": [{"DestinationCidrBlock": "10.0.0.0/16", "GatewayId": "local"}, route]}


@pytest.fixture
def aws() -> FakeAws:
    network = {"subnetIds": ["subnet-a", "subnet-b"], "vpcId": "vpc-1", "clusterSecurityGroupId": OWN}
    fake = FakeAws({"resourcesVpcConfig": network})
    fake.subnets = [
        {"SubnetId": f"subnet-{zone}", "AvailabilityZone": f"us-east-1{zone}", "MapPublicIpOnLaunch": False}
        for zone in "ab"
    ]
    fake.offered = ["us-east-1a", "us-east-1b"]
    fake.rules = rules_of(OWN, "ingress", "egress")
    fake.tables = [table("nat-1")]
    return fake


@pytest.fixture
def cloud(aws: FakeAws) -> EksCloud:
    return EksCloud(CLUSTER, Settings(), Endpoint(), aws)


def fast(**changes: object) -> Desired:
    target = eks_target(high_speed=True, zones=("us-east-1a",), native={"nodeRole": ROLE})
    return desired_of(replace(target, **changes))  # type: ignore[arg-type]  # test data


def test_pool_when_completed_has_the_clusters_group_on_every_interface(cloud: EksCloud) -> None:
    made = cloud.complete(fast())

    assert {str(one["Groups"]) for one in interfaces(template_data(made))} == {f"['{OWN}']"}
    assert made.unchecked == ()


def test_pool_when_completed_has_the_clusters_group_before_its_own(cloud: EksCloud) -> None:
    native = {"nodeRole": ROLE, "subnets": ["subnet-a"], "securityGroups": [MINE]}
    made = cloud.complete(desired_of(eks_target(native=native)))

    assert template_data(made)["SecurityGroupIds"] == [OWN, MINE]


def test_pool_when_it_has_neither_is_asked_nothing(aws: FakeAws, cloud: EksCloud) -> None:
    cloud.complete(desired_of(eks_target(native={"nodeRole": ROLE, "subnets": ["subnet-a"]})))

    assert aws.calls == []


@pytest.mark.parametrize(
    ("rules", "commands"),
    [
        ([], {"ingress", "egress"}),
        (rules_of(OWN, "ingress"), {"egress"}),
        (rules_of(OWN, "egress"), {"ingress"}),
        ([{**rule, "IpProtocol": "tcp"} for rule in rules_of(OWN, "ingress", "egress")], {"ingress", "egress"}),
        ([*rules_of(OWN, "ingress"), {"GroupId": OWN, "IsEgress": True, "IpProtocol": "-1"}], {"egress"}),
    ],
)
def test_group_when_it_lacks_a_rule_is_refused_with_the_command(
    aws: FakeAws, cloud: EksCloud, rules: list[Json], commands: set[str]
) -> None:
    aws.rules = rules
    with pytest.raises(SpecError, match="allows all traffic") as caught:
        cloud.complete(fast())

    fix = caught.value.diagnostics[0].fix
    assert {one for one in ("ingress", "egress") if f"authorize-security-group-{one} " in fix} == commands
    assert f"--group-id {OWN}" in fix


def test_group_when_the_given_one_has_the_rules_is_enough(aws: FakeAws, cloud: EksCloud) -> None:
    aws.rules = rules_of(MINE, "ingress", "egress")
    made = cloud.complete(fast(native={"nodeRole": ROLE, "securityGroups": [MINE]}))

    assert interfaces(template_data(made))[0]["Groups"] == [OWN, MINE]


@pytest.mark.parametrize(
    ("tables", "public"),
    [
        ([table("igw-1")], True),
        ([table("igw-1"), table("nat-1", "subnet-a")], False),
        ([table("nat-1"), table("igw-1", "subnet-a")], True),
        ([table("nat-1"), table("igw-1", "subnet-b")], False),
        ([], False),
    ],
)
def test_subnet_when_its_route_is_an_internet_gateway_is_refused(tables: list[Json], public: object) -> None:
    if not public:
        require_private(eks_target(high_speed=True), ["subnet-a"], tables)
        return
    with pytest.raises(SpecError, match="subnet-a of train-eks/a100mig is public"):
        require_private(eks_target(high_speed=True), ["subnet-a"], tables)


@pytest.mark.parametrize("changes", [{"high_speed": True}, {"high_speed": False, "placement": "compact"}])
def test_zones_when_there_are_two_are_refused(cloud: EksCloud, changes: Json) -> None:
    with pytest.raises(SpecError, match="needs one zone") as caught:
        cloud.complete(fast(zones=(), **changes))

    assert caught.value.diagnostics[0].fix == "write zones: [us-east-1a]"


def test_pool_when_the_reads_are_denied_is_made_with_a_warning_each(aws: FakeAws, cloud: EksCloud) -> None:
    for call in ("describe_security_group_rules", "describe_route_tables", "describe_placement_groups"):
        aws.raises[call] = refusal("UnauthorizedOperation")
    made = cloud.complete(fast(placement="ring"))

    assert [found.fix for found in made.unchecked] == [
        "allow ec2:DescribeSecurityGroupRules",
        "allow ec2:DescribeRouteTables",
        "allow ec2:DescribePlacementGroups",
    ]


@pytest.mark.parametrize(
    ("group", "zones", "message"),
    [
        (None, ("us-east-1a",), "does not exist"),
        ({"State": "deleting", "Strategy": "cluster"}, ("us-east-1a",), "is deleting"),
        ({"State": "available", "Strategy": "cluster"}, (), "needs one zone"),
        ({"State": "available", "Strategy": "partition"}, (), ""),
        ({"State": "available", "Strategy": "cluster"}, ("us-east-1a",), ""),
    ],
)
def test_placement_when_named_is_an_existing_group(
    aws: FakeAws, cloud: EksCloud, group: Json | None, zones: tuple[str, ...], message: str
) -> None:
    aws.placements = {"ring": {"GroupName": "ring", **group}} if group else {}
    desired = desired_of(eks_target(placement="ring", zones=zones, native={"nodeRole": ROLE}))
    if not message:
        assert cloud.complete(desired).unchecked == ()
        return
    with pytest.raises(SpecError, match=message):
        cloud.complete(desired)


ARN = "arn:aws:ec2:us-east-1:111122223333:placement-group/ring"


@pytest.mark.parametrize(
    ("placement", "arn", "group"),
    [
        ("", "", ""),
        ("", ARN, "ring"),
        ("compact", ARN, "ring"),
        ("ring", ARN, "ring"),
        ("compact", "", None),
        ("ring", "", None),
        ("none", "", ""),
        ("none", ARN, None),
    ],
)
def test_placement_when_reserved_is_that_of_the_reservation(
    aws: FakeAws, cloud: EksCloud, placement: str, arn: str, group: str | None
) -> None:
    place = {"AvailabilityZone": "us-east-1a", "InstanceType": "p5.48xlarge", "ReservationType": "capacity-block"}
    aws.reservations = [{"CapacityReservationId": "cr-0123456789abcdef0", "State": "active", **place}]
    aws.reservations[0] |= {"PlacementGroupArn": arn} if arn else {}
    aws.placements = {"ring": {"GroupName": "ring", "State": "available", "Strategy": "cluster"}}
    desired = desired_of(eks_target("p5.48xlarge", capacity=BLOCK, placement=placement, native={"nodeRole": ROLE}))
    if group is None:
        with pytest.raises(SpecError, match="reservation cr-0123456789abcdef0 is in"):
            cloud.complete(desired)
        return
    made = cloud.complete(desired)

    assert template_data(made).get("Placement", {}) == ({"GroupName": group} if group else {})
    assert "placementGroup" not in made.create.params
    assert made.fields.get(PLACEMENT, "none") == (group or "none")


# The pool's own placement group


def compact(cloud: EksCloud) -> Desired:
    return cloud.complete(fast(high_speed=False, placement="compact"))


def test_create_when_compact_makes_the_group_between_template_and_pool(aws: FakeAws, cloud: EksCloud) -> None:
    desired = compact(cloud)
    aws.calls.clear()
    cloud.send(desired.create)

    made = [call for call in aws.calls if call.startswith("create")]
    assert made == ["create_launch_template", "create_placement_group", "create_nodegroup"]
    assert aws.placements[NAME]["Strategy"] == "cluster"


def test_create_when_a_killed_run_left_the_group_takes_it_up(aws: FakeAws, cloud: EksCloud) -> None:
    desired = compact(cloud)
    aws.raises["create_nodegroup"] = refusal("ServerException")
    with pytest.raises(CloudError):
        cloud.send(desired.create)
    cloud.send(desired.create)

    assert "a100mig" in aws.groups


def test_create_when_the_group_is_of_others_is_refused(aws: FakeAws, cloud: EksCloud) -> None:
    aws.placements[NAME] = {"GroupName": NAME, "Tags": []}
    with pytest.raises(Conflict, match=r"already exists without the gpukube.io tags"):
        cloud.send(compact(cloud).create)


def gone(aws: FakeAws, cloud: EksCloud) -> Operation:
    cloud.send(compact(cloud).create)
    aws.groups.clear()
    return Operation("a100mig", "delete")


def test_delete_when_the_pool_is_gone_takes_the_group_and_then_the_template(aws: FakeAws, cloud: EksCloud) -> None:
    progress = cloud.poll(gone(aws, cloud))

    assert progress.done
    assert [call for call in aws.calls if call.startswith("delete")] == [
        "delete_placement_group",
        "delete_launch_template",
    ]


@pytest.mark.parametrize("machines", [0, 1])
def test_delete_when_machines_are_in_the_group_waits_for_its_own_and_leaves_it_to_others(
    aws: FakeAws, cloud: EksCloud, machines: int
) -> None:
    operation = gone(aws, cloud)
    aws.raises["delete_placement_group"] = refusal("InvalidPlacementGroup.InUse")
    aws.instances = [{"InstanceId": "i-1"}] * machines
    progress = cloud.poll(operation)

    assert progress.done == (machines > 0)
    assert (NAME in aws.templates) == (machines == 0)
    assert NAME in aws.placements


def test_delete_when_the_group_is_of_others_leaves_it(aws: FakeAws, cloud: EksCloud) -> None:
    operation = gone(aws, cloud)
    aws.placements[NAME]["Tags"] = []

    assert cloud.poll(operation).done
    assert "delete_placement_group" not in aws.calls


def test_delete_when_the_pool_never_had_a_group_asks_for_none(aws: FakeAws, cloud: EksCloud) -> None:
    cloud.send(cloud.complete(fast(high_speed=False)).create)
    aws.groups.clear()

    assert cloud.poll(Operation("a100mig", "delete")).done
    assert "describe_placement_groups" not in aws.calls


def test_delete_when_compact_shows_the_group() -> None:
    observed = live(eks_target(placement="compact"))

    assert EksProvider().requests.delete(CLUSTER, observed).params["placementGroup"] == {"GroupName": NAME}
    assert "placementGroup" not in EksProvider().requests.delete(CLUSTER, replace(observed, fields={})).params
