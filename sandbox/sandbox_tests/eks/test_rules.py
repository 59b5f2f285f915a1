"""What EKS refuses at once: every rule with its code and a piece of its sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from gpukube_sandbox import daemon
from gpukube_sandbox.eks.instances import TYPES
from sandbox_tests.eks.aws import ACCOUNT, NAME, ONE, REGION, Aws

if TYPE_CHECKING:
    from gpukube_sandbox.daemon import SandboxInfo

PARAMETER, REQUEST = "InvalidParameterException", "InvalidRequestException"
NVIDIA = "AL2023_x86_64_NVIDIA"


def refused(aws: Aws, name: str, **members: object) -> tuple[str, str, int]:
    """Code, sentence and status of a refused creation."""
    with pytest.raises(ClientError) as caught:
        aws.ask(name, **members)
    error = caught.value.response
    return error["Error"]["Code"], error["Error"]["Message"], error["ResponseMetadata"]["HTTPStatusCode"]


CASES: dict[str, tuple[dict[str, Any], str, str]] = {
    "name too long": ({"name": "x" * 64}, PARAMETER, "1 to 63"),
    "name begins with a dash": ({"name": "-x"}, PARAMETER, "begin with"),
    "amiType unknown": ({"amiType": "NOT_AN_AMI"}, PARAMETER, "not a valid value for amiType"),
    "capacityType unknown": ({"capacityType": "CHEAP"}, PARAMETER, "capacityType"),
    "effect as Kubernetes spells it": ({"taints": [{"key": "a", "effect": "NoSchedule"}]}, PARAMETER, "NO_SCHEDULE"),
    "taint twice": ({"taints": [{"key": "a", "effect": "NO_EXECUTE"}] * 2}, PARAMETER, "more than once"),
    "51 taints": (
        {"taints": [{"key": f"a{i}", "effect": "NO_EXECUTE"} for i in range(51)]},
        PARAMETER,
        "Too many taints",
    ),
    "taint of Kubernetes": (
        {"taints": [{"key": "kubernetes.io/x", "effect": "NO_EXECUTE"}]},
        PARAMETER,
        "reserved prefixes",
    ),
    "taint key with a blank": ({"taints": [{"key": "a b", "effect": "NO_EXECUTE"}]}, PARAMETER, "taint key"),
    "taint value too long": (
        {"taints": [{"key": "a", "value": "x" * 64, "effect": "NO_EXECUTE"}]},
        PARAMETER,
        "taint value",
    ),
    "label of Kubernetes": ({"labels": {"kubernetes.io/x": "y"}}, PARAMETER, "reserved prefixes [kubernetes.io/"),
    "label of EKS": ({"labels": {"eks.amazonaws.com/x": "y"}}, PARAMETER, "reserved prefixes"),
    "label key too long": ({"labels": {"x" * 64: "y"}}, PARAMETER, "length between 1 and 63"),
    "label value too long": ({"labels": {"x": "y" * 64}}, PARAMETER, "length between 1 and 63"),
    "label value odd": ({"labels": {"x": "a b"}}, PARAMETER, "not a valid Kubernetes label"),
    "51 tags": ({"tags": {f"k{i}": "v" for i in range(51)}}, PARAMETER, "Too many tags"),
    "tag of AWS": ({"tags": {"aws:x": "v"}}, PARAMETER, "reserved prefix aws:"),
    "tag key too long": ({"tags": {"k" * 129: "v"}}, PARAMETER, "too long"),
    "tag value too long": ({"tags": {"k": "v" * 257}}, PARAMETER, "too long"),
    "tag with a comma": ({"tags": {"k": "a,b"}}, PARAMETER, "characters other than"),
    "scaling in part": ({"scalingConfig": {"minSize": 0, "maxSize": 1}}, PARAMETER, "desiredSize is absent"),
    "min above desired": (
        {"scalingConfig": {"minSize": 4, "maxSize": 5, "desiredSize": 3}},
        PARAMETER,
        "Minimum capacity 4 can't be greater than desired size 3",
    ),
    "desired above max": (
        {"scalingConfig": {"minSize": 0, "maxSize": 1, "desiredSize": 2}},
        PARAMETER,
        "greater than max size 1",
    ),
    "more nodes than the quota": (
        {"scalingConfig": {"minSize": 0, "maxSize": 451, "desiredSize": 0}},
        "ResourceLimitExceededException",
        "450",
    ),
    "both forms of maxUnavailable": (
        {"updateConfig": {"maxUnavailable": 1, "maxUnavailablePercentage": 10}},
        PARAMETER,
        "cannot have both",
    ),
    "101 at once": ({"updateConfig": {"maxUnavailable": 101}}, PARAMETER, "at most 100"),
    "percentage above 100": ({"updateConfig": {"maxUnavailablePercentage": 101}}, PARAMETER, "at most 100"),
    "strategy unknown": ({"updateConfig": {"updateStrategy": "FAST"}}, PARAMETER, "updateStrategy"),
    "both thresholds": (
        {"nodeRepairConfig": {"maxUnhealthyNodeThresholdCount": 1, "maxUnhealthyNodeThresholdPercentage": 1}},
        PARAMETER,
        "cannot have both",
    ),
    "role is no ARN": ({"nodeRole": "nodes"}, PARAMETER, "not the ARN"),
    "role of another account": (
        {"nodeRole": "arn:aws:iam::999999999999:role/x"},
        "AccessDeniedException",
        "Cross-account",
    ),
    "role of the cluster": (
        {"nodeRole": f"arn:aws:iam::{ACCOUNT}:role/{NAME}-eksClusterRole"},
        PARAMETER,
        "ec2.amazonaws.com",
    ),
    "no subnet": ({"subnets": []}, PARAMETER, "subnets cannot be empty"),
    "subnet unknown": ({"subnets": ["subnet-0"]}, REQUEST, "does not exist"),
    "type unknown": ({"instanceTypes": ["p9.huge"]}, PARAMETER, "do not exist"),
    "21 types": ({"instanceTypes": list(TYPES)[:21], "amiType": None}, PARAMETER, "at most 20"),
    "two architectures": (
        {"instanceTypes": ["g4dn.xlarge", "g5g.xlarge"], "amiType": None},
        PARAMETER,
        "different architectures",
    ),
    "NVIDIA image on a CPU": (
        {"instanceTypes": ["m5.large"]},
        PARAMETER,
        f"[m5.large] is not a valid instance type for requested amiType {NVIDIA}",
    ),
    "NVIDIA image on AMD": ({"instanceTypes": ["g4ad.xlarge"]}, PARAMETER, "[g4ad.xlarge]"),
    "stock NVIDIA image on g7": ({"instanceTypes": ["g7.2xlarge"]}, PARAMETER, "[g7.2xlarge]"),
    "x86 image on arm": ({"instanceTypes": ["g5g.xlarge"]}, PARAMETER, "[g5g.xlarge]"),
    "Bottlerocket for arm on Grace": (
        {"instanceTypes": ["p6e-gb200.36xlarge"], "amiType": "BOTTLEROCKET_ARM_64_NVIDIA"},
        PARAMETER,
        "p6e-gb200",
    ),
    "AL2 today": ({"amiType": "AL2_x86_64_GPU"}, PARAMETER, "1.32 or earlier"),
    "disk smaller than the image": ({"diskSize": 10}, REQUEST, "Volume of size 10GB is smaller than snapshot"),
    "another Kubernetes version": ({"version": "1.33"}, PARAMETER, "cluster's version 1.34"),
    "a release of another version": ({"releaseVersion": "1.33.1-20260714"}, PARAMETER, "release version"),
    "id and name of a template": (
        {"launchTemplate": {"id": "lt-0", "name": "x"}},
        PARAMETER,
        "Either provide launch template ID or launch template name",
    ),
    "template unknown": ({"launchTemplate": {"name": "nobody"}}, REQUEST, "could not be found"),
    "capacity block without template": ({"capacityType": "CAPACITY_BLOCK"}, PARAMETER, "capacity-block"),
    "image of one's own without template": ({"amiType": "CUSTOM"}, PARAMETER, "needs a launch template"),
}


@pytest.mark.turns(3)
@pytest.mark.parametrize(("members", "code", "text"), CASES.values(), ids=CASES)
def test_create_when_a_rule_is_broken_then_refused_as_eks_does(
    aws: Aws, members: dict[str, Any], code: str, text: str
) -> None:
    rest = {key: value for key, value in members.items() if key != "name"}
    found = refused(aws, str(members.get("name", "gpu")), **rest)
    assert (found[0], text in found[1]) == (code, True), found
    assert found[2] == (403 if code == "AccessDeniedException" else 400)
    assert aws.eks.list_nodegroups(clusterName=NAME)["nodegroups"] == ["system"]


BLOCK: dict[str, Any] = {
    "InstanceMarketOptions": {"MarketType": "capacity-block"},
    "CapacityReservationSpecification": {"CapacityReservationTarget": {"CapacityReservationId": "cr-1"}},
    "InstanceType": "p5.48xlarge",
}
WITHOUT_TYPES: dict[str, Any] = {"instanceTypes": None, "capacityType": "CAPACITY_BLOCK"}
OPEN = {"CapacityReservationPreference": "open"}
TEMPLATES: dict[str, tuple[dict[str, Any], dict[str, Any], str, str]] = {
    "disk in both": ({}, {"diskSize": 50}, PARAMETER, "Disk size must be specified within the launch template."),
    "ssh": ({}, {"remoteAccess": {"ec2SshKey": "k"}}, PARAMETER, "Remote access configuration cannot be specified"),
    "type in both": (
        {"InstanceType": "g4dn.xlarge"},
        {},
        REQUEST,
        "Cannot specify instance types in launch template",
    ),
    "image and amiType": ({"ImageId": "ami-1"}, {}, PARAMETER, "an AMI Type other than CUSTOM"),
    "image and version": (
        {"ImageId": "ami-1"},
        {"amiType": None, "version": "1.34"},
        PARAMETER,
        "cannot specify a kubernetes version",
    ),
    "CUSTOM without image": ({}, {"amiType": "CUSTOM"}, PARAMETER, "needs a launch template that specifies an image"),
    "instance profile": ({"IamInstanceProfile": {"Name": "x"}}, {}, PARAMETER, "IAM instance profile"),
    "hibernation": ({"HibernationOptions": {"Configured": True}}, {}, PARAMETER, "hibernation"),
    "shutdown": ({"InstanceInitiatedShutdownBehavior": "terminate"}, {}, PARAMETER, "shutdown"),
    "subnet": ({"NetworkInterfaces": [{"DeviceIndex": 0, "SubnetId": "subnet-1"}]}, {}, PARAMETER, "subnet"),
    "spot": ({"InstanceMarketOptions": {"MarketType": "spot"}}, {}, PARAMETER, "spot market"),
    "block without market": (
        {"InstanceType": "p5.48xlarge"},
        WITHOUT_TYPES,
        PARAMETER,
        "market type capacity-block",
    ),
    "block without reservation": (
        {**BLOCK, "CapacityReservationSpecification": OPEN},
        WITHOUT_TYPES,
        PARAMETER,
        "reservation id",
    ),
    "block of a reservation that there is not": (
        BLOCK,
        WITHOUT_TYPES,
        REQUEST,
        "cr-1 does not exist",
    ),
    "block with its type outside": (
        {key: BLOCK[key] for key in list(BLOCK)[:2]},
        {"instanceTypes": ["p5.48xlarge"], "capacityType": "CAPACITY_BLOCK"},
        PARAMETER,
        "exactly one instance type",
    ),
    "warm pool": (
        {"ImageId": "ami-1"},
        {"amiType": None, "warmPoolConfig": {"enabled": True}},
        PARAMETER,
        "warmPoolConfig",
    ),
    "no such version": ({}, {"version_asked": "7"}, REQUEST, "has no version 7"),
}


@pytest.mark.parametrize(("data", "members", "code", "text"), TEMPLATES.values(), ids=TEMPLATES)
def test_create_when_the_template_does_not_fit_then_refused(
    aws: Aws, data: dict[str, Any], members: dict[str, Any], code: str, text: str
) -> None:
    template = aws.template(**data) | ({"version": members["version_asked"]} if "version_asked" in members else {})
    rest = {key: value for key, value in members.items() if key != "version_asked"}
    found = refused(aws, "gpu", launchTemplate=template, **rest)
    assert (found[0], text in found[1]) == (code, True), found


IN_A: dict[str, Any] = {"id": "cr-1", "type": "p5.48xlarge", "zone": "a", "block": True, "count": 2}


SOON: dict[str, Any] = {"id": "cr-4", "type": "g4dn.xlarge", "zone": "b", "count": 9, "state": "scheduled"}


@pytest.fixture
def reserved(sandbox: SandboxInfo) -> Aws:
    """A cluster in an account with a Capacity Block, and an old reservation in a resource group."""
    old = {"id": "cr-2", "type": "g4dn.xlarge", "zone": "b", "count": 1, "groups": ["arn:aws:x:group/y"]}
    daemon.add_eks_cluster(sandbox, ACCOUNT, REGION, NAME, options={"reservations": [IN_A, old, SOON]})
    return Aws(sandbox)


def subnets_in(aws: Aws, zone: str) -> list[str]:
    wanted = [{"Name": "availability-zone", "Values": [f"{REGION}{zone}"]}]
    return [one["SubnetId"] for one in aws.client("ec2").describe_subnets(Filters=wanted)["Subnets"]]


def test_create_when_the_template_is_whole_then_a_capacity_block_is_taken(reserved: Aws) -> None:
    here = {"launchTemplate": reserved.template(**BLOCK), "subnets": subnets_in(reserved, "a")}
    reserved.ask("block", **WITHOUT_TYPES, **here)
    group = reserved.settled("block")
    assert (group["status"], group["capacityType"], "instanceTypes" in group) == ("ACTIVE", "CAPACITY_BLOCK", False)


@pytest.mark.parametrize(
    ("data", "zone", "text"),
    [
        (BLOCK, "b", "must be in the Availability Zone us-east-1a"),
        ({**BLOCK, "InstanceType": "p5.4xlarge"}, "a", "holds p5.48xlarge"),
    ],
    ids=["another zone", "another type"],
)
def test_create_when_the_block_is_otherwise_then_refused(
    reserved: Aws, data: dict[str, Any], zone: str, text: str
) -> None:
    here = {"launchTemplate": reserved.template(**data), "subnets": subnets_in(reserved, zone)}
    found = refused(reserved, "block", **WITHOUT_TYPES, **here)
    assert (found[0], text in found[1]) == (PARAMETER, True), found


@pytest.mark.parametrize(
    ("target", "zone", "count", "said"),
    [
        ({"CapacityReservationId": "cr-2"}, "b", 1, ""),
        ({"CapacityReservationResourceGroupArn": "arn:aws:x:group/y"}, "b", 1, ""),
        ({"CapacityReservationId": "cr-2"}, "a", 1, "ReservationCapacityExceeded"),
        ({"CapacityReservationId": "cr-2"}, "b", 2, "ReservationCapacityExceeded"),
        ({"CapacityReservationId": "cr-3"}, "b", 1, "InvalidCapacityReservationId.NotFound"),
        ({"CapacityReservationId": "cr-4"}, "b", 1, "ReservationCapacityExceeded"),
    ],
    ids=["its id", "its group", "another zone", "too many", "unknown", "not active yet"],
)
def test_create_when_a_reservation_is_targeted_then_its_room_decides(
    reserved: Aws, target: dict[str, str], zone: str, count: int, said: str
) -> None:
    data: dict[str, Any] = {"CapacityReservationSpecification": {"CapacityReservationTarget": target}}
    sizes = {"minSize": count, "maxSize": count, "desiredSize": count}
    template = reserved.template(**data)
    reserved.ask("odcr", launchTemplate=template, subnets=subnets_in(reserved, zone), scalingConfig=sizes)
    group = reserved.settled("odcr")
    issues = group["health"]["issues"]
    assert (group["status"], said in str(issues)) == ("CREATE_FAILED" if said else "ACTIVE", True)


def test_reservations_when_an_option_is_misspelt_then_no_cluster_is_made(sandbox: SandboxInfo) -> None:
    with pytest.raises(daemon.SandboxError, match="unknown key size of a reservation"):
        daemon.add_eks_cluster(sandbox, ACCOUNT, REGION, NAME, options={"reservations": [{**IN_A, "size": 2}]})


def test_reservations_when_described_are_told_by_id(reserved: Aws) -> None:
    ec2 = reserved.client("ec2")
    (found,) = ec2.describe_capacity_reservations(CapacityReservationIds=["cr-1"])["CapacityReservations"]
    shown = found["AvailabilityZone"], found["InstanceType"], found["ReservationType"], found["State"]
    assert shown == ("us-east-1a", "p5.48xlarge", "capacity-block", "active")
    with pytest.raises(ClientError, match="does not exist"):
        ec2.describe_capacity_reservations(CapacityReservationIds=["cr-9"])


def test_create_when_bottlerocket_shall_hibernate_then_refused(aws: Aws) -> None:
    warm = {"enabled": True, "poolState": "HIBERNATED"}
    found = refused(aws, "gpu", amiType="BOTTLEROCKET_x86_64_NVIDIA", warmPoolConfig=warm)
    assert found[0] == PARAMETER
    assert "HIBERNATED" in found[1]


def test_create_when_the_quota_of_groups_is_reached_then_refused(sandbox: SandboxInfo) -> None:
    daemon.add_eks_cluster(sandbox, ACCOUNT, REGION, NAME, options={"groupQuota": 1})
    assert refused(Aws(sandbox), "gpu")[0] == "ResourceLimitExceededException"


def test_create_when_the_cluster_is_not_active_then_refused(sandbox: SandboxInfo) -> None:
    daemon.add_eks_cluster(sandbox, ACCOUNT, REGION, NAME, options={"status": "UPDATING"})
    found = refused(Aws(sandbox), "gpu")
    assert found[:2] == (REQUEST, f"Cluster '{NAME}' is not in ACTIVE status")


UPDATES: dict[str, tuple[dict[str, Any], str]] = {
    "nothing": ({}, "No changes needed"),
    "reserved label": ({"labels": {"addOrUpdateLabels": {"k8s.io/x": "y"}}}, "reserved prefixes"),
    "odd effect": ({"taints": {"addOrUpdateTaints": [{"key": "a", "effect": "No"}]}}, "effect"),
    "min above the desired that stays": ({"scalingConfig": {"minSize": 2, "maxSize": 3}}, "desired size 1"),
    "max below the desired that stays": (
        {"scalingConfig": {"minSize": 0, "maxSize": 1, "desiredSize": 2}},
        "max size 1",
    ),
    "two forms": ({"updateConfig": {"maxUnavailable": 1, "maxUnavailablePercentage": 1}}, "cannot have both"),
    "not how many": ({"updateConfig": {"updateStrategy": "MINIMAL"}}, "must have maxUnavailable"),
}


@pytest.mark.parametrize(("change", "text"), UPDATES.values(), ids=UPDATES)
def test_update_when_a_rule_is_broken_then_refused_and_nothing_changes(
    aws: Aws, change: dict[str, Any], text: str
) -> None:
    before = aws.group("system")
    with pytest.raises(aws.eks.exceptions.InvalidParameterException, match=text):
        aws.eks.update_nodegroup_config(clusterName=NAME, nodegroupName="system", **change)
    assert aws.group("system") == before


def test_error_when_of_a_node_group_then_it_says_which(aws: Aws) -> None:
    with pytest.raises(aws.eks.exceptions.ResourceNotFoundException) as caught:
        aws.group("nobody")
    assert caught.value.response["clusterName"] == NAME
    assert caught.value.response["nodegroupName"] == "nobody"
    assert caught.value.response["ResponseMetadata"]["HTTPHeaders"]["x-amzn-errortype"] == "ResourceNotFoundException"
    assert caught.value.response["ResponseMetadata"]["RequestId"]


def test_create_when_scaling_is_left_out_then_taken(aws: Aws) -> None:
    assert aws.ask("gpu", scalingConfig=None)["scalingConfig"] != ONE
