"""What the sandbox gives out for AWS clients, and what it does not need itself."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import boto3

from gpukube_sandbox import daemon
from gpukube_sandbox.environment import env, names_to_unset
from sandbox_tests.eks.aws import ACCOUNT, NAME, REGION, Aws

if TYPE_CHECKING:
    import pytest

    from gpukube_sandbox.daemon import SandboxInfo


def use(info: SandboxInfo, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Set the variables."""
    given = env(info)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    return given


def test_env_when_set_then_boto3_needs_nothing_else(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    use(aws.info, monkeypatch)
    session = boto3.Session()
    assert session.client("sts").get_caller_identity()["Account"] == ACCOUNT
    assert session.client("eks").list_clusters()["clusters"] == [NAME]
    assert session.region_name == REGION


def test_env_when_there_are_two_accounts_then_a_profile_for_each(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    daemon.add_eks_cluster(aws.info, "444455556666", "eu-west-1", "other")
    given = use(aws.info, monkeypatch)
    other = boto3.Session(profile_name="444455556666", region_name="eu-west-1")  # the variable wins over the profile
    assert other.client("sts").get_caller_identity()["Account"] == "444455556666"
    assert other.client("eks").list_clusters()["clusters"] == ["other"]
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        assert stat.S_IMODE(Path(given[name]).stat().st_mode) == 0o600


def test_env_when_there_is_no_cluster_then_still_dummy_keys(
    sandbox: SandboxInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(sandbox, monkeypatch)
    assert boto3.client("sts").get_caller_identity()["Account"] == ACCOUNT


def test_env_when_real_credentials_are_set_then_they_must_go(sandbox: SandboxInfo) -> None:
    real = {"AWS_PROFILE": "prod", "AWS_SESSION_TOKEN": "x", "AWS_ACCESS_KEY_ID": "AKIA", "PATH": "/bin"}
    assert names_to_unset(real, env(sandbox)) == ["AWS_PROFILE", "AWS_SESSION_TOKEN"]


def test_kubeconfig_when_given_out_then_a_context_named_by_the_arn(aws: Aws) -> None:
    document = daemon.call(aws.info, "GET", "kubeconfig")["kubeconfig"]
    assert isinstance(document, dict)
    assert document["current-context"] == f"arn:aws:eks:{REGION}:{ACCOUNT}:cluster/{NAME}"


def test_server_when_loaded_then_without_any_sdk_of_aws() -> None:
    code = "import sys, gpukube_sandbox.server; print([m for m in ('boto3', 'botocore', 'moto') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.strip() == "[]", done.stderr
