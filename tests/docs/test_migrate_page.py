"""docs/migrate.md: each way is walked as printed, from pools as their tools make them."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from lightkube.resources.apps_v1 import DaemonSet

from gpukube import guard
from gpukube.cluster.helm.chart import chart_types
from gpukube.cluster.helm.embedded import HelmSdk
from gpukube.cluster.helm.engine import HelmJob
from gpukube.cluster.kube.client import connect_kube
from gpukube.cluster.release.crds import create_types, look_at_types
from gpukube.cluster.release.removal import kubeconfig_file
from gpukube.core.values import KubeAccess
from gpukube_sandbox.environment import kubeconfig
from gpukube_sandbox.kube.repository import chart_archive
from sandbox_tests.kube.clients import run_client
from sandbox_tests.sandboxes import emptied
from tests.changes.configurations import EKS, Configuration
from tests.changes.test_imported import make_agent_pools, make_groups, make_node_pools
from tests.changes.world import World
from tests.cli.harness import ROOT, Cluster, Gpukube
from tests.golden.aks.test_requests import AZ_AUTOSCALED, AZ_MIG
from tests.golden.gke.test_requests import GCLOUD_TIMESHARING

if TYPE_CHECKING:
    from pathlib import Path

    from gpukube_sandbox.daemon import SandboxInfo

PAGE = (ROOT / "docs" / "migrate.md").read_text()
SPEED = 2000.0
TERRAFORM = Configuration(
    "hashicorp/terraform-provider-aws internal/service/eks/node_group.go",
    {
        "instanceTypes": ["g5.xlarge"],
        "amiType": "AL2023_x86_64_NVIDIA",
        "capacityType": "ON_DEMAND",
        "diskSize": 100,
        "labels": {"nvidia.com/gpu.present": "true"},
        "scalingConfig": {"minSize": 1, "desiredSize": 2, "maxSize": 4},
        "updateConfig": {"maxUnavailable": 1},
        "tags": {"team": "ml"},
    },
)


@dataclass(frozen=True)
class Step:
    """A command of the page and the lines that it shows; "..." stands for others."""

    line: str
    shown: list[str]


def steps(heading: str) -> list[Step]:
    section = re.split(r"^## ", PAGE.partition(f"\n## {heading}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    found = [
        step.partition("\n")
        for block in re.findall(r"```console\n(.*?)```", section, re.DOTALL)
        for step in block.removeprefix("$ ").split("\n$ ")
    ]
    return [Step(line, [text for text in shown.splitlines() if text != "..."]) for line, _, shown in found]


@pytest.fixture
def gpukube(
    running_sandbox: SandboxInfo,
    quiet_environment: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> Gpukube:
    del quiet_environment
    monkeypatch.setattr(guard, "refuse_non_loopback", lambda: None)
    monkeypatch.setenv("GPUKUBE_SANDBOX_STATE", running_sandbox.state_dir)
    monkeypatch.chdir(tmp_path)
    return Gpukube(emptied(running_sandbox, SPEED), capsys)


def by_eksctl(world: World) -> None:
    world.make("eks", "train", foreignPlugin=True)
    make_groups(world, {"ng-1": EKS["eksctl-plain"]})


def by_az(world: World) -> None:
    world.make("aks", "train", foreignPlugin=True)
    make_agent_pools(world, {"mig": Configuration("", AZ_MIG), "t4": Configuration("", AZ_AUTOSCALED)})


def by_gcloud(world: World) -> None:
    world.make("gke", "train")
    make_node_pools(world, {"t4shared": Configuration("", {**GCLOUD_TIMESHARING, "locations": ["us-central1-a"]})})


def by_terraform(world: World) -> None:
    """A node group without a template of its own, and helm_release of the chart of NVIDIA."""
    world.make("eks", "train")
    make_groups(world, {"gpu": TERRAFORM})
    install(world, "0.17.4", "nvidia", {})


def install(world: World, version: str, namespace: str, values: dict[str, object]) -> None:
    """Install NVIDIA's chart as people do."""
    pytest.importorskip("helm_python", reason="the embedded Helm is not installed (gpukube[helm])")
    access = KubeAccess(json.dumps(kubeconfig(world.info)["kubeconfig"]))
    kube = connect_kube(access, 60)
    kube.ensure_namespace(namespace, {})
    with kubeconfig_file(access) as path:
        chart = path.parent / "chart.tgz"
        chart.write_bytes(chart_archive(version))
        create_types(kube, look_at_types(kube, chart_types(chart, nfd=True)), time.sleep)
        job = HelmJob(path, "nvdp", namespace, chart, values, installed=False, dry_run=False)
        HelmSdk(os.environ).upgrade(job)
    kube.close()


def by_how_to(world: World) -> None:
    """A MIG pool and NVIDIA's chart, both as AKS's how-to for multi-instance GPUs makes them."""
    world.make("aks", "train")
    make_agent_pools(world, {"mig": Configuration("", AZ_MIG)})
    install(world, "0.15.0", "nvidia-device-plugin", {"migStrategy": "single", "gfd": {"enabled": True}})


WAYS = {
    "The AKS guide for MIG": by_how_to,
    "eksctl": by_eksctl,
    "az": by_az,
    "gcloud": by_gcloud,
    "Terraform": by_terraform,
}


@pytest.mark.turns(2)
@pytest.mark.parametrize("tool", WAYS)
def test_way_when_walked_then_each_command_prints_what_the_page_shows(
    tool: str, gpukube: Gpukube, tmp_path: Path
) -> None:
    WAYS[tool](World(gpukube.info))
    for step in steps(tool):
        command, _, file = step.line.partition(" > ")
        words = shlex.split(command)
        printed = ""
        if words[0] == "gpukube":
            done = gpukube(*words[1:])
            assert done.code == 0, done.out + done.err
            printed = done.out
        elif words[0] == "kubectl":
            assert words[1:3] == ["delete", "daemonset"]
            assert words[4] == "--namespace"
            inside = Cluster(gpukube.info)
            inside.client.delete(DaemonSet, words[3], namespace=words[5])
            inside.close()
        else:
            subprocess.run(words, check=True)
        if file:
            (tmp_path / file).write_text(printed)
        rest = iter(printed.splitlines())
        assert [text for text in step.shown if text not in rest] == [], f"{step.line}\n{printed}"


def test_page_when_read_then_all_its_commands_are_walked() -> None:
    walked = [step for tool in WAYS for step in steps(tool)]
    assert PAGE.count("\n$ ") == len(walked)
    assert [step.shown for step in walked if "plan diff" in step.line] == [["no differences"]] * 7


@pytest.mark.clients("terraform")
def test_removed_block_when_formatted_then_as_terraform_has_it(tmp_path: Path) -> None:
    (block,) = re.findall(r"```hcl\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "removed.tf").write_text(block)
    done = run_client(["terraform", "fmt", "-check", "-diff", str(tmp_path)], dict(os.environ))
    assert done.returncode == 0, done.stdout + done.stderr
