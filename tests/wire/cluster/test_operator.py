"""The GPU Operator as a cluster's release: both Helms, the stand-in chart, and imitated operands that cut."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.helm.chart import ChartSource
from gpukube.cluster.names import CLUSTER_POLICY, DEVICE_PLUGIN, GPU_OPERATOR, NAMESPACE
from gpukube.cluster.proof.verify import prove_pool
from gpukube.cluster.release.manager import apply_release
from gpukube.cluster.release.plan import plan_release
from gpukube.cluster.state.advertisers import find_advertisers
from gpukube.cluster.state.snapshot import Snapshot, look
from gpukube.errors import Conflict, HelmError
from gpukube_sandbox.kube.controllers.migmanager import STATE
from gpukube_sandbox.kube.nodes.shapes import GpuShape, NodeShape
from gpukube_sandbox.kube.nodes.shapes import Taint as SandboxTaint
from tests.unit.cluster.builders import GPU_TAINT, MIXED, SINGLE, SLICED, VISION_TAINT, desire, operated
from tests.wire.cluster.conftest import settled_proof

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gpukube.cluster.kube.client import LightKube
    from gpukube.cluster.release.manager import ReleaseManager
    from gpukube.core.values import Desired
    from tests.wire.cluster.conftest import Live

CUT = operated(sharing=SINGLE, taints=(GPU_TAINT, VISION_TAINT))
MIX = operated(sharing=MIXED, pool="mix")
SHARED = operated(sharing=SLICED, pool="shared")
FRESH = plan_release([CUT], Snapshot())


def boot(live: Live, pool: Desired, name: str) -> None:
    """Let a node with whole GPUs join, as EC2 starts it."""
    taints = tuple(SandboxTaint(taint.key, taint.value, taint.effect) for taint in pool.effective_taints)
    shape = NodeShape(name=name, labels=pool.labels, taints=taints, gpu=GpuShape("A100-40GB", 8), boot_s=1.0)
    live.run(live.cluster.add_node(shape))


def states_of(live: Live, node: str) -> list[str]:
    """Every state of MIG that a node went through, "" before the manager came."""
    nodes = (change.obj["metadata"] for change in live.history("nodes"))
    states = (meta.get("labels", {}).get(STATE, "") for meta in nodes if meta["name"] == node)
    return [state for state, _ in itertools.groupby(states)]


def test_dry_run_when_the_cluster_does_not_know_the_operator_then_tried_without_a_trace(
    keeper: ReleaseManager, kube: LightKube
) -> None:
    assert keeper.dry_run(FRESH).digest.startswith("sha256:")
    assert kube.namespace_labels(NAMESPACE) is None
    assert look(kube) == Snapshot()


def test_install_when_nothing_is_there_then_the_release_is_as_planned_and_not_foreign(
    keeper: ReleaseManager, kube: LightKube
) -> None:
    assert keeper.install_or_upgrade(FRESH, 0).revision == 1
    seen = look(kube)
    live = seen.release_of(GPU_OPERATOR)
    assert live is not None
    assert (live.values, live.chart_version, seen.release_of(DEVICE_PLUGIN)) == (FRESH.values, "v26.7.0", None)
    assert seen.cluster_policies == (CLUSTER_POLICY,)
    assert sorted(seen.operator_config_map or {}) == list(FRESH.keys)
    assert find_advertisers(seen, [CUT]) == ()
    assert plan_release([CUT], seen).action == "none"


def test_upgrade_when_a_second_spec_joins_then_both_are_served_and_a_trial_asks_the_cluster(
    keeper: ReleaseManager, kube: LightKube
) -> None:
    keeper.install_or_upgrade(FRESH, 0)
    second = plan_release([SHARED], look(kube))
    keeper.dry_run(second)
    answer = apply_release(keeper, kube, second, lambda missed: plan_release([SHARED], look(kube), missed=missed))
    assert answer is not None
    assert answer.revision == 2
    seen = look(kube)
    assert {CUT.ownership.config_key, SHARED.ownership.config_key} <= set(seen.operator_config_map or {})
    assert plan_release([CUT], seen).action == "none"


def test_plan_when_the_operator_is_live_then_the_chart_is_refused_until_it_is_gone(
    keeper: ReleaseManager, kube: LightKube, live: Live
) -> None:
    live.run(live.cluster.add_node(NodeShape(name="cpu-1", boot_s=1.0)))  # NFD's clean-up job needs a node
    keeper.install_or_upgrade(FRESH, 0)
    charted = desire(sharing=SINGLE)
    plan = plan_release([charted], look(kube))
    with pytest.raises(Conflict, match="GPU Operator"):
        apply_release(keeper, kube, plan, lambda _missed: plan)
    assert keeper.uninstall(GPU_OPERATOR)
    assert not keeper.uninstall(GPU_OPERATOR)
    assert plan_release([charted], look(kube)).action == "install"


def test_dry_run_when_the_chart_at_hand_is_the_other_one_then_said_so(
    keep: Callable[..., ReleaseManager], charts: ChartSource, keeper: ReleaseManager, tmp_path: Path
) -> None:
    source = ChartSource(charts.location, DEVICE_PLUGIN.version, DEVICE_PLUGIN.chart)
    archive = keeper._engine.pull(source, tmp_path)
    with pytest.raises(HelmError, match='the chart is "nvidia-device-plugin"') as caught:
        keep(source=ChartSource(str(archive))).dry_run(FRESH)
    assert "gpu-operator" in caught.value.diagnostics[0].fix


def test_prove_when_whole_gpus_join_then_cut_by_a_reboot_and_shown_as_each_entry_says(
    keeper: ReleaseManager, kube: LightKube, live: Live
) -> None:
    pools = [CUT, SHARED]
    keeper.install_or_upgrade(plan_release(pools, Snapshot()), 0)
    waiting = prove_pool(CUT, look(kube))
    assert (waiting.status, waiting.missing_step is not None) == ("waiting", True)
    for pool in pools:
        boot(live, pool, f"{pool.target.pool}-1")
    proof = settled_proof(CUT, kube)
    assert (proof.status, proof.total) == ("proven", {"nvidia.com/gpu": 56}), proof.missing_step
    assert states_of(live, f"{CUT.target.pool}-1") == ["", "pending", "rebooting", "success"]
    shared = settled_proof(SHARED, kube)
    assert (shared.status, shared.total) == ("proven", {"nvidia.com/gpu": 32}), shared.missing_step
    assert plan_release(pools, look(kube)).action == "none"


def test_prove_when_pools_are_mixed_then_slices_have_names_of_their_own_and_whole_gpus_too(
    keeper: ReleaseManager, kube: LightKube, live: Live
) -> None:
    pools = [MIX, SHARED]
    keeper.install_or_upgrade(plan_release(pools, Snapshot()), 0)
    for pool in pools:
        boot(live, pool, f"{pool.target.pool}-1")
    mixed = settled_proof(MIX, kube)
    assert (mixed.status, mixed.total) == ("proven", {"nvidia.com/mig-1g.5gb": 56}), mixed.missing_step
    shared = settled_proof(SHARED, kube)
    assert (shared.status, shared.total) == ("proven", {"nvidia.com/gpu": 32}), shared.missing_step


def test_prove_when_a_profile_does_not_exist_then_broken_and_the_manager_is_named(
    keeper: ReleaseManager, kube: LightKube, live: Live
) -> None:
    keeper.install_or_upgrade(FRESH, 0)
    taints = tuple(SandboxTaint(taint.key, taint.value, taint.effect) for taint in CUT.effective_taints)
    other = NodeShape(name="h100", labels=CUT.labels, taints=taints, gpu=GpuShape("H100-80GB", 8), boot_s=1.0)
    live.run(live.cluster.add_node(other))
    proof = settled_proof(CUT, kube)
    assert proof.status == "broken"
    assert proof.missing_step is not None
    assert proof.missing_step.seen == "label nvidia.com/mig.config.state is failed"
    assert "nvidia-mig-manager" in proof.missing_step.fix
