"""Activities of an Auto Scaling group, or the health of its node group -> the newest launches."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from gpukube.core.launches import Launches
from gpukube.core.values import Settings
from gpukube.endpoint import Endpoint
from gpukube.errors import CloudError, GpukubeError, QuotaError, StockOut
from gpukube_eks.live.client import EksCloud
from gpukube_eks.pool.observe import observe_group
from tests.unit.gpukube_eks.fakes import FakeAws, Json, refusal
from tests.unit.gpukube_eks.samples import CLUSTER

ASG = "eks-h100-8ec1a2b3-1111-2222-3333-444455556666"
NOW = 1_800_000_000.0
STOCK = (
    "Could not launch On-Demand Instances. InsufficientInstanceCapacity - We currently do not have. Launching failed."
)
QUOTA = "VcpuLimitExceeded - You have requested more vCPU capacity than your limit. Launching EC2 instance failed."


@pytest.fixture
def aws() -> FakeAws:
    return FakeAws()


def activity(age_s: float, status: str, text: str = "", words: str = "Launching a new EC2 instance") -> Json:
    started = datetime.fromtimestamp(NOW - age_s, UTC)
    return {"StartTime": started, "StatusCode": status, "StatusMessage": text, "Description": words}


def launches(aws: FakeAws, *, health: Json | None = None, asg: str = ASG) -> Launches:
    resources = {"autoScalingGroups": [{"name": asg}]} if asg else {}
    group = {"nodegroupName": "h100", "status": "ACTIVE", "resources": resources, "health": health or {}}
    return EksCloud(CLUSTER, Settings(), Endpoint(), aws).launches(observe_group(group, {}, {}))


def test_launches_when_activities_failed_and_succeeded_are_the_newest_of_each(aws: FakeAws) -> None:
    aws.activities = [
        activity(10, "InProgress"),
        activity(20, "Failed", STOCK),
        activity(30, "Successful"),
        activity(40, "Failed", QUOTA),
        activity(50, "Successful"),
    ]

    found = launches(aws)

    assert type(found.failure) is StockOut
    assert "(InsufficientInstanceCapacity)" in str(found.failure)
    assert (found.failed_at, found.launched_at) == (NOW - 20, NOW - 30)
    assert aws.calls == [f"describe_scaling_activities {ASG}"]


def test_launches_when_machines_are_terminated_are_none(aws: FakeAws) -> None:
    terminated = "Terminating EC2 instance: i-0123456789abcdef0"
    aws.activities = [activity(20, "Successful", words=terminated), activity(30, "Failed", STOCK, words=terminated)]

    assert launches(aws) == Launches()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (QUOTA, QuotaError),
        ("We currently do not have sufficient p5.48xlarge capacity. Launching EC2 instance failed.", StockOut),
        ("Your AWS account is unable to launch any more instances of the specified instance type.", QuotaError),
        ("InvalidKeyPair.NotFound - The key pair does not exist. Launching EC2 instance failed.", CloudError),
        ("The key pair does not exist. Launching EC2 instance failed.", CloudError),
    ],
)
def test_failed_launch_when_told_has_the_class_of_its_code(aws: FakeAws, text: str, kind: type[GpukubeError]) -> None:
    aws.activities = [activity(20, "Failed", text)]

    assert type(launches(aws).failure) is kind


UNWELL: Json = {
    "issues": [
        {"code": "NodeCreationFailure", "message": "Instances failed to join the kubernetes cluster"},
        {"code": "AsgInstanceLaunchFailures", "message": STOCK},
    ]
}


def test_launches_when_the_group_is_not_named_yet_are_read_from_its_health(aws: FakeAws) -> None:
    found = launches(aws, asg="", health=UNWELL)

    assert (type(found.failure), found.failed_at, found.launched_at) == (StockOut, None, None)
    assert launches(aws, asg="") == Launches()
    assert aws.calls == []


def test_launches_when_not_allowed_are_read_from_its_health(aws: FakeAws) -> None:
    aws.raises = {f"describe_scaling_activities {ASG}": refusal("AccessDenied")}

    assert type(launches(aws, health=UNWELL).failure) is StockOut


def test_launches_when_the_call_fails_otherwise_are_an_error(aws: FakeAws) -> None:
    aws.raises = {f"describe_scaling_activities {ASG}": refusal("ServiceUnavailable")}

    with pytest.raises(CloudError):
        launches(aws, health=UNWELL)
