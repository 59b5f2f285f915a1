"""The same calls to moto and to the sandbox: where moto imitates EKS at all, both must agree.

moto 5.2.5 lacks DescribeUpdate, ListUpdates, UpdateNodegroupVersion, tags of node groups, every state but ACTIVE and
most rules; those are tested against the sandbox alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.exceptions import ClientError

from sandbox_tests.eks.aws import NAME, ONE, REGION, T4, Aws

if TYPE_CHECKING:
    from collections.abc import Iterator

moto = pytest.importorskip("moto")

ROLE = "arn:aws:iam::123456789012:role/nodes"


@pytest.fixture
def referee(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Moto's EKS with one cluster and one node group."""
    for name, value in (("AWS_ACCESS_KEY_ID", "testing"), ("AWS_SECRET_ACCESS_KEY", "testing")):
        monkeypatch.setenv(name, value)
    with moto.mock_aws():
        eks = boto3.client("eks", region_name=REGION)
        eks.create_cluster(name=NAME, roleArn=ROLE, resourcesVpcConfig={"subnetIds": ["subnet-1"]})
        eks.create_nodegroup(
            clusterName=NAME, nodegroupName="system", subnets=["subnet-1"], nodeRole=ROLE, scalingConfig=ONE
        )
        yield eks


def outcome(eks: Any, place: dict[str, Any], call: str, given: dict[str, Any]) -> tuple[str, int]:  # noqa: ANN401 - boto3
    """Code and status of a call that fails, or its success."""
    arguments = {**place, **given} if call == "create_nodegroup" else given
    try:
        getattr(eks, call)(**arguments)
    except ClientError as error:
        return str(error.response["Error"]["Code"]), int(error.response["ResponseMetadata"]["HTTPStatusCode"])
    return "", 200


GROUP = {"clusterName": NAME, "nodegroupName": "x"}
TEMPLATE = {"launchTemplate": {"name": "gpukube-a"}}
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "group of an unknown cluster": ("describe_nodegroup", {**GROUP, "clusterName": "nobody"}),
    "unknown group": ("describe_nodegroup", GROUP),
    "unknown cluster": ("describe_cluster", {"name": "nobody"}),
    "deleting an unknown group": ("delete_nodegroup", GROUP),
    "a name that is taken": ("create_nodegroup", {**GROUP, "nodegroupName": "system"}),
    "a group in an unknown cluster": ("create_nodegroup", {**GROUP, "clusterName": "nobody"}),
    "a role that is no ARN": ("create_nodegroup", {**GROUP, "nodeRole": "nodes"}),
    "a disk beside a template": ("create_nodegroup", {**GROUP, **TEMPLATE, "diskSize": 50}),
    "a key beside a template": ("create_nodegroup", {**GROUP, **TEMPLATE, "remoteAccess": {"ec2SshKey": "k"}}),
    "nothing wrong": ("create_nodegroup", {**GROUP, **T4, "scalingConfig": ONE}),
}


@pytest.mark.turns(2)
@pytest.mark.parametrize(("call", "given"), CALLS.values(), ids=CALLS)
def test_call_when_moto_knows_it_then_both_agree(aws: Aws, referee: Any, call: str, given: dict[str, Any]) -> None:  # noqa: ANN401 - boto3
    aws.template("gpukube-a")
    ours = outcome(aws.eks, {**aws.place(), "scalingConfig": ONE}, call, given)
    theirs = outcome(referee, {"subnets": ["subnet-1"], "nodeRole": ROLE, "scalingConfig": ONE}, call, given)
    assert ours == theirs


def test_group_when_described_then_with_every_member_that_moto_gives(aws: Aws, referee: Any) -> None:  # noqa: ANN401 - boto3
    theirs = referee.describe_nodegroup(clusterName=NAME, nodegroupName="system")["nodegroup"]
    missing = {key for key, value in theirs.items() if value} - set(aws.group("system"))
    assert missing <= {"remoteAccess"}  # moto invents a key pair
