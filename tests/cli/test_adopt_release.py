"""A device-plugin release made by hand: refused unasked, taken over when allowed, its values kept."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.helm.embedded import HelmSdk
from gpukube.cluster.helm.engine import HelmJob
from gpukube.cluster.kube.client import connect_kube
from gpukube.cluster.release.removal import kubeconfig_file
from gpukube.core.values import KubeAccess
from gpukube_sandbox.environment import kubeconfig
from gpukube_sandbox.kube.repository import chart_archive
from tests.cli.harness import EXAMPLES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.harness import Cluster, Gpukube

SLICED = EXAMPLES / "aks-timeslicing.yaml"
VALUES = {"config": {"map": {"vision": "version: v1\n"}, "default": "vision"}, "gfd": {"enabled": False}}


@pytest.fixture
def theirs(gpukube: Gpukube, tmp_path: Path) -> None:
    """Install the chart as its README does."""
    pytest.importorskip("helm_python", reason="the embedded Helm is not installed (gpukube[helm])")
    access = KubeAccess(json.dumps(kubeconfig(gpukube.info)["kubeconfig"]))
    kube = connect_kube(access, 60)
    kube.ensure_namespace("nvidia", {})
    kube.close()
    chart = tmp_path / "chart.tgz"
    chart.write_bytes(chart_archive("0.20.0"))
    with kubeconfig_file(access) as path:
        HelmSdk(os.environ).upgrade(HelmJob(path, "nvdp", "nvidia", chart, VALUES, installed=False, dry_run=False))


@pytest.mark.usefixtures("theirs")
def test_apply_when_a_release_was_made_by_hand_then_refused_until_allowed_and_its_values_are_kept(
    gpukube: Gpukube, cluster: Cluster
) -> None:
    refused = gpukube("pool", "apply", "--yes", "-f", SLICED)
    assert (refused.code, gpukube.writes()) == (1, [])
    assert "take it over: --adopt-release; or remove it: helm uninstall nvdp --namespace nvidia" in refused.out
    done = gpukube("pool", "apply", "--yes", "--adopt-release", "-f", SLICED)
    assert done.code == 0, done.out + done.err
    assert "vision" in cluster.config()
    assert gpukube("pool", "plan", "diff", "-f", SLICED).code == 0
