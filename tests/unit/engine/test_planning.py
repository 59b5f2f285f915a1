"""Planning a cluster: what counts as being there."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pytest

from gpukube.core.values import ClusterFacts, Settings
from gpukube.engine.looking import plan_clusters
from gpukube.engine.plan.prepare import Filters, Prepared
from gpukube.engine.run.session import Session
from gpukube.errors import ExitCode
from gpukube.gpu.sharing import Sharing
from tests.builders import CLUSTER
from tests.unit.cluster.builders import desire, installed, node_of
from tests.unit.engine.stage import FakeKube, Stage

if TYPE_CHECKING:
    from gpukube.cluster.kube.client import Kube
    from gpukube.core.values import Desired

POOL = desire(sharing=Sharing())
ANOTHER = desire(sharing=Sharing(), machine="Standard_ND96amsr_A100_v4")


@pytest.mark.parametrize(
    ("desired", "action", "rivals"),
    [
        pytest.param(ANOTHER, "replace", [], id="its nodes are gone before it is made again"),
        pytest.param(POOL, "no-op", ["foreign-advertiser"], id="its nodes stay"),
    ],
)
def test_plan_when_nodes_bring_a_plugin_then_a_rival_only_where_they_stay(
    desired: Desired, action: str, rivals: list[str]
) -> None:
    node = node_of(POOL)
    rocket = replace(node, os_image="Bottlerocket OS 1.57.0 (aws-k8s-1.34-nvidia)")
    stage = Stage([POOL], seen_at=lambda _now: installed([POOL], node))
    stage.make()
    kube = FakeKube(stage.clock, lambda _now: installed([POOL], rocket))
    session = Session(CLUSTER, stage.provider, stage.session.cloud, Settings(), None, cast("Kube", kube))
    prepared = Prepared((desired.target.owner,), {CLUSTER.key: CLUSTER}, {CLUSTER.key: (desired,)}, (), Filters())

    (plan,) = plan_clusters(prepared, {CLUSTER.key: session}, stage.run)
    assert plan.unknown == ""
    assert [pool.action for pool in plan.pools] == [action]
    assert [d.code for d in plan.diagnostics if d.severity == "error"] == rivals


def test_plan_when_the_cloud_answers_with_nothing_then_its_bad_answer_and_not_a_wrong_spec() -> None:
    stage = Stage([POOL])
    prepared = Prepared((POOL.target.owner,), {CLUSTER.key: CLUSTER}, {CLUSTER.key: (POOL,)}, (), Filters())
    empty = ClusterFacts("", "", ready=False, status="Unknown")
    stage.session.cloud.identify = lambda: empty  # type: ignore[method-assign]  # an answer that no world gives
    (plan,) = plan_clusters(prepared, {CLUSTER.key: stage.session}, stage.run)
    assert plan.error is not None
    assert (plan.error.diagnostics[0].code, plan.error.exit_code) == ("cloud-answer", ExitCode.ERROR)
