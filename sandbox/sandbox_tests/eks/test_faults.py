"""Faults on requests to AWS: how boto3 sees them, and what the log keeps."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError, EndpointConnectionError, ReadTimeoutError

from gpukube_sandbox import daemon
from sandbox_tests.eks.aws import NAME, Aws

STATUS: dict[str, tuple[dict[str, Any], str, str]] = {
    "EKS throttles": ({"status": 429}, "eks", "ThrottlingException"),
    "EKS is down": ({"status": 503}, "eks", "ServiceUnavailableException"),
    "EKS is broken": ({"status": 500}, "eks", "ServerException"),
    "EKS forbids": ({"status": 403}, "eks", "AccessDeniedException"),
    "EKS by its own code": ({"status": 400, "code": "ClientException"}, "eks", "ClientException"),
    "EC2 throttles": ({"status": 429}, "ec2", "RequestLimitExceeded"),
    "EC2 forbids": ({"status": 403}, "ec2", "UnauthorizedOperation"),
    "EC2 by its own code": ({"status": 400, "code": "InvalidSubnetID.NotFound"}, "ec2", "InvalidSubnetID.NotFound"),
    "STS forbids": ({"status": 403}, "sts", "AccessDenied"),
    "STS is broken": ({"status": 500}, "sts", "InternalError"),
    "STS throttles": ({"status": 429}, "sts", "Throttling"),
}
CALLS = {"eks": "list_clusters", "ec2": "describe_subnets", "sts": "get_caller_identity"}


@pytest.mark.parametrize(("fault", "service", "code"), STATUS.values(), ids=STATUS)
def test_status_when_injected_then_worded_as_the_service_does(
    aws: Aws, fault: dict[str, Any], service: str, code: str
) -> None:
    daemon.add_fault(aws.info, "status", service="aws", **fault)
    with pytest.raises(ClientError) as caught:
        getattr(aws.client(service), CALLS[service])()
    answer = caught.value.response
    assert (answer["Error"]["Code"], answer["ResponseMetadata"]["HTTPStatusCode"]) == (code, fault["status"])
    assert answer["ResponseMetadata"]["RequestId"]
    getattr(aws.client(service), CALLS[service])()  # struck once


@pytest.mark.parametrize("status", [429, 500, 503])
def test_status_when_boto3_may_try_again_then_it_does(aws: Aws, status: int) -> None:
    daemon.add_fault(aws.info, "status", service="aws", status=status)
    patient = Aws(aws.info, attempts=3)
    assert patient.eks.list_clusters()["clusters"] == [NAME]


def test_drop_when_before_or_after_then_the_call_is_lost_but_its_work_may_be_done(aws: Aws) -> None:
    daemon.add_fault(aws.info, "drop-before", service="aws", method="POST", path="/node-groups$")
    with pytest.raises((ConnectionClosedError, EndpointConnectionError)):
        aws.ask("gpu", clientRequestToken="t")
    assert "gpu" not in aws.eks.list_nodegroups(clusterName=NAME)["nodegroups"]
    daemon.add_fault(aws.info, "drop-after", service="aws", method="POST", path="/node-groups")
    with pytest.raises((ConnectionClosedError, EndpointConnectionError)):
        aws.ask("gpu", clientRequestToken="t")
    assert "gpu" in aws.eks.list_nodegroups(clusterName=NAME)["nodegroups"]
    assert aws.ask("gpu", clientRequestToken="t")["nodegroupName"] == "gpu"


def test_drop_when_after_a_template_was_made_then_its_token_finds_it(aws: Aws) -> None:
    daemon.add_fault(aws.info, "drop-after", service="aws", path="Action=CreateLaunchTemplate$")
    given = {"LaunchTemplateName": "gpukube-x", "LaunchTemplateData": {"KeyName": "k"}, "ClientToken": "t"}
    with pytest.raises((ConnectionClosedError, EndpointConnectionError)):
        aws.client("ec2").create_launch_template(**given)
    aws.client("ec2").create_launch_template(**given)
    assert len(aws.client("ec2").describe_launch_templates()["LaunchTemplates"]) == 1


def test_hang_when_nobody_answers_then_the_client_gives_up(aws: Aws) -> None:
    daemon.add_fault(aws.info, "hang", service="aws", path="Action=GetCallerIdentity")
    hasty = Aws(aws.info, read_timeout_s=0.2)
    with pytest.raises(ReadTimeoutError):
        hasty.client("sts").get_caller_identity()
    daemon.clear_faults(aws.info)
    assert aws.client("sts").get_caller_identity()["Account"]


def test_delay_when_injected_then_the_answer_still_comes(aws: Aws) -> None:
    daemon.add_fault(aws.info, "delay", service="aws", seconds=0.05)
    assert aws.eks.list_clusters()["clusters"] == [NAME]


def test_log_when_aws_is_called_then_bodies_are_there_and_no_keys(aws: Aws) -> None:
    before = len(daemon.requests_since(aws.info))
    aws.template("gpukube-x")
    aws.ask("gpu", labels={"a": "b"})
    entries = daemon.requests_since(aws.info, before)
    assert {entry["service"] for entry in entries} == {"aws"}
    bodies = [entry["body"] for entry in entries if entry["method"] == "POST"]
    first, last = bodies[0], bodies[-1]
    assert isinstance(first, dict)
    assert isinstance(last, dict)
    assert first["Action"] == "CreateLaunchTemplate"
    assert last["labels"] == {"a": "b"}
    assert "Credential=" not in str(entries)
