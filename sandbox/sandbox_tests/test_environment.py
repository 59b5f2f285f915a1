"""The environment for the official clients: files, variables, and kubectl where it is installed."""

from __future__ import annotations

import configparser
import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpukube_sandbox import daemon
from gpukube_sandbox.environment import env, names_to_unset
from sandbox_tests.kube.clients import run_client

if TYPE_CHECKING:
    from gpukube_sandbox.daemon import SandboxInfo

SUBSCRIPTION = "11111111-2222-3333-4444-555555555555"


@pytest.fixture
def variables(sandbox: SandboxInfo) -> dict[str, str]:
    """Variables for a sandbox with three clusters, two of one name."""
    for group, name in (("ml", "train"), ("ml", "serve"), ("other", "serve")):
        daemon.add_cluster(sandbox, SUBSCRIPTION, group, name)
    return env(sandbox)


def test_env_when_asked_then_everything_points_to_loopback(sandbox: SandboxInfo, variables: dict[str, str]) -> None:
    assert variables["GPUKUBE_AKS_ENDPOINT"] == sandbox.arm_url
    assert variables["GPUKUBE_SANDBOX_STATE"] == sandbox.state_dir
    assert variables["GPUKUBE_SANDBOX_ID"] == sandbox.sandbox_id
    assert variables["GPUKUBE_SANDBOX_CHARTS"] == sandbox.charts_url
    assert variables["IDENTITY_ENDPOINT"] == f"{sandbox.arm_url}/msi/token"
    assert variables["HTTPS_PROXY"].startswith("http://127.0.0.1:")
    assert "127.0.0.1" in variables["NO_PROXY"]


def test_env_when_asked_then_az_has_a_cloud_and_a_profile(sandbox: SandboxInfo, variables: dict[str, str]) -> None:
    directory = Path(variables["AZURE_CONFIG_DIR"])
    clouds = configparser.ConfigParser()
    clouds.read(directory / "clouds.config")
    (cloud,) = clouds.sections()
    assert clouds[cloud]["endpoint_resource_manager"] == sandbox.arm_tls_url
    config = configparser.ConfigParser()
    config.read(directory / "config")
    assert config["cloud"]["name"] == cloud
    (entry,) = json.loads((directory / "azureProfile.json").read_text())["subscriptions"]
    assert (entry["id"], entry["isDefault"], entry["environmentName"]) == (SUBSCRIPTION, True, cloud)


def test_env_when_asked_then_one_private_kubeconfig_with_a_context_per_cluster(variables: dict[str, str]) -> None:
    path = Path(variables["KUBECONFIG"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    document = json.loads(path.read_text())
    names = [context["name"] for context in document["contexts"]]
    assert (names, document["current-context"]) == (["train", "ml-serve", "other-serve"], "train")
    assert all(cluster["cluster"]["certificate-authority-data"] for cluster in document["clusters"])


def test_env_when_many_threads_ask_at_once_then_each_finds_whole_files(
    sandbox: SandboxInfo, variables: dict[str, str]
) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: env(sandbox), range(40)))
    assert all(one == variables for one in found)
    assert json.loads(Path(variables["KUBECONFIG"]).read_text())["contexts"]


def test_names_to_unset_when_real_credentials_are_set_then_named_but_not_ours(variables: dict[str, str]) -> None:
    given = {"AZURE_CLIENT_SECRET": "s", "AZURE_CONFIG_DIR": "/home/x/.azure", "PATH": "/bin", "AWS_PROFILE": "p"}
    assert names_to_unset(given, variables) == ["AWS_PROFILE", "AZURE_CLIENT_SECRET"]


@pytest.mark.clients("kubectl")
def test_kubectl_when_installed_then_lists_the_nodes(variables: dict[str, str]) -> None:
    command = ["kubectl", "get", "nodes", "--context", "other-serve", "-o", "name"]
    environment = {**os.environ, **variables}
    done = run_client(command, environment)
    assert (done.stderr, done.stdout.startswith("node/aks-nodepool1-")) == ("", True)
