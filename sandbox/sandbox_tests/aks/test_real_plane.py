"""A pool of the emulated AKS on a real control plane."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from gpukube_sandbox import daemon
from gpukube_sandbox.kube.controlplane import find_assets
from sandbox_tests.aks.arm import GROUP, NAME, SUBSCRIPTION, T4, Arm
from sandbox_tests.aks.test_nodes import kube_client
from sandbox_tests.waiting import wait_for

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.kube


@pytest.mark.skipif(find_assets() is None, reason="KUBEBUILDER_ASSETS names no etcd and kube-apiserver")
def test_cluster_when_the_control_plane_is_real_then_pools_become_its_nodes(tmp_path: Path) -> None:
    info = daemon.up(tmp_path / "sandbox", 500)
    try:
        made = daemon.add_cluster(info, SUBSCRIPTION, GROUP, NAME)
        assert not str(made["kubeUrl"]).startswith(info.kube_url)
        with Arm(info) as arm:
            arm.create("gpu1", {**T4, "nodeLabels": {"team": "vision"}, "nodeTaints": ["sku=gpu:NoSchedule"]})
            version = arm.request("GET", "").json()["properties"]["kubernetesVersion"]
            client = kube_client(arm)
            with client as kube:
                node = wait_for(lambda: ready_nodes(kube.get("/api/v1/nodes").json()).get("gpu1", {}), every_s=0.1)
                assert kube.get("/version").json()["gitVersion"] == f"v{version}"
            labels = node["metadata"]["labels"]
            assert (labels["team"], labels["accelerator"]) == ("vision", "nvidia")
        assert "Traceback" not in (tmp_path / "sandbox" / daemon.LOG_FILE).read_text()
    finally:
        daemon.down(tmp_path / "sandbox")
    assert not os.path.lexists(tmp_path / "sandbox" / "sandbox.json")


def ready_nodes(listed: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the ready nodes by pool."""
    return {
        node["metadata"]["labels"]["agentpool"]: node
        for node in listed["items"]
        if any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"]["conditions"])
    }
