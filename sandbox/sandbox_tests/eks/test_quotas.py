"""Quotas of EC2 in the emulated AWS: what is read of them is what launches are held to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube_sandbox import daemon
from sandbox_tests.eks.aws import ACCOUNT, NAME, REGION

if TYPE_CHECKING:
    from gpukube_sandbox.daemon import SandboxInfo
    from sandbox_tests.eks.aws import Aws

G = "L-DB2E81BA"


def allow(sandbox: SandboxInfo, **quotas: int) -> list[str]:
    named = {code.replace("_", "-"): value for code, value in quotas.items()}
    return daemon.declare(sandbox, "eks", account=ACCOUNT, region=REGION, quotas=named)


def sized(count: int) -> dict[str, int]:
    return {"minSize": 0, "maxSize": 9, "desiredSize": count}


def test_quota_when_nobody_set_it_then_of_ec2_alone_it_applies_and_both_calls_say_the_same(
    sandbox: SandboxInfo, aws: Aws
) -> None:
    client, groups = aws.client("service-quotas"), "L-6D54EA21"
    assert client.get_service_quota(ServiceCode="ec2", QuotaCode=G)["Quota"]["Value"] == 100000
    with pytest.raises(client.exceptions.NoSuchResourceException):
        client.get_service_quota(ServiceCode="eks", QuotaCode=groups)
    assert client.list_service_quotas(ServiceCode="eks")["Quotas"] == []
    assert client.get_aws_default_service_quota(ServiceCode="eks", QuotaCode=groups)["Quota"]["Value"] == 30
    default = client.get_aws_default_service_quota(ServiceCode="ec2", QuotaCode=G)["Quota"]
    assert (default["QuotaName"], default["Value"]) == ("Running On-Demand G and VT instances", 100000.0)
    assert allow(sandbox, L_DB2E81BA=8) == ["quota L-DB2E81BA of 8"]
    assert client.get_service_quota(ServiceCode="ec2", QuotaCode=G)["Quota"]["Value"] == 8
    listed = client.list_service_quotas(ServiceCode="ec2")["Quotas"]
    assert [quota["Value"] for quota in listed if quota["QuotaCode"] == G] == [8]


def test_launch_when_the_quota_is_full_then_none_beyond_it(sandbox: SandboxInfo, aws: Aws) -> None:
    allow(sandbox, L_DB2E81BA=8)
    daemon.configure(sandbox, eksPace={"give_up_s": 1.0})
    assert aws.create("full", scalingConfig=sized(2))["status"] == "ACTIVE"
    pages = aws.client("ec2").describe_instances(
        Filters=[
            {"Name": "instance-type", "Values": ["g*"]}, {"Name": "instance-state-name", "Values": ["running"]}
        ]
    )  # fmt: skip
    found = [one for entry in pages["Reservations"] for one in entry["Instances"]]
    assert [one["InstanceType"] for one in found] == ["g4dn.xlarge"] * 2
    assert sum(one["CpuOptions"]["CoreCount"] * one["CpuOptions"]["ThreadsPerCore"] for one in found) == 8
    beyond = aws.create("beyond")
    assert (beyond["status"], beyond["health"]["issues"][0]["code"]) == ("CREATE_FAILED", "AsgInstanceLaunchFailures")
    assert (
        "VcpuLimitExceeded - You have requested more vCPU capacity than your current vCPU limit of 8"
        in (beyond["health"]["issues"][0]["message"])
    )


def test_launch_when_bought_on_the_spot_market_then_that_quota_counts(sandbox: SandboxInfo, aws: Aws) -> None:
    allow(sandbox, L_DB2E81BA=0, L_C4BD4855=0)
    daemon.configure(sandbox, eksPace={"give_up_s": 1.0})
    spot = {"capacityType": "SPOT", "amiType": "AL2023_x86_64_NVIDIA"}
    assert aws.create("t4", instanceTypes=["g4dn.xlarge"], **spot)["status"] == "ACTIVE"
    beyond = aws.create("h100", instanceTypes=["p5.48xlarge"], **spot)
    assert "MaxSpotInstanceCountExceeded" in beyond["health"]["issues"][0]["message"]


def test_update_when_surge_does_not_fit_then_it_fails_and_the_group_stays(sandbox: SandboxInfo, aws: Aws) -> None:
    daemon.configure(sandbox, eksPace={"give_up_s": 1.0})
    aws.create("gpu")
    room = 2 * 3 * 4  # twice the zones of the subnets, in vCPUs

    def roll() -> str:
        sent = aws.eks.update_nodegroup_version(clusterName=NAME, nodegroupName="gpu")
        return str(aws.ended("gpu", sent["update"]["id"])["status"])

    allow(sandbox, L_DB2E81BA=room + 3)
    assert roll() == "Failed"
    allow(sandbox, L_DB2E81BA=room + 4)
    assert roll() == "Successful"


def test_group_when_the_cluster_has_as_many_as_the_quota_then_refused(sandbox: SandboxInfo, aws: Aws) -> None:
    client = aws.client("service-quotas")
    code = "L-6D54EA21"
    default = client.get_aws_default_service_quota(ServiceCode="eks", QuotaCode=code)["Quota"]
    assert (default["QuotaName"], default["Value"]) == ("Managed node groups per cluster", 30.0)
    allow(sandbox, L_6D54EA21=len(aws.eks.list_nodegroups(clusterName=NAME)["nodegroups"]))
    with pytest.raises(client.exceptions.ClientError, match="Maximum number of node groups"):
        aws.create("beyond")
