"""Node groups through their lives: states, updates, health, tokens, pages, tags."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpukube_sandbox import daemon
from sandbox_tests.eks.aws import ACCOUNT, NAME, ONE, REGION, T4, Aws
from sandbox_tests.waiting import wait_for

if TYPE_CHECKING:
    from gpukube_sandbox.daemon import SandboxInfo

SLOW = 0.001


def slowly(aws: Aws) -> None:
    """Let states last longer than a test looks at them."""
    daemon.configure(aws.info, speed=SLOW)


def test_create_when_asked_then_creating_and_later_active(aws: Aws) -> None:
    asked = aws.ask("gpu", labels={"team": "vision"}, tags={"owner": "ml"})
    assert asked["status"] == "CREATING"
    assert "resources" not in asked
    group = aws.settled("gpu")
    assert group["status"] == "ACTIVE"
    assert group["resources"]["autoScalingGroups"][0]["name"].startswith("eks-gpu-")
    assert group["nodegroupArn"].startswith(f"arn:aws:eks:{REGION}:{ACCOUNT}:nodegroup/{NAME}/gpu/")
    assert (group["labels"], group["tags"]) == ({"team": "vision"}, {"owner": "ml"})


def test_create_when_little_is_said_then_eks_fills_the_rest_in(aws: Aws) -> None:
    group = aws.ask("plain", amiType=None, instanceTypes=None)
    expected = {
        "amiType": "AL2023_x86_64_STANDARD",
        "instanceTypes": ["t3.medium"],
        "diskSize": 20,
        "capacityType": "ON_DEMAND",
        "version": "1.34",
        "releaseVersion": "1.34.2-20260714",
        "updateConfig": {"maxUnavailable": 1, "updateStrategy": "DEFAULT"},
        "nodeRepairConfig": {"enabled": False},
        "health": {"issues": []},
    }
    assert {key: group[key] for key in expected} == expected
    assert aws.ask("percent", updateConfig={"maxUnavailablePercentage": 33})["updateConfig"] == {
        "maxUnavailablePercentage": 33,
        "updateStrategy": "DEFAULT",
    }


def test_create_when_a_template_is_named_then_read_back_with_id_name_and_number(aws: Aws) -> None:
    template = aws.template("gpukube-t")
    group = aws.ask("gpu", launchTemplate={"name": "gpukube-t"})
    assert group["launchTemplate"] == {"id": template["id"], "name": "gpukube-t", "version": "1"}
    assert "diskSize" not in group
    inside = aws.template("gpukube-i", InstanceType="g4dn.xlarge")
    other = aws.ask("other", launchTemplate=inside, instanceTypes=None)
    assert "instanceTypes" not in other
    own = aws.ask("own", launchTemplate=aws.template("gpukube-o", ImageId="ami-12"), amiType=None)
    assert (own["amiType"], own["releaseVersion"]) == ("CUSTOM", "ami-12")


def test_create_when_the_name_is_taken_then_409_but_its_token_gives_the_same(aws: Aws) -> None:
    first = aws.ask("gpu", clientRequestToken="t1")
    again = aws.ask("gpu", clientRequestToken="t1")
    assert again["nodegroupArn"] == first["nodegroupArn"]
    with pytest.raises(aws.eks.exceptions.ResourceInUseException, match="NodeGroup already exists with name gpu"):
        aws.ask("gpu", clientRequestToken="t2")
    with pytest.raises(aws.eks.exceptions.ResourceInUseException):
        aws.ask("gpu", clientRequestToken="t1", labels={"a": "b"})


LATE: dict[str, tuple[str, str, str]] = {
    "no machines": ("InsufficientInstanceCapacity", "AsgInstanceLaunchFailures", "sufficient g4dn.xlarge capacity"),
    "no vCPUs": ("VcpuLimitExceeded", "AsgInstanceLaunchFailures", "more vCPU capacity"),
    "reservation empty": ("ReservationCapacityExceeded", "AsgInstanceLaunchFailures", "reservation"),
    "quota": ("InstanceLimitExceeded", "InstanceLimitExceeded", "unable to launch any more"),
    "subnet full": ("InsufficientFreeAddresses", "InsufficientFreeAddresses", "IP addresses"),
    "never joined": ("NodeCreationFailure", "NodeCreationFailure", "failed to join"),
    "not mapped": ("AccessDenied", "AccessDenied", "not mapped"),
}


@pytest.mark.parametrize(("code", "shown", "text"), LATE.values(), ids=LATE)
def test_create_when_it_fails_late_then_it_stays_with_its_health(aws: Aws, code: str, shown: str, text: str) -> None:
    daemon.add_fault(aws.info, "operation", pool="gpu", kind="create", code=code)
    group = aws.create("gpu")
    (issue,) = group["health"]["issues"]
    assert (group["status"], issue["code"]) == ("CREATE_FAILED", shown)
    assert text in issue["message"]
    assert issue["resourceIds"] == [group["resources"]["autoScalingGroups"][0]["name"]]
    with pytest.raises(aws.eks.exceptions.ResourceInUseException):
        aws.ask("gpu")
    with pytest.raises(aws.eks.exceptions.ResourceInUseException, match="not in Active State"):
        aws.update("gpu", labels={"addOrUpdateLabels": {"a": "b"}})
    aws.delete("gpu")
    assert aws.create("gpu")["status"] == "ACTIVE"


def test_create_when_capacity_runs_out_on_the_way_then_some_nodes_are_there(aws: Aws) -> None:
    daemon.add_fault(aws.info, "operation", pool="gpu", code="InsufficientInstanceCapacity", afterNodes=2)
    group = aws.create("gpu", scalingConfig={"minSize": 3, "maxSize": 3, "desiredSize": 3})
    assert group["status"] == "CREATE_FAILED"
    asg = group["resources"]["autoScalingGroups"][0]["name"]
    scaling = aws.client("autoscaling")
    (found,) = scaling.describe_auto_scaling_groups(AutoScalingGroupNames=[asg])["AutoScalingGroups"]
    assert len(found["Instances"]) == 2
    (activity,) = scaling.describe_scaling_activities(AutoScalingGroupName=asg)["Activities"]
    assert activity["StatusCode"] == "Failed"
    assert "InsufficientInstanceCapacity" in activity["StatusMessage"]


AT_ONCE: dict[str, tuple[str, str, int]] = {
    "throttled": ("RequestLimitExceeded", "InvalidRequestException", 400),
    "role on its way": ("ResourcePropagationDelayException", "ResourcePropagationDelayException", 428),
    "quota": ("ResourceLimitExceededException", "ResourceLimitExceededException", 400),
    "not allowed": ("AccessDeniedException", "AccessDeniedException", 403),
    "zone": ("UnsupportedAvailabilityZoneException", "UnsupportedAvailabilityZoneException", 400),
}


@pytest.mark.parametrize(("code", "name", "status"), AT_ONCE.values(), ids=AT_ONCE)
def test_create_when_it_fails_at_once_then_nothing_is_there(aws: Aws, code: str, name: str, status: int) -> None:
    daemon.add_fault(aws.info, "operation", pool="gpu", code=code)
    with pytest.raises(aws.eks.exceptions.ClientError) as caught:
        aws.ask("gpu")
    answer = caught.value.response
    assert (answer["Error"]["Code"], answer["ResponseMetadata"]["HTTPStatusCode"]) == (name, status)
    assert aws.eks.list_nodegroups(clusterName=NAME)["nodegroups"] == ["system"]
    assert aws.create("gpu")["status"] == "ACTIVE"  # the fault struck once


def test_create_when_no_zone_of_its_subnets_offers_the_type_then_unsupported(aws: Aws) -> None:
    zoned = aws.client("ec2").describe_subnets(Filters=[{"Name": "availability-zone", "Values": ["us-east-1c"]}])
    subnets = [subnet["SubnetId"] for subnet in zoned["Subnets"]]
    group = aws.create("gpu", instanceTypes=["p4d.24xlarge"], subnets=subnets)
    assert group["status"] == "CREATE_FAILED"
    (issue,) = group["health"]["issues"]
    assert "Unsupported" in issue["message"]
    assert "p4d.24xlarge" in issue["message"]
    assert "us-east-1c" in issue["message"]


@pytest.mark.parametrize(
    ("ami", "user_data", "code"),
    [
        ("AL2023_x86_64_NVIDIA", "#!/bin/bash\ntrue", "Ec2LaunchTemplateInvalidConfiguration"),
        ("BOTTLEROCKET_x86_64_NVIDIA", "MIME-Version: 1.0\n", "Ec2LaunchTemplateInvalidConfiguration"),
        ("BOTTLEROCKET_x86_64_NVIDIA", '[settings."a.b"]\nc = 1\n', "Ec2LaunchTemplateInvalidConfiguration"),
        (
            "BOTTLEROCKET_x86_64_NVIDIA",
            'settings.kubelet-device-plugins.nvidia.device-sharing-strategy = "twice"',
            "NodeCreationFailure",
        ),
    ],
)
def test_create_when_user_data_is_of_no_use_then_it_fails_late(aws: Aws, ami: str, user_data: str, code: str) -> None:
    group = aws.create("gpu", amiType=ami, launchTemplate=aws.template(user_data=user_data))
    assert group["status"] == "CREATE_FAILED"
    assert [issue["code"] for issue in group["health"]["issues"]] == [code]


def test_create_when_a_label_is_of_a_subdomain_of_kubernetes_then_nodes_never_join(aws: Aws) -> None:
    group = aws.create("gpu", labels={"node-role.kubernetes.io/gpu": "x"})
    assert [issue["code"] for issue in group["health"]["issues"]] == ["NodeCreationFailure"]
    assert aws.create("fine", labels={"node.kubernetes.io/gpu": "x"})["status"] == "ACTIVE"


def test_update_when_labels_and_taints_change_then_by_key_and_by_key_and_effect(aws: Aws) -> None:
    taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}
    aws.create("gpu", labels={"a": "1", "b": "2"}, taints=[taint])
    other = {"key": "nvidia.com/gpu", "value": "present", "effect": "NO_EXECUTE"}
    update = aws.update(
        "gpu",
        labels={"addOrUpdateLabels": {"b": "3", "c": "4"}, "removeLabels": ["a"]},
        taints={"addOrUpdateTaints": [other, {**taint, "value": "yes"}]},
    )
    assert (update["status"], update["type"]) == ("Successful", "ConfigUpdate")
    assert {param["type"] for param in update["params"]} == {"LabelsToAdd", "LabelsToRemove", "TaintsToAdd"}
    group = aws.group("gpu")
    assert (group["status"], group["labels"]) == ("ACTIVE", {"b": "3", "c": "4"})
    assert sorted(group["taints"], key=lambda each: str(each["effect"])) == [other, {**taint, "value": "yes"}]
    aws.update("gpu", taints={"removeTaints": [other]})
    assert aws.group("gpu")["taints"] == [{**taint, "value": "yes"}]


def test_update_when_another_runs_then_409_and_the_group_is_updating(aws: Aws) -> None:
    aws.create("gpu")
    slowly(aws)
    aws.eks.update_nodegroup_config(clusterName=NAME, nodegroupName="gpu", updateConfig={"maxUnavailable": 2})
    assert aws.group("gpu")["status"] == "UPDATING"
    with pytest.raises(aws.eks.exceptions.ResourceInUseException, match="not in Active State"):
        aws.update("gpu", labels={"addOrUpdateLabels": {"a": "b"}})
    with pytest.raises(aws.eks.exceptions.ResourceInUseException):
        aws.eks.delete_nodegroup(clusterName=NAME, nodegroupName="gpu")


def test_update_when_repeated_with_its_token_then_the_same_update(aws: Aws) -> None:
    change = {"labels": {"addOrUpdateLabels": {"a": "b"}}, "clientRequestToken": "u1"}
    first = aws.update("system", **change)
    second = aws.eks.update_nodegroup_config(clusterName=NAME, nodegroupName="system", **change)["update"]
    assert second["id"] == first["id"]
    listed = aws.eks.list_updates(name=NAME, nodegroupName="system")["updateIds"]
    assert listed == [first["id"]]


def test_update_when_it_fails_then_the_old_settings_are_back_and_the_update_says_why(aws: Aws) -> None:
    aws.create("gpu", labels={"a": "b"})
    daemon.add_fault(aws.info, "operation", pool="gpu", kind="ConfigUpdate", code="InternalFailure")
    update = aws.update("gpu", labels={"addOrUpdateLabels": {"a": "c"}})
    assert update["status"] == "Failed"
    assert update["errors"][0]["errorCode"] == "InternalFailure"
    group = aws.group("gpu")
    assert (group["status"], group["labels"]) == ("ACTIVE", {"a": "b"})


def test_update_when_its_group_is_not_named_then_not_found(aws: Aws) -> None:
    update = aws.update("system", labels={"addOrUpdateLabels": {"a": "b"}})
    with pytest.raises(aws.eks.exceptions.ResourceNotFoundException, match=update["id"]):
        aws.eks.describe_update(name=NAME, updateId=update["id"])


def test_scale_when_there_is_no_capacity_then_degraded_until_a_scale_out_succeeds(aws: Aws) -> None:
    aws.create("gpu")
    daemon.add_fault(aws.info, "operation", pool="gpu", kind="ConfigUpdate", code="InsufficientInstanceCapacity")
    update = aws.update("gpu", scalingConfig={"minSize": 0, "maxSize": 3, "desiredSize": 3})
    assert update["status"] == "Successful"
    wait_for(lambda: aws.group("gpu")["status"] == "DEGRADED")
    assert aws.group("gpu")["health"]["issues"][0]["code"] == "AsgInstanceLaunchFailures"
    aws.update("gpu", scalingConfig={"minSize": 0, "desiredSize": 0})
    assert aws.group("gpu")["status"] == "DEGRADED"
    aws.update("gpu", scalingConfig={"desiredSize": 1})
    wait_for(lambda: aws.group("gpu")["status"] == "ACTIVE" and not aws.group("gpu")["health"]["issues"])


def test_scale_when_degraded_groups_are_busy_then_409(aws: Aws) -> None:
    daemon.configure(aws.info, eksDegradedBusy=True)
    daemon.tamper(aws.info, NAME, "system", status="DEGRADED")
    with pytest.raises(aws.eks.exceptions.ResourceInUseException):
        aws.update("system", scalingConfig={"desiredSize": 2})


def test_version_when_the_template_has_a_new_one_then_every_node_is_another(aws: Aws) -> None:
    template = aws.template()
    aws.create("gpu", launchTemplate=template)
    before = instances(aws, "gpu")
    ec2 = aws.client("ec2")
    data: dict[str, Any] = {"BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 200}}]}
    ec2.create_launch_template_version(LaunchTemplateId=template["id"], LaunchTemplateData=data)
    sent = aws.eks.update_nodegroup_version(
        clusterName=NAME, nodegroupName="gpu", launchTemplate={"id": template["id"], "version": "2"}
    )["update"]
    update = aws.ended("gpu", sent["id"])
    assert (update["type"], update["status"]) == ("VersionUpdate", "Successful")
    assert aws.group("gpu")["launchTemplate"]["version"] == "2"
    assert not before & instances(aws, "gpu")


def instances(aws: Aws, name: str) -> set[str]:
    """Instance ids of a group."""
    asg = aws.group(name)["resources"]["autoScalingGroups"][0]["name"]
    found = aws.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[asg])["AutoScalingGroups"]
    return {instance["InstanceId"] for instance in found[0]["Instances"]}


def test_version_when_it_would_be_another_group_then_refused(aws: Aws) -> None:
    aws.create("bare")
    aws.create("gpu", launchTemplate=aws.template())
    other = aws.template("gpukube-b")
    update = aws.eks.update_nodegroup_version
    wrong: list[tuple[str, dict[str, Any], str]] = [
        ("bare", {"launchTemplate": other}, "without a launch template"),
        ("gpu", {"launchTemplate": other}, "only its version"),
        ("gpu", {"version": "1.35"}, "cluster's version"),
    ]
    for name, change, text in wrong:
        with pytest.raises(aws.eks.exceptions.InvalidParameterException, match=text):
            update(clusterName=NAME, nodegroupName=name, **change)


def test_version_when_the_group_is_behind_then_its_own_and_the_clusters_are_taken(aws: Aws) -> None:
    aws.create("gpu", launchTemplate=aws.template())
    daemon.tamper(aws.info, NAME, "gpu", version="1.33", releaseVersion="1.33.5-20260714")
    update = aws.eks.update_nodegroup_version
    aws.ended("gpu", update(clusterName=NAME, nodegroupName="gpu", version="1.33")["update"]["id"])
    assert aws.group("gpu")["version"] == "1.33"
    aws.ended("gpu", update(clusterName=NAME, nodegroupName="gpu", version="1.34")["update"]["id"])
    assert aws.group("gpu")["version"] == "1.34"


def test_version_when_a_capacity_block_is_in_use_then_refused_until_it_is_empty(aws: Aws) -> None:
    block = {"id": "cr-1", "type": "p5.48xlarge", "zone": "a", "block": True}
    daemon.declare(aws.info, "eks", account=ACCOUNT, region=REGION, reservations=[block])
    target = {"CapacityReservationId": "cr-1"}
    data: dict[str, Any] = {
        "InstanceMarketOptions": {"MarketType": "capacity-block"},
        "CapacityReservationSpecification": {"CapacityReservationTarget": target},
        "InstanceType": "p5.48xlarge",
    }
    here = [{"Name": "availability-zone", "Values": [f"{REGION}a"]}]
    subnets = [one["SubnetId"] for one in aws.client("ec2").describe_subnets(Filters=here)["Subnets"]]
    more = {"instanceTypes": None, "capacityType": "CAPACITY_BLOCK", "subnets": subnets}
    aws.create("gpu", launchTemplate=aws.template(**data), **more)
    update = aws.eks.update_nodegroup_version
    with pytest.raises(aws.eks.exceptions.InvalidRequestException, match="desired size to 0"):
        update(clusterName=NAME, nodegroupName="gpu", version="1.34")
    aws.update("gpu", scalingConfig={"minSize": 0, "desiredSize": 0})
    aws.settled("gpu")
    assert aws.ended("gpu", update(clusterName=NAME, nodegroupName="gpu")["update"]["id"])["status"] == "Successful"


def test_delete_when_it_runs_then_deleting_and_then_gone_but_not_its_template(aws: Aws) -> None:
    template = aws.template()
    aws.create("gpu", launchTemplate=template)
    slowly(aws)
    gone = aws.eks.delete_nodegroup(clusterName=NAME, nodegroupName="gpu")["nodegroup"]
    assert gone["status"] == "DELETING"
    with pytest.raises(aws.eks.exceptions.ResourceInUseException):
        aws.eks.delete_nodegroup(clusterName=NAME, nodegroupName="gpu")
    daemon.configure(aws.info, speed=5000.0)
    wait_for(lambda: "gpu" not in aws.eks.list_nodegroups(clusterName=NAME)["nodegroups"])
    with pytest.raises(aws.eks.exceptions.ResourceNotFoundException):
        aws.eks.delete_nodegroup(clusterName=NAME, nodegroupName="gpu")
    assert aws.client("ec2").describe_launch_templates(LaunchTemplateIds=[template["id"]])["LaunchTemplates"]


def test_delete_when_it_fails_then_delete_failed_and_it_can_be_tried_again(aws: Aws) -> None:
    aws.create("gpu")
    daemon.add_fault(aws.info, "operation", pool="gpu", kind="delete", code="NodeTerminationFailure")
    aws.eks.delete_nodegroup(clusterName=NAME, nodegroupName="gpu")
    wait_for(lambda: aws.group("gpu")["status"] == "DELETE_FAILED")
    assert aws.group("gpu")["health"]["issues"][0]["code"] == "NodeTerminationFailure"
    aws.delete("gpu")


def test_list_when_there_are_many_then_pages_of_a_hundred(sandbox: SandboxInfo) -> None:
    none = {"minSize": 0, "maxSize": 1, "desiredSize": 0}
    groups = [{"nodegroupName": f"g{i:03d}", **T4, "scalingConfig": none} for i in range(136)]
    daemon.add_eks_cluster(sandbox, ACCOUNT, REGION, NAME, options={"nodeGroups": groups, "groupQuota": 200})
    aws = Aws(sandbox)
    pages = [page["nodegroups"] for page in aws.eks.get_paginator("list_nodegroups").paginate(clusterName=NAME)]
    assert [len(page) for page in pages] == [100, 36]
    assert len({name for page in pages for name in page}) == 136
    small = aws.eks.list_nodegroups(clusterName=NAME, maxResults=7)
    assert (len(small["nodegroups"]), "nextToken" in small) == (7, True)
    for wrong in ({"maxResults": 101}, {"nextToken": "abc"}):
        with pytest.raises(aws.eks.exceptions.InvalidParameterException):
            aws.eks.list_nodegroups(clusterName=NAME, **wrong)


def test_clusters_when_in_other_regions_or_accounts_then_not_seen(aws: Aws) -> None:
    daemon.add_eks_cluster(aws.info, ACCOUNT, "eu-west-1", "west")
    daemon.add_eks_cluster(aws.info, "444455556666", REGION, "other")
    assert aws.eks.list_clusters()["clusters"] == [NAME]
    assert Aws(aws.info, region="eu-west-1").eks.list_clusters()["clusters"] == ["west"]
    assert Aws(aws.info, "444455556666").eks.list_clusters()["clusters"] == ["other"]
    with pytest.raises(aws.eks.exceptions.ResourceNotFoundException, match="No cluster found for name: west"):
        aws.eks.describe_cluster(name="west")


def test_cluster_when_described_then_all_that_access_needs_is_there(aws: Aws) -> None:
    cluster = aws.eks.describe_cluster(name=NAME)["cluster"]
    assert (cluster["status"], cluster["version"]) == ("ACTIVE", "1.34")
    assert cluster["endpoint"].startswith("https://127.0.0.1:")
    assert cluster["certificateAuthority"]["data"]
    assert len(cluster["resourcesVpcConfig"]["subnetIds"]) == 6
    assert cluster["resourcesVpcConfig"]["clusterSecurityGroupId"].startswith("sg-")


def test_tags_when_changed_then_read_back_and_not_on_the_scaling_group(aws: Aws) -> None:
    group = aws.create("gpu", tags={"a": "1"})
    arn = group["nodegroupArn"]
    aws.eks.tag_resource(resourceArn=arn, tags={"a": "2", "k8s.io/x": "3"})
    aws.eks.untag_resource(resourceArn=arn, tagKeys=["a", "never"])
    assert aws.eks.list_tags_for_resource(resourceArn=arn)["tags"] == {"k8s.io/x": "3"}
    assert aws.group("gpu")["tags"] == {"k8s.io/x": "3"}
    (scaling,) = aws.client("autoscaling").describe_auto_scaling_groups(
        AutoScalingGroupNames=[group["resources"]["autoScalingGroups"][0]["name"]]
    )["AutoScalingGroups"]
    assert {tag["Key"]: tag["Value"] for tag in scaling["Tags"]} == {
        "k8s.io/cluster-autoscaler/enabled": "true",
        f"k8s.io/cluster-autoscaler/{NAME}": "owned",
        f"kubernetes.io/cluster/{NAME}": "owned",
        "eks:cluster-name": NAME,
        "eks:nodegroup-name": "gpu",
    }


def test_tags_when_the_resource_is_wrong_then_the_two_errors_of_tag_calls(aws: Aws) -> None:
    arn = f"arn:aws:eks:{REGION}:{ACCOUNT}:nodegroup/{NAME}/none/x"
    with pytest.raises(aws.eks.exceptions.NotFoundException):
        aws.eks.tag_resource(resourceArn=arn, tags={"a": "b"})
    with pytest.raises(aws.eks.exceptions.BadRequestException):
        aws.eks.list_tags_for_resource(resourceArn="arn:aws:s3:::x")
    mine = aws.group("system")["nodegroupArn"]
    with pytest.raises(aws.eks.exceptions.BadRequestException, match="reserved"):
        aws.eks.tag_resource(resourceArn=mine, tags={"aws:x": "y"})


def test_tamper_when_somebody_else_works_then_the_api_shows_it(aws: Aws) -> None:
    aws.create("gpu")
    daemon.tamper(aws.info, NAME, "gpu", labels={"hand": "made"}, scalingConfig={**ONE, "maxSize": 5})
    group = aws.group("gpu")
    assert (group["labels"], group["scalingConfig"]["maxSize"]) == ({"hand": "made"}, 5)
    daemon.tamper(aws.info, NAME, "gpu", delete=True)
    assert aws.eks.list_nodegroups(clusterName=NAME)["nodegroups"] == ["system"]
