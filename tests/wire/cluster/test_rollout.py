"""After a change of the release: the proof waits until the roll-out has reached the node."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.names import kind_of
from gpukube.cluster.proof.outcome import step_of
from gpukube.cluster.proof.verify import prove_pool
from gpukube.cluster.release.manager import apply_release
from gpukube.cluster.release.plan import plan_release
from gpukube.cluster.release.plugin_refresh import refresh_plugin
from gpukube.cluster.state.snapshot import Snapshot, look
from gpukube.engine.documents.parts import WEIGHTS
from gpukube_sandbox.kube.nodes.shapes import GpuShape, NodeShape
from tests.unit.cluster.builders import SLICED, desire, operated
from tests.wire.cluster.conftest import FAST, settled_proof

if TYPE_CHECKING:
    from gpukube.cluster.kube.client import LightKube
    from gpukube.cluster.release.manager import ReleaseManager
    from gpukube.core.values import Desired
    from tests.wire.cluster.conftest import Live

STILL = 0.001
POOLS = {"chart": desire(sharing=SLICED), "operator": operated(sharing=SLICED)}


def change(keeper: ReleaseManager, kube: LightKube, pool: Desired) -> None:
    """Change the template of the plugin's pods: by a value of the chart, or as new entries of the operator's do."""
    if pool.ownership.advertiser == "operator":
        assert refresh_plugin(kube)
        return
    changed = dataclasses.replace(
        pool, target=dataclasses.replace(pool.target, chart_values={"podAnnotations": {"a": "b"}})
    )
    plan = plan_release([changed], look(kube))
    assert plan.action == "upgrade", plan.reason
    apply_release(keeper, kube, plan, lambda _missed: plan)


def plugin_pods(kube: LightKube, pool: Desired) -> list[str]:
    kind = kind_of(pool.ownership.advertiser)
    assert kind is not None
    return [pod.name for pod in look(kube).pods if pod.owner == kind.plugin]


@pytest.mark.turns(2)
@pytest.mark.parametrize("owner", POOLS)
def test_proof_when_the_release_has_changed_and_the_old_pod_still_serves_then_waits_for_the_new_one(
    keeper: ReleaseManager, kube: LightKube, live: Live, owner: str
) -> None:
    pool = POOLS[owner]
    keeper.install_or_upgrade(plan_release([pool], Snapshot()), 0)
    live.run(live.cluster.add_node(NodeShape("gpu-1", labels=pool.labels, gpu=GpuShape("A100-40GB", 8), boot_s=1.0)))
    assert settled_proof(pool, kube).status == "proven"
    (old,) = plugin_pods(kube, pool)
    live.pace(STILL)
    change(keeper, kube, pool)
    proof = prove_pool(pool, look(kube))
    assert proof.total == {"nvidia.com/gpu": 32}
    step = proof.missing_step
    assert step is not None
    assert (proof.status, step_of(step), WEIGHTS[step.severity]) == ("waiting", "plugin-pod", "waiting")
    assert step.seen.startswith(f"pod {old} has an outdated template of DaemonSet ")
    live.pace(FAST)
    assert settled_proof(pool, kube).status == "proven"
    assert old not in plugin_pods(kube, pool)
