"""A sandbox with one cluster of each cloud, for clients that nobody in the project wrote."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from gpukube_sandbox import daemon
from gpukube_sandbox.environment import env
from sandbox_tests.aks import arm as aks
from sandbox_tests.eks import aws as eks
from sandbox_tests.gke import clients as gke
from sandbox_tests.referees.asking import Referee
from sandbox_tests.sandboxes import emptied

if TYPE_CHECKING:
    from pathlib import Path

    from gpukube_sandbox.daemon import SandboxInfo

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
    """Return the test the three clusters as they were made."""
    return cluster_of_each_cloud(running_sandbox)


@pytest.fixture
def referee(world: SandboxInfo, tmp_path: Path) -> Referee:
    """Give a referee that knows nothing of the machine but its commands."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return Referee(world, kept | env(world), tmp_path)
