"""The real `aws` command against the sandbox, in the environment that the sandbox gives out."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from gpukube.sandbox import daemon
from gpukube.sandbox.environment import env
from tests.sandbox.eks.aws import ACCOUNT, NAME, REGION, Aws

if TYPE_CHECKING:
    from gpukube.sandbox.daemon import SandboxInfo

pytestmark = pytest.mark.clients("aws")


def run(info: SandboxInfo, *words: str) -> Any:  # noqa: ANN401 - what the command prints
    """Run the command; gives its JSON."""
    given = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")} | env(info)
    done = subprocess.run(["aws", *words], env=given, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_aws_when_listing_and_describing_then_what_is_there(aws: Aws) -> None:
    aws.create("gpu", labels={"team": "vision"})
    assert run(aws.info, "sts", "get-caller-identity")["Account"] == ACCOUNT
    assert run(aws.info, "eks", "list-nodegroups", "--cluster-name", NAME)["nodegroups"] == ["gpu", "system"]
    words = ("eks", "describe-nodegroup", "--cluster-name", NAME, "--nodegroup-name", "gpu")
    group = run(aws.info, *words)["nodegroup"]
    assert (group["status"], group["labels"]) == ("ACTIVE", {"team": "vision"})


def test_aws_when_a_token_is_asked_for_then_the_cluster_takes_it(aws: Aws) -> None:
    from gpukube.sandbox.eks.wire.identity import is_bearer_for  # noqa: PLC0415 - only where the command is

    token = run(aws.info, "eks", "get-token", "--cluster-name", NAME, "--output", "json")["status"]["token"]
    assert is_bearer_for(token, NAME, ACCOUNT)


def test_aws_when_a_profile_is_named_then_that_account(aws: Aws) -> None:
    daemon.add_eks_cluster(aws.info, "444455556666", REGION, "other")
    found = run(aws.info, "--profile", "444455556666", "eks", "list-clusters")
    assert found["clusters"] == ["other"]
