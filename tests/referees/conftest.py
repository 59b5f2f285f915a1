"""A sandbox with one cluster of each cloud, for clients that nobody in the project wrote."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from gpukube.sandbox import daemon, guard
from gpukube.sandbox.environment import env
from gpukube.sandbox.kube.autoscaler.scaler import FASTEST
from tests.cli.harness import Gpukube
from tests.referees.asking import Referee
from tests.sandbox.aks import arm as aks
from tests.sandbox.eks import aws as eks
from tests.sandbox.gke import clients as gke
from tests.sandboxes import emptied

if TYPE_CHECKING:
    from pathlib import Path

    from gpukube.sandbox.daemon import SandboxInfo

SPEED = 5000.0


def cluster_of_each_cloud(running: SandboxInfo) -> SandboxInfo:
    """Bring the sandbox to three clusters with a system pool each; nothing else exists there."""
    info = emptied(running, SPEED)
    daemon.add_cluster(info, aks.SUBSCRIPTION, aks.GROUP, aks.NAME)
    daemon.add_eks_cluster(info, eks.ACCOUNT, eks.REGION, eks.NAME)
    daemon.add_gke_cluster(info, gke.PROJECT, gke.ZONE, gke.NAME)
    return info


@pytest.fixture
def world(running_sandbox: SandboxInfo) -> SandboxInfo:
    """Give the test the three clusters as they were made."""
    return cluster_of_each_cloud(running_sandbox)


@pytest.fixture
def referee(world: SandboxInfo, tmp_path: Path) -> Referee:
    """Give a referee that knows nothing of the machine but its commands."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return Referee(world, kept | env(world), tmp_path)


@pytest.fixture
def gpukube(
    running_sandbox: SandboxInfo, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Gpukube:
    """Run gpukube in this process, in a sandbox that has nothing yet."""
    monkeypatch.setenv("GPUKUBE_SANDBOX_STATE", running_sandbox.state_dir)
    monkeypatch.setattr(guard, "refuse_non_loopback", lambda: None)  # it would stay for the tests that follow
    return Gpukube(emptied(running_sandbox, FASTEST), capsys)
