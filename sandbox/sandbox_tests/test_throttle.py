"""Token buckets by a clock that is turned by hand, and what each cloud says when one is empty."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from botocore.exceptions import ClientError

from gpukube_sandbox import daemon
from gpukube_sandbox.clock import ManualClock
from gpukube_sandbox.throttle import Buckets, Limit
from sandbox_tests.eks.aws import ACCOUNT, NAME, REGION, Aws
from sandbox_tests.gke.clients import CLUSTER, Gke, add_cluster

if TYPE_CHECKING:
    from gpukube_sandbox.daemon import SandboxInfo

SLOW = 0.001
"""Of a speed at which no bucket refills while a test runs."""


def test_buckets_when_one_is_empty_then_it_says_how_long_until_the_next_token() -> None:
    clock = ManualClock()
    buckets = Buckets(clock, {"read": Limit(2, 0.5)})
    assert [buckets.wait_s("read", "a") for _ in range(3)] == [0.0, 0.0, 2.0]
    assert buckets.wait_s("read", "b") == 0.0
    asyncio.run(clock.advance(1))
    assert buckets.wait_s("read", "a") == 1.0
    asyncio.run(clock.advance(1))
    assert [buckets.wait_s("read", "a") for _ in range(2)] == [0.0, 2.0]
    buckets.enabled = False
    assert buckets.wait_s("read", "a") == 0.0
    buckets.limits["read"] = Limit(1, 1)
    buckets.reset()
    assert [buckets.wait_s("read", "a") for _ in range(3)] == [0.0, 0.0, 2.0]


@pytest.mark.parametrize(
    ("call", "limit"), [("describe_subnets", "ec2-read"), ("create_launch_template_version", "ec2-template-change")]
)
def test_ec2_when_the_bucket_of_an_action_is_empty_then_503_and_other_actions_go_on(
    sandbox: SandboxInfo, call: str, limit: str
) -> None:
    daemon.add_eks_cluster(sandbox, ACCOUNT, REGION, NAME)
    daemon.configure(sandbox, speed=SLOW, limits={limit: [1, 1]})
    aws = Aws(sandbox)
    aws.template()
    given = {"LaunchTemplateName": "gpukube-a", "SourceVersion": "1", "LaunchTemplateData": {}}
    parts = given if call.startswith("create") else {}
    ec2 = aws.client("ec2")
    getattr(ec2, call)(**parts)
    with pytest.raises(ClientError) as caught:
        getattr(ec2, call)(**parts)
    assert caught.value.response["Error"]["Code"] == "RequestLimitExceeded"
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 503
    ec2.describe_instance_types(InstanceTypes=["g4dn.xlarge"])
    daemon.configure(sandbox, throttling=False)
    getattr(ec2, call)(**parts)


@pytest.mark.parametrize("transport", ["grpc", "rest"])
def test_gke_when_the_bucket_of_a_project_is_empty_then_429(sandbox: SandboxInfo, transport: str) -> None:
    add_cluster(sandbox)
    daemon.configure(sandbox, speed=SLOW, limits={"gke-requests": [2, 1]})
    gke = Gke(sandbox, transport)
    assert [gke.names(), gke.names()] == [["default-pool"]] * 2
    code, text = gke.refused(lambda: gke.sdk.get_cluster(name=CLUSTER))
    assert (code, text.startswith("Quota exceeded for quota metric")) == ("RESOURCE_EXHAUSTED", True)
    gke.close()


def test_limit_when_there_is_none_of_that_name_then_refused(sandbox: SandboxInfo) -> None:
    with pytest.raises(daemon.SandboxError, match=r"no limit 'eks'; there are put-agent-pool, .*ec2-read"):
        daemon.configure(sandbox, limits={"eks": [1, 1]})
