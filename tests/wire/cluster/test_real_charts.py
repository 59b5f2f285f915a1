"""NVIDIA's own charts: an upgrade over three years of them, and from one release to the other and back."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.kube.api_types import NODES, RELEASE_TYPES
from gpukube.cluster.kube.client import connect_kube
from gpukube.cluster.names import DEVICE_PLUGIN, NAMESPACE
from gpukube.cluster.release.manager import Clock, Cluster, ReleaseManager, apply_release
from gpukube.cluster.release.plan import plan_release
from gpukube.cluster.state.snapshot import look
from gpukube.core.jsontree import items, pointer, tree
from gpukube.core.values import KubeAccess
from gpukube.sandbox.clock import ScaledClock
from gpukube.sandbox.kube.cluster import KubeCluster
from gpukube.sandbox.kube.controlplane import find_assets
from gpukube.sandbox.kube.nodes.shapes import GpuShape, NodeShape, Taint
from tests.serving import hang_up
from tests.unit.cluster.builders import SLICED, desire, operated
from tests.waiting import PATIENCE_S, wait_for
from tests.wire.cluster.conftest import MOMENT_S, TOKEN, settled_proof
from tests.wire.cluster.real_charts import SWITCH, missing_charts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.cluster.helm.chart import ChartSource
    from gpukube.cluster.helm.engine import Engine
    from gpukube.cluster.kube.client import LightKube
    from gpukube.cluster.release.plan import ReleasePlan
    from gpukube.core.values import Desired
    from tests.wire.cluster.conftest import Live

OLD, NEW, OPERATOR = "nvidia-device-plugin-0.17.4.tgz", "nvidia-device-plugin-0.20.0.tgz", "gpu-operator-v26.7.0.tgz"
MISSING = missing_charts(OLD, NEW, OPERATOR)
ASSETS = find_assets()
pytestmark = [
    pytest.mark.charts,
    pytest.mark.skipif(bool(MISSING), reason=f"{SWITCH} names no directory with {', '.join(MISSING)}"),
]
NO_PLANE = "KUBEBUILDER_ASSETS names no directory with etcd and kube-apiserver"
CHARTED, OPERATED = desire(sharing=SLICED), operated(sharing=SLICED)


@dataclass
class Stage:
    """A cluster, emulated or with a real API server, and the keeper of its release."""

    cluster: KubeCluster
    loop: asyncio.AbstractEventLoop
    kube: LightKube
    keeper: ReleaseManager

    def boot(self, pool: Desired) -> None:
        """Boot a machine of a pool."""
        taints = tuple(Taint(taint.key, taint.value, taint.effect) for taint in pool.effective_taints)
        shape = NodeShape("gpu-1", labels=pool.labels, taints=taints, gpu=GpuShape("A100-40GB", 8), boot_s=1.0)
        asyncio.run_coroutine_threadsafe(self.cluster.add_node(shape), self.loop).result(PATIENCE_S)

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

    def prove(self, pool: Desired) -> None:
        """See that the node shows what is promised, and that nothing is left to do."""
        proof = settled_proof(pool, self.kube)
        assert (proof.status, proof.total) == ("proven", {"nvidia.com/gpu": 32}), proof.missing_step


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
        yield Stage(cluster, loop, kube, keeper)


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
