"""NVIDIA's own charts: an upgrade over three years of them, and from one release to the other and back."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

import pytest

from gpukube.cluster.kube.api_types import NODES, RELEASE_TYPES
from gpukube.cluster.kube.client import connect_kube
from gpukube.cluster.names import DEVICE_PLUGIN, NAMESPACE
from gpukube.cluster.release.adoption import adoptable_releases
from gpukube.cluster.release.crds import CRDS
from gpukube.cluster.release.manager import Clock, Cluster, ReleaseManager, apply_release
from gpukube.cluster.release.migration import OutgoingRelease
from gpukube.cluster.release.plan import plan_release
from gpukube.cluster.release.removal import kubeconfig_file
from gpukube.cluster.state.advertisers import check_advertisers, find_advertisers
from gpukube.cluster.state.snapshot import look
from gpukube.core.jsontree import items, pointer, texts, tree
from gpukube.core.values import KubeAccess
from gpukube_sandbox.clock import ScaledClock
from gpukube_sandbox.kube.cluster import KubeCluster
from gpukube_sandbox.kube.controlplane import find_assets
from gpukube_sandbox.kube.nodes.shapes import GpuShape, NodeShape, Taint
from sandbox_tests.clients import client
from sandbox_tests.serving import hang_up
from sandbox_tests.waiting import PATIENCE_S, wait_for
from tests.unit.cluster.builders import SINGLE, SLICED, desire, operated
from tests.wire.cluster.conftest import MOMENT_S, TOKEN, settled_proof
from tests.wire.cluster.real_charts import SWITCH, missing_charts, real_archive

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.cluster.helm.chart import ChartSource
    from gpukube.cluster.helm.engine import Engine
    from gpukube.cluster.kube.client import LightKube
    from gpukube.cluster.release.plan import ReleasePlan
    from gpukube.core.values import Desired
    from tests.wire.cluster.conftest import Live

EACH = [f"nvidia-device-plugin-{version}.tgz" for version in ("0.15.0", "0.17.4", "0.19.3", "0.20.0")]
OLD, NEW, OPERATOR = "nvidia-device-plugin-0.17.4.tgz", "nvidia-device-plugin-0.20.0.tgz", "gpu-operator-v26.7.0.tgz"
MISSING = missing_charts(OLD, NEW, OPERATOR)
ASSETS = find_assets()
pytestmark = [
    pytest.mark.charts,
    pytest.mark.skipif(bool(MISSING), reason=f"{SWITCH} names no directory with {', '.join(MISSING)}"),
]
THEIRS = "nvidia-device-plugin"
BY_HAND: dict[str, dict[str, object]] = {
    "0.15.0": {"migStrategy": "single", "gfd": {"enabled": True}},  # as AKS's how-to for MIG pools does it
    "0.17.4": {"gfd": {"enabled": True}},
    "0.19.3": {"gfd": {"enabled": True}, "podAnnotations": {"team": "vision"}},
}
BY_HELM_4 = """
import json, sys
import helm_python
from helm_python import _native
path, chart, namespace = sys.argv[1:]
options = {"namespace": namespace, "create_namespace": True, "disable_openapi_validation": True}
with helm_python.Config(kubeconfig_path=path, namespace=namespace, storage_driver="secret") as config:
    _native.call_string("helm_install", config._raw(), 0, 0, chart, "nvdp", sys.stdin.read(), json.dumps(options))
"""
Helm = Literal["3", "4"]
NO_PLANE = "KUBEBUILDER_ASSETS names no directory with etcd and kube-apiserver"
CHARTED, OPERATED = desire(sharing=SLICED), operated(sharing=SLICED)


@dataclass
class Stage:
    """A cluster, emulated or with a real API server, and the keeper of its release."""

    cluster: KubeCluster
    loop: asyncio.AbstractEventLoop
    access: KubeAccess
    kube: LightKube
    keeper: ReleaseManager

    def boot(self, pool: Desired) -> None:
        """Boot a machine of a pool."""
        taints = tuple(Taint(taint.key, taint.value, taint.effect) for taint in pool.effective_taints)
        cut = pool.target.sharing.mig
        gpu = GpuShape("A100-40GB", 8, ("1g.5gb",) * 7 if cut and pool.ownership.advertiser == "chart" else ())
        shape = NodeShape("gpu-1", labels=pool.labels, taints=taints, gpu=gpu, boot_s=1.0)
        for node in (shape, NodeShape(name="cpu-1", boot_s=1.0)):  # clean-up jobs of NFD need a node
            asyncio.run_coroutine_threadsafe(self.cluster.add_node(node), self.loop).result(PATIENCE_S)

    def bring(self, plan: ReleasePlan, pool: Desired, version: str = "") -> None:
        """Try a plan, then make it so."""
        self.keeper.dry_run(plan, [pool])
        replan = partial(plan_release, [pool], chart_version=version)
        assert apply_release(self.keeper, self.kube, plan, lambda _missed: replan(look(self.kube))) is not None

    def move_labels(self, pool: Desired) -> None:
        """Do what the pool's API does to a live node."""

        def moved() -> bool:
            node = self.kube.find_object(NODES, "gpu-1")
            assert node is not None
            pairs = pool.labels.items()
            patch = [{"op": "add", "path": pointer("metadata", "labels", key), "value": value} for key, value in pairs]
            return self.kube.change_object(NODES, node, patch)

        wait_for(moved)

    def prove(self, pool: Desired, devices: int = 32) -> None:
        """See that the node shows what is promised, and that nothing is left to do."""
        proof = settled_proof(pool, self.kube)
        assert (proof.status, proof.total) == ("proven", {"nvidia.com/gpu": devices}), proof.missing_step


@contextmanager
def control_plane() -> Iterator[tuple[KubeCluster, asyncio.AbstractEventLoop]]:
    """Start a real control plane with emulated kubelets."""
    cluster = KubeCluster("real", ScaledClock(100.0), TOKEN, assets=ASSETS)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(cluster.start(), loop).result()  # as long as it takes: it gives up by itself
    try:
        yield cluster, loop
    finally:
        asyncio.run_coroutine_threadsafe(cluster.stop(), loop).result(PATIENCE_S)
        asyncio.run_coroutine_threadsafe(hang_up(), loop).result(PATIENCE_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE_S)
        loop.close()


@pytest.fixture(
    params=[
        "emulated",
        pytest.param("real", marks=[pytest.mark.kube, pytest.mark.skipif(ASSETS is None, reason=NO_PLANE)]),
    ]
)
def stage(request: pytest.FixtureRequest, engine: Engine, charts: ChartSource) -> Iterator[Stage]:
    with ExitStack() as stack:
        if request.param == "real":
            cluster, loop = stack.enter_context(control_plane())
            access = KubeAccess(cluster.kubeconfig(""))
        else:
            live: Live = request.getfixturevalue("live")
            cluster, loop, access = live.cluster, live.loop, live.access()
        kube = connect_kube(access, PATIENCE_S)
        stack.callback(kube.close)
        clock = Clock(pause=lambda seconds: time.sleep(min(seconds, MOMENT_S)))
        keeper = ReleaseManager(Cluster(lambda: access, kube), engine, charts, clock)
        stack.callback(keeper.close)
        yield Stage(cluster, loop, access, kube, keeper)


def install_by_hand(helm: Helm, access: KubeAccess, archive: str, values: dict[str, object]) -> None:
    """Install a chart as its readers do, types included; again while a young API server does not serve all yet."""
    told: list[str] = []
    with kubeconfig_file(access) as path:
        chart = path.with_name(archive)
        chart.write_bytes(real_archive(*archive.removesuffix(".tgz").rsplit("-", 1)))
        where = ["--namespace", THEIRS, "--create-namespace", "--disable-openapi-validation", "--kubeconfig", str(path)]
        by_helm_4 = [sys.executable, "-c", BY_HELM_4, str(path), str(chart), THEIRS]
        command = by_helm_4 if helm == "4" else [client("helm"), "install", "nvdp", str(chart), *where, "--values", "-"]

        def is_installed() -> bool:
            done = subprocess.run(command, input=json.dumps(values), capture_output=True, text=True, check=False)
            told.append(done.stderr)
            return done.returncode == 0

        wait_for(is_installed, lambda: told[-1], every_s=1.0)


def probed_by(kube: LightKube) -> list[set[str]]:
    """Say by what the containers of NFD's master are probed."""
    name = f"{DEVICE_PLUGIN.plugin}-node-feature-discovery-master"
    master = kube.find_object(RELEASE_TYPES["Deployment"], name, NAMESPACE)
    assert master is not None
    containers = items(master, "spec", "template", "spec", "containers")
    return [{"grpc", "httpGet"} & {*tree(item, "livenessProbe")} for item in containers]


def test_upgrade_when_a_release_of_0_17_goes_to_0_20_then_its_discovery_is_probed_the_new_way_and_it_serves(
    stage: Stage,
) -> None:
    stage.bring(plan_release([CHARTED], look(stage.kube), chart_version="0.17.4"), CHARTED, "0.17.4")
    stage.boot(CHARTED)
    stage.prove(CHARTED)
    assert probed_by(stage.kube) == [{"grpc"}]
    plan = plan_release([CHARTED], look(stage.kube), chart_version="0.20.0")
    assert (plan.action, "0.17.4 -> 0.20.0" in plan.reason) == ("upgrade", True)
    stage.bring(plan, CHARTED, "0.20.0")
    stage.prove(CHARTED)
    assert probed_by(stage.kube) == [{"httpGet"}]
    assert plan_release([CHARTED], look(stage.kube)).action == "none"


@pytest.mark.parametrize("way", [(CHARTED, OPERATED), (OPERATED, CHARTED)], ids=["to the operator", "to the chart"])
def test_migrate_when_the_charts_are_nvidias_own_then_the_node_is_served_by_the_other(
    stage: Stage, way: tuple[Desired, Desired]
) -> None:
    former, wanted = way
    stage.bring(plan_release([former], look(stage.kube)), former)
    stage.boot(former)
    stage.prove(former)
    plan = plan_release([wanted], look(stage.kube), migrate=True)
    assert [item.there for item in plan.leaves] == [True]
    stage.bring(plan, wanted)
    stage.move_labels(wanted)
    stage.prove(wanted)
    assert plan_release([wanted], look(stage.kube)).action == "none"


@pytest.mark.skipif(bool(missing_charts(*EACH)), reason=f"{SWITCH} names no directory with {', '.join(EACH)}")
@pytest.mark.parametrize("helm", [pytest.param("3", marks=pytest.mark.clients("helm")), "4"])
@pytest.mark.parametrize("way", ["adopt", "uninstall"])
@pytest.mark.parametrize("version", BY_HAND)
def test_release_made_by_hand_when_it_goes_either_way_then_the_nodes_have_what_they_had(
    version: str, way: str, helm: Helm, stage: Stage
) -> None:
    """Each release that people have, by each Helm; what it left behind keeps nothing away."""
    install_by_hand(helm, stage.access, f"nvidia-device-plugin-{version}.tgz", BY_HAND[version])
    pool = desire(sharing=SINGLE)
    stage.boot(pool)
    wait_for(lambda: devices_of(stage.kube) == {"nvidia.com/gpu": "56" if version == "0.15.0" else "8"})

    def planned() -> ReleasePlan:
        seen = look(stage.kube)
        return plan_release([pool], seen, adopt=adoptable_releases(stage.kube, seen) if way == "adopt" else ())

    if way == "uninstall":
        assert check_advertisers(find_advertisers(look(stage.kube), [pool]), [pool])
        outgoing = OutgoingRelease("nvdp", THEIRS, "theirs", "nvdp-nvidia-device-plugin", None)
        stage.keeper.remove(outgoing)
    plan = planned()
    assert [item.there for item in plan.leaves] == ([True] if way == "adopt" else [])
    stage.keeper.dry_run(plan, [pool])
    assert apply_release(stage.keeper, stage.kube, plan, lambda _missed: planned()) is not None
    stage.prove(pool, 56)
    assert planned().action == "none"
    assert "migStrategy" not in plan.values
    assert stage.kube.find_object(CRDS, "nodefeaturegroups.nfd.k8s-sigs.io") is not None


def devices_of(kube: LightKube) -> dict[str, str]:
    """Read what the GPU node offers."""
    node = kube.find_object(NODES, "gpu-1")
    return {name: count for name, count in texts(node, "status", "allocatable").items() if "nvidia.com" in name}
