"""The release of NVIDIA's DRA driver beside the device plugin's, on an emulated cluster."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.kube.api_types import RELEASE_TYPES
from gpukube.cluster.kube.client import connect_kube
from gpukube.cluster.names import DEVICE_PLUGIN, DRA_DRIVER, DRA_KINDS, RELEASE_KINDS
from gpukube.cluster.release.manager import Cluster, ReleaseManager, apply_release
from gpukube.cluster.release.plan import plan_release
from gpukube.cluster.state.advertisers import find_advertisers
from gpukube.cluster.state.snapshot import Snapshot, look
from gpukube.core.values import KubeAccess
from gpukube.core.values import Taint as PoolTaint
from gpukube.gpu.sharing import MigCut, Sharing
from gpukube_sandbox.kube.nodes.shapes import GpuShape, NodeShape, Taint
from sandbox_tests.waiting import PATIENCE_S
from tests.unit.cluster.builders import VISION_TAINT, claimed, desire
from tests.wire.cluster.conftest import settled_proof
from tests.wire.cluster.test_real_charts import ASSETS, NO_PLANE, control_plane

if TYPE_CHECKING:
    from gpukube.cluster.helm.chart import ChartSource
    from gpukube.cluster.helm.engine import Engine
    from gpukube.cluster.kube.client import LightKube
    from gpukube.cluster.release.plan import ReleasePlan
    from gpukube.core.jsontree import Tree
    from gpukube.core.values import Desired
    from tests.wire.cluster.conftest import Live

CLAIMED = claimed(pool="claims", taints=(VISION_TAINT,))
CHARTED = desire(pool="charted")
POOLS = (CLAIMED, CHARTED)
CLASS = "mig.nvidia.com"
MODELS = {"A100-40GB": ("Standard_ND96asr_v4", "1g.5gb"), "H100-80GB": ("Standard_ND96isr_H100_v5", "1g.10gb")}
SERVED = "revision 1 already serves these pools"
plan_dra = partial(plan_release, kinds=DRA_KINDS)


def bring(keeper: ReleaseManager, kube: LightKube, plan: ReleasePlan) -> None:
    """Try a plan, then make it so."""
    keeper.dry_run(plan, POOLS)
    kinds = DRA_KINDS if plan.kind is DRA_DRIVER else (DEVICE_PLUGIN,)
    assert apply_release(keeper, kube, plan, lambda _missed: plan_release(POOLS, look(kube), kinds=kinds)) is not None


def boot(live: Live, pool: Desired, model: str = "A100-40GB") -> None:
    taints = tuple(Taint(taint.key, taint.value, taint.effect) for taint in pool.effective_taints)
    gpu = GpuShape(model, pool.target.machine.devices)
    shape = NodeShape(f"{pool.target.pool}-1", labels=pool.labels, taints=taints, gpu=gpu, boot_s=1.0)
    live.run(live.cluster.add_node(shape))


def test_releases_when_a_cluster_has_both_then_each_serves_its_nodes_and_leaves_alone(
    keeper: ReleaseManager, kube: LightKube, live: Live
) -> None:
    for plan in (plan_release(POOLS, Snapshot()), plan_dra(POOLS, Snapshot())):
        bring(keeper, kube, plan)
    for pool in POOLS:
        boot(live, pool)
    for pool, name in ((CLAIMED, "gpu.nvidia.com"), (CHARTED, "nvidia.com/gpu")):
        proof = settled_proof(pool, kube)
        assert (proof.status, proof.total) == ("proven", {name: pool.target.machine.devices}), proof.missing_step
    seen = look(kube)
    assert (plan_release(POOLS, seen).action, plan_dra(POOLS, seen).action) == ("none", "none")
    assert find_advertisers(seen, POOLS) == ()
    keeper.take_away(DRA_DRIVER)
    seen = look(kube)
    assert seen.release_of(DRA_DRIVER) is None
    assert plan_release(POOLS, seen).action == "none"
    assert not seen.device_classes


def test_plan_when_a_class_is_changed_by_hand_then_it_is_drift_and_is_restored(
    keeper: ReleaseManager, kube: LightKube
) -> None:
    bring(keeper, kube, plan_dra(POOLS, Snapshot()))
    found = kube.find_object(RELEASE_TYPES["DeviceClass"], CLASS)
    assert found is not None
    change: list[Tree] = [{"op": "replace", "path": "/spec/selectors", "value": []}]
    assert kube.change_object(RELEASE_TYPES["DeviceClass"], found, change)
    plan = plan_dra(POOLS, look(kube))
    assert (plan.action, [(item.object, item.field) for item in plan.drift]) == (
        "upgrade",
        [(f"DeviceClass {CLASS}", "spec.selectors")],
    )
    bring(keeper, kube, plan)
    assert plan_dra(POOLS, look(kube)).action == "none"


def test_upgrade_when_another_spec_was_faster_then_both_specs_taints_are_tolerated(
    keeper: ReleaseManager, kube: LightKube
) -> None:
    keeper.install_or_upgrade(plan_dra([claimed(pool="plain")], Snapshot()), 0)
    late = plan_dra(POOLS, look(kube))
    theirs = claimed(pool="theirs", owner="team-b", taints=(PoolTaint("team", "b", "NoExecute"),))
    keeper.install_or_upgrade(plan_dra([theirs], look(kube)), 1)
    answer = apply_release(keeper, kube, late, lambda missed: plan_dra(POOLS, look(kube), missed=missed))
    assert (answer.revision if answer else 0) == 3
    assert (plan_dra(POOLS, look(kube)).action, plan_dra([theirs], look(kube)).action) == ("none", "none")


@pytest.mark.parametrize("model", MODELS)
def test_releases_when_the_operator_does_mig_for_claims_then_the_driver_publishes_what_it_made(
    keeper: ReleaseManager, kube: LightKube, live: Live, model: str
) -> None:
    """An A100 restarts its node for MIG, an H100 does not: the driver's pod has to look again either way."""
    machine, profile = MODELS[model]
    pool = claimed(cut_by="operator", sharing=Sharing(mig=MigCut(profile, "single")), machine=machine)
    for kinds in (RELEASE_KINDS, DRA_KINDS):
        plan = plan_release([pool], look(kube), kinds=kinds)
        keeper.dry_run(plan, [pool])
        keeper.install_or_upgrade(plan, 0)
    boot(live, pool, model)
    proof = settled_proof(pool, kube)
    assert (proof.status, proof.total) == ("proven", {f"mig.nvidia.com/{profile}": 56}), proof.missing_step
    for kinds in (RELEASE_KINDS, DRA_KINDS):
        assert plan_release([pool], look(kube), kinds=kinds).action == "none"


@pytest.mark.kube
@pytest.mark.skipif(ASSETS is None, reason=NO_PLANE)
def test_releases_when_the_control_plane_is_real_then_it_takes_all_objects_of_both(
    engine: Engine, charts: ChartSource
) -> None:
    """With the real charts where GPUKUBE_REAL_CHARTS has them, with stand-ins otherwise."""
    with control_plane() as (cluster, _loop):
        access = KubeAccess(cluster.kubeconfig(""))
        kube = connect_kube(access, PATIENCE_S)
        keeper = ReleaseManager(Cluster(lambda: access, kube), engine, charts)
        for plan in (plan_release(POOLS, look(kube)), plan_dra(POOLS, look(kube))):
            bring(keeper, kube, plan)
        seen = look(kube)
        assert (plan_release(POOLS, seen).reason, plan_dra(POOLS, seen).reason) == (SERVED, SERVED)
        assert {"gpu.nvidia.com", CLASS} <= set(seen.device_classes)
        keeper.take_away(DRA_DRIVER)
        assert (look(kube).release_of(DRA_DRIVER), plan_release(POOLS, look(kube)).reason) == (None, SERVED)
        keeper.close()
        kube.close()
