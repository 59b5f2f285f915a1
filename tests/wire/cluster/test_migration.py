"""From one release to the other on a live cluster, by either Helm: never two plugins on a node, killed or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.kube.api_types import NODES
from gpukube.cluster.kube.views import pod_view
from gpukube.cluster.names import DEVICE_PLUGIN, GPU_OPERATOR
from gpukube.cluster.release.manager import apply_release
from gpukube.cluster.release.plan import plan_release
from gpukube.cluster.state.snapshot import Snapshot, look
from gpukube.core.jsontree import pointer
from gpukube_sandbox.kube.nodes.shapes import GpuShape, NodeShape
from gpukube_sandbox.kube.nodes.shapes import Taint as SandboxTaint
from sandbox_tests.waiting import wait_for
from tests.unit.cluster.builders import SLICED, desire, operated
from tests.wire.cluster.conftest import settled_proof

if TYPE_CHECKING:
    from gpukube.cluster.kube.client import LightKube
    from gpukube.cluster.release.manager import ReleaseManager
    from gpukube.cluster.release.plan import ReleasePlan
    from gpukube.core.values import Desired
    from tests.wire.cluster.conftest import Live

CHARTED, OPERATED = desire(sharing=SLICED), operated(sharing=SLICED)
WAYS = {"to the operator": (CHARTED, OPERATED), "to the chart": (OPERATED, CHARTED)}


def most_at_once(live: Live) -> int:
    """Tell how many plugins had a pod on the node at one moment, at most."""
    plugins = {DEVICE_PLUGIN.plugin, GPU_OPERATOR.plugin}
    there: dict[str, str] = {}
    most = 0
    for change in live.history("pods"):
        pod = pod_view(change.obj)
        there.pop(pod.name, None)
        if pod.owner in plugins and pod.node and change.verb != "DELETED":
            there[pod.name] = pod.owner
        most = max(most, len(set(there.values())))
    return most


def boot(live: Live, pool: Desired) -> None:
    taints = tuple(SandboxTaint(taint.key, taint.value, taint.effect) for taint in pool.effective_taints)
    shape = NodeShape(name="gpu-1", labels=pool.labels, taints=taints, gpu=GpuShape("A100-40GB", 8), boot_s=1.0)
    live.run(live.cluster.add_node(shape))


def move_labels(kube: LightKube, pool: Desired) -> None:
    """Do what the pool's API does to a live node."""

    def moved() -> bool:
        node = kube.find_object(NODES, "gpu-1")
        assert node is not None
        patch = [
            {"op": "add", "path": pointer("metadata", "labels", key), "value": value}
            for key, value in pool.labels.items()
        ]
        return kube.change_object(NODES, node, patch)

    wait_for(moved, lambda: "the node changed all the time")


def prove(kube: LightKube, pool: Desired) -> None:
    proof = settled_proof(pool, kube)
    assert (proof.status, proof.total) == ("proven", {"nvidia.com/gpu": 32}), proof.missing_step


def start(keeper: ReleaseManager, kube: LightKube, live: Live, former: Desired) -> None:
    keeper.install_or_upgrade(plan_release([former], Snapshot()), 0)
    boot(live, former)
    prove(kube, former)


def carry_on(keeper: ReleaseManager, kube: LightKube, plan: ReleasePlan, wanted: Desired) -> None:
    keeper.dry_run(plan)
    assert apply_release(keeper, kube, plan, lambda _missed: plan_release([wanted], look(kube))) is not None
    move_labels(kube, wanted)
    prove(kube, wanted)
    assert plan_release([wanted], look(kube)).action == "none"


@pytest.mark.turns(2)
@pytest.mark.parametrize("case", WAYS)
def test_migrate_when_asked_to_then_the_node_is_served_by_the_other_and_never_by_two(
    keeper: ReleaseManager, kube: LightKube, live: Live, case: str
) -> None:
    former, wanted = WAYS[case]
    start(keeper, kube, live, former)
    carry_on(keeper, kube, plan_release([wanted], look(kube), migrate=True), wanted)
    assert most_at_once(live) == 1


@pytest.mark.turns(2)
@pytest.mark.parametrize("case", WAYS)
def test_migrate_when_killed_after_the_other_left_then_the_next_run_does_the_rest(
    keeper: ReleaseManager, kube: LightKube, live: Live, case: str
) -> None:
    former, wanted = WAYS[case]
    start(keeper, kube, live, former)
    (outgoing,) = plan_release([wanted], look(kube), migrate=True).leaves
    keeper.remove(outgoing)
    keeper.remove(outgoing)  # a repetition is fine
    plan = plan_release([wanted], look(kube))
    assert (plan.action, plan.leaves) == ("install", ())
    carry_on(keeper, kube, plan, wanted)
    assert most_at_once(live) == 1
