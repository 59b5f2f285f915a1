"""Requests that AWS refuses, each with the public source of the rule or of the words."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from sandbox_tests.eks.aws import ACCOUNT, NAME, Aws

if TYPE_CHECKING:
    from collections.abc import Callable

GITHUB = "https://github.com/"
TERRAFORM = f"{GITHUB}terraform-aws-modules/terraform-aws-eks/"
ERRORS = "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html"
EKS_TAGS = "https://docs.aws.amazon.com/eks/latest/userguide/eks-using-tags.html"
LABELS = f"{GITHUB}aws/containers-roadmap/issues/1451"
PARAMETER, REQUEST = "InvalidParameterException", "InvalidRequestException"


def shape(service: str, name: str) -> str:
    """Name a constraint of a service's model."""
    return f"{GITHUB}boto/botocore/tree/develop/botocore/data/{service}: {name}"


@dataclass(frozen=True)
class Row:
    """One request and its refusal.

    Attributes:
        words: A piece of the message.
        source: Where the rule or the words are public.
    """

    ask: Callable[[Aws], object]
    code: str
    words: str
    source: str


def group(code: str, words: str, source: str, **members: object) -> Row:
    return Row(lambda aws: aws.ask("gpu", **members), code, words, source)


def templated(words: str, source: str, data: dict[str, Any], code: str = PARAMETER, **members: object) -> Row:
    return Row(lambda aws: aws.ask("gpu", launchTemplate=aws.template(**data), **members), code, words, source)


def wired(words: str, source: str, *interfaces: dict[str, Any], kind: str = "p5.48xlarge", code: str = REQUEST) -> Row:
    """Ask for a group with these network interfaces."""
    return templated(words, source, {"NetworkInterfaces": [*interfaces]}, code=code, instanceTypes=[kind])


def volume(words: str, source: str, **parts: object) -> Row:
    """Ask for a group with this root volume."""
    return templated(words, source, {"BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": parts}]}, code=REQUEST)


def near(aws: Aws) -> object:
    aws.client("ec2").create_placement_group(GroupName="near", Strategy="cluster")
    template = aws.template(Placement={"GroupName": "near"})
    return aws.ask("cpu", amiType=None, instanceTypes=["t3.medium"], launchTemplate=template)


def call(operation: str, code: str, words: str, source: str, **members: object) -> Row:
    service, _, name = operation.partition(".")
    return Row(lambda aws: getattr(aws.client(service), name)(**members), code, words, source)


def kept(code: str, words: str, source: str, **data: object) -> Row:
    """Ask for a launch template."""
    where = "ec2.create_launch_template"
    return call(where, code, words, source, LaunchTemplateName="gpu", LaunchTemplateData=data)


def taint(words: str, source: str, **parts: str) -> Row:
    return group(PARAMETER, words, source, taints=[{"key": "a", "effect": "NO_SCHEDULE", **parts}])


FIRST: dict[str, Any] = {"NetworkCardIndex": 0, "DeviceIndex": 0, "InterfaceType": "interface"}
SECOND: dict[str, Any] = {"NetworkCardIndex": 1, "DeviceIndex": 0, "InterfaceType": "efa-only"}
GROUPS = {
    "an image type of nobody": group(
        PARAMETER, "not a valid value for amiType", shape("eks", "AMITypes"), amiType="AL2042"
    ),
    "a market of nobody": group(PARAMETER, "capacityType", shape("eks", "CapacityTypes"), capacityType="CHEAP"),
    "a taint's effect as Kubernetes has it": taint("NO_SCHEDULE", shape("eks", "TaintEffect"), effect="NoSchedule"),
    "a taint's key of 64": taint("taint key", shape("eks", "taintKey"), key="x" * 64),
    "a taint's value of 64": taint("taint value", shape("eks", "taintValue"), value="x" * 64),
    "a taint of Kubernetes": taint(
        "reserved prefixes", f"{GITHUB}alphagov/govuk-infrastructure/issues/1264", key="kubernetes.io/x"
    ),
    "a label's key of 64": group(
        PARAMETER, "between 1 and 63", shape("eks", "labelKey"), labels={"x" * 64: "y"}
    ),
    "a label's value of 64": group(
        PARAMETER, "between 1 and 63", shape("eks", "labelValue"), labels={"x": "y" * 64}
    ),
    "a label of Kubernetes": group(PARAMETER, "reserved prefixes [", LABELS, labels={"kubernetes.io/x": "y"}),
    "a label of EKS": group(
        PARAMETER, "reserved prefixes [", f"{GITHUB}eksctl-io/eksctl/issues/4006", labels={"eks.amazonaws.com/x": "y"}
    ),
    "51 tags": group(PARAMETER, "Too many tags", shape("eks", "TagMap"), tags={f"k{at}": "v" for at in range(51)}),
    "a tag's key of 129": group(PARAMETER, "too long", shape("eks", "TagKey"), tags={"k" * 129: "v"}),
    "a tag's value of 257": group(PARAMETER, "too long", shape("eks", "TagValue"), tags={"k": "v" * 257}),
    "a tag of AWS": group(PARAMETER, "reserved prefix aws:", EKS_TAGS, tags={"aws:x": "v"}),
    "101 percent at once": group(
        PARAMETER, "at most 100", shape("eks", "PercentCapacity"), updateConfig={"maxUnavailablePercentage": 101}
    ),
    "an update strategy of nobody": group(
        PARAMETER, "updateStrategy", shape("eks", "NodegroupUpdateStrategies"),
        updateConfig={"maxUnavailable": 1, "updateStrategy": "FAST"},
    ),
    "fewest above the wanted": group(
        PARAMETER, "Minimum capacity 4 can't be greater than desired size 3", f"{TERRAFORM}issues/748",
        scalingConfig={"minSize": 4, "maxSize": 5, "desiredSize": 3},
    ),
    "a type that the image is not for": group(
        PARAMETER, "is not a valid instance type for requested amiType AL2023_x86_64_NVIDIA",
        f"{GITHUB}eksctl-io/eksctl/issues/7754", instanceTypes=["m5.large"],
    ),
    "a disk below the image's": group(
        REQUEST, "is smaller than snapshot, expect size >= 20GB", f"{GITHUB}cilium/cilium/issues/43051", diskSize=10
    ),
    "a key pair that there is not": group(
        PARAMETER, "KeyPair mine not found", f"{TERRAFORM}issues/2208", remoteAccess={"ec2SshKey": "mine"}
    ),
    "a template by id and name": group(
        PARAMETER, "Either provide launch template ID or launch template name in the request.",
        f"{GITHUB}hashicorp/terraform-provider-aws/blob/main/internal/service/eks/node_group.go",
        launchTemplate={"id": "lt-0", "name": "x"},
    ),
    "a disk beside a template": templated(
        "Disk size must be specified within the launch template.",
        f"{GITHUB}crossplane-contrib/provider-upjet-aws/issues/866", {}, diskSize=50,
    ),
    "remote access beside a template": templated(
        "Remote access configuration cannot be specified with a launch template.",
        f"{GITHUB}getmoto/moto/blob/master/moto/eks/models.py", {}, remoteAccess={"ec2SshKey": "k"},
    ),
    "a type in both": templated(
        "Cannot specify instance types in launch template and API request", f"{TERRAFORM}issues/1386",
        {"InstanceType": "g4dn.xlarge"}, code=REQUEST,
    ),
    "an image of one's own and its type": templated(
        "You cannot specify an AMI Type other than CUSTOM, when specifying an image id in your launch template.",
        f"{GITHUB}rancher/eks-operator/issues/161", {"ImageId": "ami-1"},
    ),
    "an image of one's own and a version": templated(
        "You cannot specify a kubernetes version to use when specifying an image id to use within the launch template.",
        f"{TERRAFORM}issues/3459", {"ImageId": "ami-1"}, amiType=None, version="1.34",
    ),
    "an interface with a subnet": wired(
        "You must not specify a subnet in your launch template. All subnets must be specified in the API.",
        f"{TERRAFORM}issues/2256", {**FIRST, "SubnetId": "subnet-1"}, code=PARAMETER,
    ),
    "no interface on the first card": wired(
        "you must include a device at index 0 and network card at index 0",
        f"{GITHUB}aws/aws-parallelcluster/pull/5984", {**FIRST, "NetworkCardIndex": 1},
    ),
    "an interface without a place": wired(
        "Each network interface requires a device index.", f"{GITHUB}hashicorp/packer/pull/2242", FIRST,
        {"InterfaceType": "efa"},
    ),
    "a device that the card lacks": wired(
        "The specified number '2' for the device index exceeds the maximum number of network interfaces supported by "
        "the network card at network card index 2. The maximum devices for this network card is 2. Specify a number "
        "from 0 to 1, and try again.",
        f"{GITHUB}eksctl-io/eksctl/issues/7520", FIRST,
        {"NetworkCardIndex": 2, "DeviceIndex": 2, "InterfaceType": "efa-only"},
    ),
    "a card that the type lacks": wired(
        "network card index 32", f"{GITHUB}eksctl-io/eksctl/issues/8685", FIRST, {**SECOND, "NetworkCardIndex": 32}
    ),
    "EFA on a type without it": wired(
        "EFA interfaces are not supported on g6e.xlarge",
        f"{GITHUB}openshift/enhancements/blob/master/enhancements/machine-api/aws-efa-networking.md",
        {**FIRST, "InterfaceType": "efa"}, kind="g6e.xlarge",
    ),
    "EFA on the first card of a B300 machine": wired(
        "card index 0 of p6-b300.48xlarge supports no interface of type efa",
        f"{GITHUB}aws/aws-parallelcluster/issues/7143", {**FIRST, "InterfaceType": "efa"}, kind="p6-b300.48xlarge",
    ),
    "more EFA interfaces than the type has": wired(
        "exceeds the limit of 1 for p5.4xlarge", f"{GITHUB}eksctl-io/eksctl/issues/8685", FIRST,
        *({"DeviceIndex": at, "InterfaceType": "efa-only"} for at in (1, 2)), kind="p5.4xlarge",
    ),
    "EFA alone as the first interface": wired(
        "primary network interface", "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa.html",
        {**FIRST, "InterfaceType": "efa-only"},
    ),
    "an address on an interface of EFA alone": wired(
        "Ipv4PrefixCount cannot be specified", shape("ec2", "LaunchTemplateInstanceNetworkInterfaceSpecification"),
        FIRST, {**SECOND, "Ipv4PrefixCount": 1},
    ),
    "public addresses of several interfaces": wired(
        "The associatePublicIPAddress parameter cannot be specified when launching with multiple network interfaces",
        f"{GITHUB}zalando-incubator/kubernetes-on-aws/pull/8733", {**FIRST, "AssociatePublicIpAddress": True}, SECOND,
    ),
    "a key for a volume that is not encrypted": volume(
        "The parameter KmsKeyId requires the parameter Encrypted to be set.",
        f"{GITHUB}kubernetes/kubernetes/pull/31334", KmsKeyId="alias/gpu",
    ),
    "encryption of a volume with a snapshot": volume(
        "the encrypted flag cannot be specified since device /dev/xvda has a snapshot specified.",
        shape("ec2", "LaunchTemplateEbsBlockDeviceRequest"),
        Encrypted=True, SnapshotId="snap-1",
    ),
    "more operations than the volume's size allows": volume(
        "Iops to volume size ratio of 750.000000 is too high; maximum is 500", f"{GITHUB}rocicorp/mono/pull/4410",
        VolumeType="gp3", VolumeSize=20, Iops=15000,
    ),
    "more throughput than the operations allow": volume(
        "Throughput (MiBps) to iops ratio of 0.333333 is too high; maximum is 0.250000 MiBps per iops",
        f"{GITHUB}runs-on/runs-on/issues/260", VolumeType="gp3", Throughput=1000,
    ),
    "a volume of disks to boot from": volume(
        "The st1 volume type cannot be used for boot volumes.",
        "https://docs.aws.amazon.com/ebs/latest/userguide/ebs-volume-types.html", VolumeType="st1", VolumeSize=500,
    ),
    "a placement group that there is not": templated(
        "The Placement Group 'near' is unknown.", ERRORS, {"Placement": {"GroupName": "near"}}, code=REQUEST
    ),
    "machines with credits near each other": Row(
        near, REQUEST,
        "Cluster placement groups are not supported by the 't3.medium' instance type. Specify a supported instance "
        "type or change the placement group strategy, and try again.",
        "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/placement-strategies.html",
    ),
    "101 groups a page": call(
        "eks.list_nodegroups", PARAMETER, "maxResults", shape("eks", "ListNodegroupsRequestMaxResults"),
        clusterName=NAME, maxResults=101,
    ),
    "101 clusters a page": call(
        "eks.list_clusters", PARAMETER, "maxResults", shape("eks", "ListClustersRequestMaxResults"), maxResults=101
    ),
}  # fmt: skip
OTHERS = {
    "a template's name of two letters": call(
        "ec2.create_launch_template", "InvalidLaunchTemplateName.MalformedException",
        "A launch template name must be between 3 and 128 characters, and may contain letters, numbers, and the",
        f"{GITHUB}github-aws-runners/terraform-aws-github-runner/issues/932",
        LaunchTemplateName="a, b", LaunchTemplateData={"InstanceType": "g4dn.xlarge"},
    ),
    "a template without data": kept(
        "MissingParameter", "Launch template data is required to create a launch template.",
        f"{GITHUB}awsdocs/aws-cloudformation-user-guide/pull/453",
    ),
    "user data that is not base64": kept(
        "InvalidUserData.Malformed", "Invalid BASE64 encoding of user data.",
        f"{GITHUB}awslabs/ec2-spot-workshops/issues/15", UserData="***",
    ),
    "user data above 16 KiB": kept(
        "InvalidUserData.Malformed", "limited to 16384 bytes", ERRORS,
        UserData=base64.b64encode(b"x" * 16385).decode(),
    ),
    "an id of no template": call(
        "ec2.describe_launch_templates", "InvalidLaunchTemplateId.Malformed", "garbage", ERRORS,
        LaunchTemplateIds=["garbage"],
    ),
    "a template that there is not": call(
        "ec2.describe_launch_templates", "InvalidLaunchTemplateId.NotFound", "does not exist", ERRORS,
        LaunchTemplateIds=["lt-0123456789abcdef0"],
    ),
    "a template's name that there is not": call(
        "ec2.delete_launch_template", "InvalidLaunchTemplateName.NotFoundException", "does not exist", ERRORS,
        LaunchTemplateName="nobody",
    ),
    "201 templates a page": call(
        "ec2.describe_launch_templates", "InvalidParameterValue", "maxResults",
        shape("ec2", "DescribeLaunchTemplatesMaxResults"), MaxResults=201,
    ),
    "a placement group whose name is taken": Row(
        lambda aws: [aws.client("ec2").create_placement_group(GroupName="near", Strategy="cluster") for _ in "12"],
        "InvalidPlacementGroup.Duplicate", "The placement group 'near' already exists.",
        f"{GITHUB}cybertronai/ncluster/issues/35",
    ),
    "a placement group of nobody": call(
        "ec2.describe_placement_groups", "InvalidPlacementGroup.Unknown", "near", ERRORS, GroupNames=["near"]
    ),
    "deleting a placement group of nobody": call(
        "ec2.delete_placement_group", "InvalidPlacementGroup.Unknown", "near", ERRORS, GroupName="near"
    ),
    "security groups beside interfaces": kept(
        "InvalidParameterCombination",
        "Network interfaces and an instance-level security groups may not be specified on the same request",
        f"{GITHUB}aws/aws-cli/issues/518", SecurityGroupIds=["sg-1"], NetworkInterfaces=[{"DeviceIndex": 0}],
    ),
    "operations on gp2": kept(
        "InvalidParameterCombination", "The parameter iops is not supported for gp2 volumes.",
        f"{GITHUB}hashicorp/terraform-provider-aws/issues/4344",
        BlockDeviceMappings=[{"Ebs": {"VolumeType": "gp2", "Iops": 3000}}],
    ),
    "fewer operations than gp3 has": kept(
        "InvalidParameterValue", "iops", shape("ec2", "LaunchTemplateEbsBlockDeviceRequest"),
        BlockDeviceMappings=[{"Ebs": {"VolumeType": "gp3", "Iops": 2999}}],
    ),
    "io2 without operations": kept(
        "MissingParameter", "The request must contain the parameter iops",
        shape("ec2", "LaunchTemplateEbsBlockDeviceRequest"),
        BlockDeviceMappings=[{"Ebs": {"VolumeType": "io2", "VolumeSize": 100}}],
    ),
    "a volume above 64 TiB": kept(
        "InvalidParameterValue", "volumeSize", shape("ec2", "LaunchTemplateEbsBlockDeviceRequest"),
        BlockDeviceMappings=[{"Ebs": {"VolumeType": "gp3", "VolumeSize": 65537}}],
    ),
    "a key pair of nobody": call(
        "ec2.describe_key_pairs", "InvalidKeyPair.NotFound", "The key pair 'mine' does not exist",
        f"{GITHUB}awslabs/eks-perf-tests/issues/473", KeyNames=["mine"],
    ),
    "an id of no security group": call(
        "ec2.describe_security_groups", "InvalidGroupId.Malformed", 'Invalid id: "web" (expecting "sg-...")',
        f"{GITHUB}aws/aws-cdk/issues/20800", GroupIds=["web"],
    ),
    "a security group that there is not": call(
        "ec2.describe_security_groups", "InvalidGroup.NotFound", "The security group 'sg-1' does not exist",
        f"{GITHUB}boto/boto3/issues/701", GroupIds=["sg-1"],
    ),
    "a subnet that there is not": call(
        "ec2.describe_subnets", "InvalidSubnetID.NotFound", "subnet-1", ERRORS, SubnetIds=["subnet-1"]
    ),
    "an instance type of nobody": call(
        "ec2.describe_instance_types", "InvalidInstanceType", "p9.huge", ERRORS, InstanceTypes=["p9.huge"]
    ),
    "an instance that there is not": call(
        "ec2.describe_instances", "InvalidInstanceID.NotFound", "i-1", ERRORS, InstanceIds=["i-1"]
    ),
    "a role's name with a blank": call(
        "iam.get_role", "ValidationError",
        "The specified value for roleName is invalid. It must contain only alphanumeric characters and/or the "
        "following: +=,.@_-",
        f"{GITHUB}shashankprasanna/torchserve-examples/issues/7", RoleName="z z",
    ),
    "a role that there is not": call(
        "iam.get_role", "NoSuchEntity", "The role with name nobody cannot be found.",
        "https://docs.aws.amazon.com/IAM/latest/APIReference/API_GetRole.html", RoleName="nobody",
    ),
    "a quota that has its default only": call(
        "service-quotas.get_service_quota", "NoSuchResourceException", "doesn't exist",
        f"{GITHUB}aws/aws-cli/issues/6629", ServiceCode="eks", QuotaCode="L-6D54EA21",
    ),
    "a service without quotas": call(
        "service-quotas.list_service_quotas", "NoSuchResourceException", "doesn't exist",
        f"{GITHUB}aws/aws-cli/issues/4569", ServiceCode="EC2",
    ),
    "a parameter that there is not": call(
        "ssm.get_parameter", "ParameterNotFound", "", f"{GITHUB}awslabs/amazon-eks-ami/issues/531",
        Name="/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/nvidia/image_id",
    ),
    "eleven parameters": call(
        "ssm.get_parameters", "ValidationException", "length less than or equal to 10",
        shape("ssm", "ParameterNameList"), Names=[f"/p{at}" for at in range(11)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("row", [*GROUPS.values(), *OTHERS.values()], ids=[*GROUPS, *OTHERS])
def test_request_when_its_refusal_has_a_source_then_refused_with_that_code(aws: Aws, row: Row) -> None:
    with pytest.raises(ClientError) as caught:
        row.ask(aws)
    told = caught.value.response
    found = told["Error"]["Code"], told["ResponseMetadata"]["HTTPStatusCode"]
    assert found == (row.code, 404 if row.code == "NoSuchEntity" else 400), told
    assert row.words in told["Error"]["Message"], row.source


# queries that people use


def test_instances_when_filtered_by_their_group_then_its_machines_alone(aws: Aws) -> None:
    aws.create("gpu")
    wanted = [{"Name": "tag:eks:nodegroup-name", "Values": ["g?u"]}, {"Name": "tag-key", "Values": ["eks:*"]}]
    found = aws.client("ec2").describe_instances(Filters=wanted)["Reservations"]
    assert [one["InstanceType"] for entry in found for one in entry["Instances"]] == ["g4dn.xlarge"]
    with pytest.raises(ClientError, match="The filter 'colour' is invalid"):
        aws.client("ec2").describe_instances(Filters=[{"Name": "colour", "Values": ["red"]}])


def test_regions_and_zones_when_described_then_those_of_the_partition(aws: Aws) -> None:
    ec2 = aws.client("ec2")
    regions = {one["RegionName"] for one in ec2.describe_regions()["Regions"]}
    assert {"us-east-1", "eu-central-1"} <= regions
    assert "us-gov-east-1" not in regions
    named = ec2.describe_regions(Filters=[{"Name": "region-name", "Values": ["us-*"]}])["Regions"]
    assert {one["RegionName"] for one in named} == {name for name in regions if name.startswith("us-")}
    zones = ec2.describe_availability_zones(Filters=[{"Name": "zone-name", "Values": ["us-east-1a"]}])
    assert [zone["ZoneName"] for zone in zones["AvailabilityZones"]] == ["us-east-1a"]


def test_security_groups_when_described_then_the_clusters_own_is_there(aws: Aws) -> None:
    wanted = [{"Name": f"tag:kubernetes.io/cluster/{NAME}", "Values": ["owned"]}]
    (found,) = aws.client("ec2").describe_security_groups(Filters=wanted)["SecurityGroups"]
    cluster = aws.eks.describe_cluster(name=NAME)["cluster"]["resourcesVpcConfig"]
    assert (found["GroupId"], found["OwnerId"]) == (cluster["clusterSecurityGroupId"], ACCOUNT)


def test_versions_of_a_template_when_deleted_then_all_but_the_default_and_numbers_stay_used(aws: Aws) -> None:
    ec2, name = aws.client("ec2"), {"LaunchTemplateName": "gpukube-a"}
    aws.template()
    ec2.create_launch_template_version(**name, LaunchTemplateData={"InstanceType": "g4dn.xlarge"})
    told = ec2.delete_launch_template_versions(**name, Versions=["1", "2", "7"])
    assert [one["VersionNumber"] for one in told["SuccessfullyDeletedLaunchTemplateVersions"]] == [2]
    codes = [one["ResponseError"]["Code"] for one in told["UnsuccessfullyDeletedLaunchTemplateVersions"]]
    assert codes == ["unexpectedError", "launchTemplateVersionDoesNotExist"]
    made = ec2.create_launch_template_version(**name, LaunchTemplateData={"InstanceType": "g5.xlarge"})
    assert made["LaunchTemplateVersion"]["VersionNumber"] == 3


IMAGES = "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64"


def test_parameters_when_asked_for_then_images_and_releases_fit_each_other(aws: Aws) -> None:
    names = [f"{IMAGES}/nvidia/recommended{end}" for end in ("", "/image_id", "/release_version")]
    names += [
        f"{IMAGES}/standard/recommended/image_id",
        "/aws/service/bottlerocket/aws-k8s-1.34/x86_64/latest/image_id",
    ]
    told = aws.client("ssm").get_parameters(Names=[*names, "/nobody"])
    assert told["InvalidParameters"] == ["/nobody"]
    values = {one["Name"]: one["Value"] for one in told["Parameters"]}
    assert list(values) == names
    assert values[names[1]] in values[names[0]]
    assert values[names[2]].startswith("1.34.")
    assert values[names[2]] in values[names[0]]
    assert len({values[name] for name in (names[1], names[3], names[4])}) == 3
