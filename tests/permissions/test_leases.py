"""The lock of a family with nothing but what is printed, on a cluster where no chart of gpukube's brings rights."""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.helm.chart import ChartSource
from gpukube.cluster.kube.client import connect_kube
from gpukube.core.values import KubeAccess, Settings
from gpukube.engine.change.family_lease import FamilyLease
from gpukube.engine.run.context import Run
from gpukube.errors import AccessError
from gpukube_sandbox.environment import kubeconfig
from sandbox_tests.waiting import PATIENCE_S
from tests.permissions.granting import grant
from tests.permissions.policies import printed

if TYPE_CHECKING:
    from pathlib import Path

    from gpukube.core.permissions import PolicyLevel
    from tests.cli.harness import Gpukube

SPEC = """
apiVersion: gpukube.io/v1alpha1
kind: GPUNodePools
metadata: {name: team-vision}
clusters:
  train-gke: {provider: gke, project: ml-prod, location: us-central1, name: train}
pools:
  - {name: t4, clusters: [train-gke], gpu: {model: T4, count: 1}, nodes: {count: 1}}
"""


def hold(gpukube: Gpukube) -> None:
    """Hold the lock of a family once, and write its record."""
    run = Run(Settings(), ChartSource(), {}, "again")
    access = KubeAccess(json.dumps(kubeconfig(gpukube.info)["kubeconfig"]))
    with (
        closing(connect_kube(access, PATIENCE_S)) as kube,
        FamilyLease.held(kube, "team-vision", "t4", run, list[str]().append) as lease,
    ):
        lease.begin("train-gke", "t4")
        lease.win("train-gke", "t4")


def declared(gpukube: Gpukube, tmp_path: Path) -> Path:
    spec = tmp_path / "pools.yaml"
    spec.write_text(SPEC)
    gpukube("pool", "list", "-f", spec)
    return spec


def test_lock_when_nothing_else_is_allowed_then_held(gpukube: Gpukube, tmp_path: Path) -> None:
    spec = declared(gpukube, tmp_path)
    grant(gpukube.info, printed("apply", "alternatives", spec=spec))
    hold(gpukube)


@pytest.mark.parametrize(
    ("level", "extras", "missing"), [("apply", (), "get leases"), ("plan", ("alternatives",), "create leases")]
)
def test_lock_when_less_is_allowed_then_the_missing_right_is_named(
    level: PolicyLevel, extras: tuple[str, ...], missing: str, gpukube: Gpukube, tmp_path: Path
) -> None:
    spec = declared(gpukube, tmp_path)
    grant(gpukube.info, printed(level, *extras, spec=spec))
    with pytest.raises(AccessError, match=f"not allowed to {missing}"):
        hold(gpukube)
