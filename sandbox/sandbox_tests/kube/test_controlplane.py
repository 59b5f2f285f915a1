"""The same kubelets and NVIDIA programs on a real Kubernetes API server."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpukube_sandbox.clock import ScaledClock
from gpukube_sandbox.kube import controlplane
from gpukube_sandbox.kube.cluster import GpuShape, KubeCluster, NodeShape, Taint
from gpukube_sandbox.kube.controlplane import ControlPlane, find_assets
from sandbox_tests.serving import hang_up
from sandbox_tests.waiting import PATIENCE_S, wait_for

from .conftest import TOKEN, Served
from .test_clients import (
    GPU_TAINT,
    HELM_S,
    NAMESPACE,
    SLICED,
    VALUES,
    advertises,
    allocatable,
    helm,
    install,
    kubectl,
    product,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

ASSETS = find_assets()
TOLERATED = [{"key": "nvidia.com/gpu", "operator": "Exists"}]
pytestmark = [
    pytest.mark.kube,
    pytest.mark.skipif(ASSETS is None, reason="KUBEBUILDER_ASSETS names no directory with etcd and kube-apiserver"),
]


@pytest.fixture(scope="module")
def real() -> Iterator[Served]:
    cluster = KubeCluster("real", ScaledClock(100.0), TOKEN, assets=ASSETS)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    served = Served(cluster, "", "", loop)
    asyncio.run_coroutine_threadsafe(cluster.start(), loop).result()  # as long as it takes: it gives up by itself
    served.run(cluster.add_node(NodeShape("system", boot_s=1)))
    nodes = (("single", SLICED), ("mixed", SLICED), ("typo", GpuShape("T4", 1)))
    for key, shape in nodes:
        marks = {"nvidia.com/device-plugin.config": key}
        served.run(cluster.add_node(NodeShape(key, labels=marks, taints=(GPU_TAINT,), gpu=shape, boot_s=5)))
    served.run(cluster.add_node(NodeShape("sku", taints=(Taint("sku", "gpu"),), gpu=GpuShape("T4", 1), boot_s=5)))
    yield served
    served.run(cluster.stop())
    served.run(hang_up())
    loop.call_soon_threadsafe(loop.stop)
    thread.join(PATIENCE_S)
    loop.close()


@pytest.fixture
def real_kubeconfig(real: Served, tmp_path: Path) -> Path:
    path = tmp_path / "kubeconfig"
    path.write_text(real.cluster.kubeconfig(""))
    return path


@pytest.fixture
def charted(real: Served, real_kubeconfig: Path, chart: Path) -> Served:
    """With the chart, whichever tests of this module came before, and nodes that follow it."""
    if "nvdp" not in json.dumps(helm(real_kubeconfig, "list")):
        installed = install(real_kubeconfig, chart, VALUES)
        assert "ok" in installed, installed
    advertises(real, "single", {"nvidia.com/gpu": "56"})
    advertises(real, "mixed", {"nvidia.com/mig-1g.5gb": "56"})
    return real


@pytest.mark.usefixtures("charted")
def test_real_api_when_chart_is_installed_then_same_numbers_as_in_the_emulated_one(
    real: Served, real_kubeconfig: Path
) -> None:
    def plugins() -> dict[str, dict[str, dict[str, str]]]:
        pods = json.loads(kubectl(real_kubeconfig, "get", "pods", "-n", NAMESPACE, "-o", "json"))["items"]
        return {pod["spec"].get("nodeName"): pod for pod in pods if "device-plugin-" in pod["metadata"]["name"]}

    by_node = wait_for(lambda: plugins() if "typo" in plugins() else None, plugins)
    assert by_node is not None

    assert allocatable(real, "typo") == {}
    assert allocatable(real, "sku") == {}
    assert by_node["typo"]["status"]["phase"] == "Pending"
    assert "sku" not in by_node


@pytest.mark.usefixtures("charted")
@pytest.mark.parametrize(
    ("resources", "tolerations", "message"),
    [
        pytest.param({"nvidia.com/gpu": 56}, TOLERATED, "", id="fits"),
        pytest.param({"nvidia.com/mig-1g.5gb": 7}, TOLERATED, "", id="mig-fits"),
        pytest.param({"nvidia.com/gpu": 57}, TOLERATED, "Insufficient nvidia.com/gpu", id="too-many"),
        pytest.param({"nvidia.com/mig-2g.10gb": 1}, TOLERATED, "Insufficient nvidia.com/mig-2g.10gb", id="no-such"),
        pytest.param({"nvidia.com/gpu": 1}, [], "taint", id="untolerated"),
    ],
)
def test_real_scheduler_when_pod_asks_for_gpus_then_runs_or_says_why_not(
    real_kubeconfig: Path, resources: dict[str, int], tolerations: list[dict[str, str]], message: str
) -> None:
    name = f"work-{len(message)}-{''.join(resources)[-1]}"
    container = {"name": "main", "image": "work", "resources": {"limits": {k: str(v) for k, v in resources.items()}}}
    pod = {"metadata": {"name": name}, "spec": {"containers": [container], "tolerations": tolerations}}
    kubectl(real_kubeconfig, "create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "Pod", **pod}))

    def told() -> str:
        return kubectl(
            real_kubeconfig, "get", "pod", name, "-o", "jsonpath={.status.phase} {.status.conditions[*].message}"
        )

    def is_so(seen: str) -> bool:
        return (message in seen and "Pending" in seen) if message else seen.startswith("Running")

    wait_for(lambda: is_so(told()), told)
    kubectl(real_kubeconfig, "delete", "pod", name)


def test_real_api_when_release_is_uninstalled_then_gpus_and_labels_are_gone(
    charted: Served, real_kubeconfig: Path
) -> None:
    wait_for(lambda: product(real_kubeconfig, "single"))
    gone = helm(real_kubeconfig, "uninstall", "nvdp", timeout=HELM_S)
    assert "ok" in gone, gone
    advertises(charted, "single", {"nvidia.com/gpu": "0"})
    wait_for(lambda: product(real_kubeconfig, "single") is None)


def test_control_plane_when_its_process_is_killed_then_nothing_is_left_running(tmp_path: Path) -> None:
    if not shutil.which("setpriv"):
        pytest.skip("setpriv of util-linux is not installed")
    program = """
import asyncio, pathlib, sys
from gpukube_sandbox.kube.controlplane import ControlPlane
async def main():
    plane = ControlPlane(pathlib.Path(sys.argv[1]), "token")
    await plane.start()
    print(*(process.pid for process in plane._processes), flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", program, str(ASSETS)], stdout=subprocess.PIPE, text=True, env=env
    ) as parent:
        assert parent.stdout
        pids = [int(text) for text in parent.stdout.readline().split()]
        parent.kill()

    assert len(pids) >= 2
    wait_for(lambda: not any(_runs(pid) for pid in pids))


def _runs(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):  # gone before it was opened, or while it was read
        return False


def test_control_plane_when_a_port_was_taken_meanwhile_then_started_on_others(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ASSETS
    free = controlplane._free_ports
    with socket.create_server(("127.0.0.1", 0)) as somebody:
        chosen = [[somebody.getsockname()[1], *free(2)]]
        monkeypatch.setattr(controlplane, "_free_ports", lambda count: chosen.pop() if chosen else free(count))
        plane = ControlPlane(ASSETS, TOKEN)

        async def story() -> str:
            await plane.start()
            await plane.stop()
            await hang_up()
            return plane.url

        assert asyncio.run(story())
    assert chosen == []
