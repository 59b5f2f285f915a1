"""EC2 by boto3: launch templates, subnets, instance types, zones."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from gpukube_sandbox import daemon
from sandbox_tests.eks.aws import DISK, NAME, REGION, Aws

FULL: dict[str, Any] = {
    "BlockDeviceMappings": [
        {
            "DeviceName": "/dev/xvda",
            "Ebs": {
                "VolumeSize": 200,
                "VolumeType": "gp3",
                "Iops": 4000,
                "Throughput": 250,
                "Encrypted": True,
                "DeleteOnTermination": True,
            },
        }
    ],
    "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 2, "HttpEndpoint": "enabled"},
    "TagSpecifications": [{"ResourceType": "instance", "Tags": [{"Key": "Name", "Value": "a & <b>"}]}],
    "SecurityGroupIds": ["sg-1", "sg-2"],
    "UserData": "c2V0dGluZ3M=",
    "InstanceMarketOptions": {"MarketType": "capacity-block"},
    "CapacityReservationSpecification": {"CapacityReservationTarget": {"CapacityReservationId": "cr-1"}},
    "Placement": {"GroupName": "pg", "AvailabilityZoneId": "use1-az1"},
    "InstanceType": "p5.48xlarge",
    "NetworkPerformanceOptions": {"BandwidthWeighting": "vpc-1"},
    "LicenseSpecifications": [{"LicenseConfigurationArn": "arn:aws:license-manager:us-east-1:1:license:x"}],
    "Monitoring": {"Enabled": True},
    "EbsOptimized": True,
}
CARDS = [
    {"DeviceIndex": 0, "NetworkCardIndex": 0, "InterfaceType": "efa", "Groups": ["sg-1"], "DeleteOnTermination": True},
    {
        "DeviceIndex": 1,
        "NetworkCardIndex": 1,
        "InterfaceType": "efa-only",
        "Groups": ["sg-1", "sg-2"],
        "ConnectionTrackingSpecification": {"TcpEstablishedTimeout": 600},
        "EnaSrdSpecification": {"EnaSrdEnabled": True, "EnaSrdUdpSpecification": {"EnaSrdUdpEnabled": False}},
    },
]


def code(error: pytest.ExceptionInfo[ClientError]) -> str:
    """Code of an error."""
    return str(error.value.response["Error"]["Code"])


@pytest.mark.parametrize("data", [FULL, {"NetworkInterfaces": CARDS}], ids=["everything", "network cards"])
def test_template_when_made_then_read_back_as_it_was_sent(aws: Aws, data: dict[str, Any]) -> None:
    ec2 = aws.client("ec2")
    made = ec2.create_launch_template(LaunchTemplateName="gpukube-x", VersionDescription="d", LaunchTemplateData=data)
    identity = made["LaunchTemplate"]["LaunchTemplateId"]
    (version,) = ec2.describe_launch_template_versions(LaunchTemplateId=identity)["LaunchTemplateVersions"]
    assert version["LaunchTemplateData"] == data
    assert (version["VersionNumber"], version["DefaultVersion"], version["VersionDescription"]) == (1, True, "d")


def test_template_when_its_name_is_taken_then_refused_but_its_token_gives_the_same(aws: Aws) -> None:
    ec2 = aws.client("ec2")
    given: dict[str, Any] = {"LaunchTemplateName": "gpukube-x", "LaunchTemplateData": {"BlockDeviceMappings": [DISK]}}
    tags = [{"ResourceType": "launch-template", "Tags": [{"Key": "owner", "Value": "ml"}]}]
    first = ec2.create_launch_template(**given, ClientToken="t1", TagSpecifications=tags)["LaunchTemplate"]
    again = ec2.create_launch_template(**given, ClientToken="t1", TagSpecifications=tags)["LaunchTemplate"]
    assert again["LaunchTemplateId"] == first["LaunchTemplateId"]
    assert first["Tags"] == [{"Key": "owner", "Value": "ml"}]
    with pytest.raises(ClientError) as taken:
        ec2.create_launch_template(**given, ClientToken="t2")
    assert code(taken) == "InvalidLaunchTemplateName.AlreadyExistsException"
    with pytest.raises(ClientError) as other:
        ec2.create_launch_template(**{**given, "LaunchTemplateName": "gpukube-y"}, ClientToken="t1")
    assert code(other) == "IdempotentParameterMismatch"


def test_template_when_found_by_name_tag_or_id_then_the_same(aws: Aws) -> None:
    ec2 = aws.client("ec2")
    tags = [{"ResourceType": "launch-template", "Tags": [{"Key": "gpukube.io/owner", "Value": "ml"}]}]
    data = {"BlockDeviceMappings": [DISK]}
    ec2.create_launch_template(LaunchTemplateName="a-1", LaunchTemplateData=data, TagSpecifications=tags)
    ec2.create_launch_template(LaunchTemplateName="b-1", LaunchTemplateData=data)

    def names(**query: object) -> list[str]:
        return [entry["LaunchTemplateName"] for entry in ec2.describe_launch_templates(**query)["LaunchTemplates"]]

    assert names() == ["a-1", "b-1"]
    assert names(LaunchTemplateNames=["b-1"]) == ["b-1"]
    assert names(Filters=[{"Name": "tag:gpukube.io/owner", "Values": ["ml"]}]) == ["a-1"]
    assert names(Filters=[{"Name": "tag-key", "Values": ["gpukube.io/*"]}]) == ["a-1"]
    assert names(Filters=[{"Name": "launch-template-name", "Values": ["b-*"]}]) == ["b-1"]
    assert Aws(aws.info, region="eu-west-1").client("ec2").describe_launch_templates()["LaunchTemplates"] == []


def test_template_when_it_gets_versions_then_latest_and_default_are_told_apart(aws: Aws) -> None:
    ec2, made = aws.client("ec2"), aws.template("gpukube-x")
    identity = made["id"]
    sent = {"LaunchTemplateId": identity, "LaunchTemplateData": {"KeyName": "k"}, "ClientToken": "v"}
    second = ec2.create_launch_template_version(**sent, SourceVersion="1")["LaunchTemplateVersion"]
    assert second["VersionNumber"] == 2
    assert second["LaunchTemplateData"] == {"BlockDeviceMappings": [DISK], "KeyName": "k"}
    again = ec2.create_launch_template_version(**sent, SourceVersion="1")["LaunchTemplateVersion"]
    assert again["VersionNumber"] == 2

    def number(version: str) -> int:
        found = ec2.describe_launch_template_versions(LaunchTemplateId=identity, Versions=[version])
        return int(found["LaunchTemplateVersions"][0]["VersionNumber"])

    assert (number("$Latest"), number("$Default"), number("1")) == (2, 1, 1)
    ec2.modify_launch_template(LaunchTemplateId=identity, DefaultVersion="2")
    assert number("$Default") == 2
    with pytest.raises(ClientError) as caught:
        number("9")
    assert code(caught) == "InvalidLaunchTemplateId.VersionNotFound"
    (entry,) = ec2.describe_launch_templates()["LaunchTemplates"]
    assert (entry["LatestVersionNumber"], entry["DefaultVersionNumber"]) == (2, 2)


def test_template_when_deleted_then_gone_and_again_not_found(aws: Aws) -> None:
    ec2, made = aws.client("ec2"), aws.template("gpukube-x")
    ec2.delete_launch_template(LaunchTemplateName="gpukube-x")
    with pytest.raises(ClientError) as by_id:
        ec2.delete_launch_template(LaunchTemplateId=made["id"])
    with pytest.raises(ClientError) as by_name:
        ec2.describe_launch_templates(LaunchTemplateNames=["gpukube-x"])
    assert code(by_id) == "InvalidLaunchTemplateId.NotFound"
    assert code(by_name) == "InvalidLaunchTemplateName.NotFoundException"


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no data": ({}, "MissingParameter"),
    "disk type": ({"BlockDeviceMappings": [{"Ebs": {"VolumeType": "fast"}}]}, "InvalidParameterValue"),
    "throughput on gp2": (
        {"BlockDeviceMappings": [{"Ebs": {"VolumeType": "gp2", "Throughput": 200}}]},
        "InvalidParameterCombination",
    ),
    "throughput too small": (
        {"BlockDeviceMappings": [{"Ebs": {"VolumeType": "gp3", "Throughput": 1}}]},
        "InvalidParameterValue",
    ),
    "no disk at all": ({"BlockDeviceMappings": [{"Ebs": {"VolumeSize": 0}}]}, "InvalidParameterValue"),
    "hops": ({"MetadataOptions": {"HttpPutResponseHopLimit": 65}}, "InvalidParameterValue"),
    "user data as text": ({"UserData": "settings = 1"}, "InvalidUserData.Malformed"),
    "user data too long": ({"UserData": "YWFh" * 6000}, "InvalidUserData.Malformed"),
    "groups twice": (
        {"SecurityGroupIds": ["sg-1"], "NetworkInterfaces": CARDS},
        "InvalidParameterCombination",
    ),
    "a member that is not emulated": (
        {"InstanceRequirements": {"VCpuCount": {"Min": 1}, "MemoryMiB": {"Min": 1}}},
        "UnknownParameter",
    ),
}


@pytest.mark.parametrize(("data", "expected"), WRONG.values(), ids=WRONG)
def test_template_when_ec2_would_not_take_it_then_refused(aws: Aws, data: dict[str, Any], expected: str) -> None:
    with pytest.raises(ClientError) as caught:
        aws.client("ec2").create_launch_template(LaunchTemplateName="gpukube-x", LaunchTemplateData=data)
    assert code(caught) == expected


@pytest.mark.parametrize("name", ["ab", "x" * 129, "with blank", "star*"])
def test_template_when_its_name_is_odd_then_refused(aws: Aws, name: str) -> None:
    with pytest.raises(ClientError) as caught:
        aws.template(name)
    assert code(caught) == "InvalidLaunchTemplateName.MalformedException"


def test_subnets_when_listed_then_of_the_vpc_with_zone_and_kind(aws: Aws) -> None:
    ec2 = aws.client("ec2")
    config = aws.eks.describe_cluster(name=NAME)["cluster"]["resourcesVpcConfig"]
    found = ec2.describe_subnets(SubnetIds=config["subnetIds"])["Subnets"]
    assert {subnet["VpcId"] for subnet in found} == {config["vpcId"]}
    assert sum(subnet["MapPublicIpOnLaunch"] for subnet in found) == 3
    assert {subnet["AvailabilityZone"] for subnet in found} == {f"{REGION}{letter}" for letter in "abc"}
    private = ec2.describe_subnets(Filters=[{"Name": "tag:kubernetes.io/role/internal-elb", "Values": ["1"]}])
    assert len(private["Subnets"]) == 3
    public = ec2.describe_subnets(Filters=[{"Name": "map-public-ip-on-launch", "Values": ["true"]}])
    assert len(public["Subnets"]) == 3
    with pytest.raises(ClientError) as caught:
        ec2.describe_subnets(SubnetIds=["subnet-9"])
    assert code(caught) == "InvalidSubnetID.NotFound"


def test_subnets_when_given_by_the_test_then_those(aws: Aws) -> None:
    subnets = [{"id": "subnet-aa", "zone": "us-east-1a"}, {"id": "subnet-bb", "zone": "b", "listed": False}]
    daemon.add_eks_cluster(aws.info, "444455556666", REGION, "other", options={"subnets": subnets})
    other = Aws(aws.info, "444455556666")
    assert [s["SubnetId"] for s in other.client("ec2").describe_subnets()["Subnets"]] == ["subnet-aa", "subnet-bb"]
    config = other.eks.describe_cluster(name="other")["cluster"]["resourcesVpcConfig"]
    assert config["subnetIds"] == ["subnet-aa"]


def test_types_when_described_then_gpus_as_ec2_counts_them(aws: Aws) -> None:
    ec2 = aws.client("ec2")
    names = ["p4d.24xlarge", "g6f.2xlarge", "g5g.xlarge", "g4ad.xlarge", "m5.large"]
    found = {
        entry["InstanceType"]: entry for entry in ec2.describe_instance_types(InstanceTypes=names)["InstanceTypes"]
    }

    def gpu(name: str) -> dict[str, Any]:
        (only,) = found[name]["GpuInfo"]["Gpus"]
        return dict(only)

    assert (gpu("p4d.24xlarge")["Count"], gpu("p4d.24xlarge")["MemoryInfo"]["SizeInMiB"]) == (8, 40960)
    fraction = gpu("g6f.2xlarge")
    assert (fraction["Count"], fraction["LogicalGpuCount"], fraction["GpuPartitionSize"]) == (0, 1, 0.25)
    assert found["g5g.xlarge"]["ProcessorInfo"]["SupportedArchitectures"] == ["arm64"]
    assert gpu("g4ad.xlarge")["Manufacturer"] == "AMD"
    assert "GpuInfo" not in found["m5.large"]
    assert found["p4d.24xlarge"]["NetworkInfo"]["EfaInfo"]["MaximumEfaInterfaces"] == 4
    with pytest.raises(ClientError) as caught:
        ec2.describe_instance_types(InstanceTypes=["m5.large", "p9.huge"])
    assert code(caught) == "InvalidInstanceType"
    everything = ec2.get_paginator("describe_instance_types").paginate(PaginationConfig={"PageSize": 20})
    assert len([entry for page in everything for entry in page["InstanceTypes"]]) > 60


def test_offerings_when_by_zone_then_scarce_types_are_not_everywhere(aws: Aws) -> None:
    ec2 = aws.client("ec2")
    found = ec2.describe_instance_type_offerings(
        LocationType="availability-zone", Filters=[{"Name": "instance-type", "Values": ["p5.48xlarge"]}]
    )["InstanceTypeOfferings"]
    assert [entry["Location"] for entry in found] == [f"{REGION}a"]
    zones = ec2.describe_availability_zones()["AvailabilityZones"]
    assert [zone["ZoneName"] for zone in zones] == [f"{REGION}a", f"{REGION}b", f"{REGION}c"]


def test_call_when_not_emulated_then_it_says_so(aws: Aws) -> None:
    with pytest.raises(ClientError, match="does not emulate ec2 DescribeVpcs"):
        aws.client("ec2").describe_vpcs()
    with pytest.raises(ClientError, match="does not emulate POST /clusters"):
        aws.eks.create_cluster(name="x", roleArn="r", resourcesVpcConfig={})


def test_call_when_a_dry_run_then_only_said_so(aws: Aws) -> None:
    with pytest.raises(ClientError) as caught:
        aws.client("ec2").create_launch_template(
            LaunchTemplateName="gpukube-x", LaunchTemplateData={"KeyName": "k"}, DryRun=True
        )
    assert code(caught) == "DryRunOperation"
    assert aws.client("ec2").describe_launch_templates()["LaunchTemplates"] == []


def test_tags_when_put_on_a_scaling_group_then_read_back(aws: Aws) -> None:
    scaling, asg = aws.client("autoscaling"), aws.group("system")["resources"]["autoScalingGroups"][0]["name"]
    key = "k8s.io/cluster-autoscaler/node-template/resources/nvidia.com/gpu"
    tag = {
        "ResourceId": asg,
        "ResourceType": "auto-scaling-group",
        "Key": key,
        "Value": "4",
        "PropagateAtLaunch": False,
    }
    scaling.create_or_update_tags(Tags=[tag])
    found = scaling.describe_tags(Filters=[{"Name": "key", "Values": [key]}])["Tags"]
    assert [(entry["ResourceId"], entry["Value"]) for entry in found] == [(asg, "4")]
    for wrong in ([{**tag, "ResourceId": "nobody"}], [{**tag, "Key": f"k{i}"} for i in range(26)]):
        with pytest.raises(ClientError, match="ValidationError"):
            scaling.create_or_update_tags(Tags=wrong)
