"""Planning a cluster: what counts as being there."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pytest

from gpukube.core.values import ClusterFacts, Settings
from gpukube.engine import looking
from gpukube.engine.looking import plan_clusters
from gpukube.engine.plan.prepare import Filters, Prepared
from gpukube.engine.run.calls import reading_responses
from gpukube.engine.run.session import Session
from gpukube.errors import ExitCode, GpukubeError
from gpukube.gpu.sharing import Sharing
from tests.builders import CLUSTER
from tests.unit.cluster.builders import desire, installed, node_of
from tests.unit.engine.stage import FakeKube, Stage

if TYPE_CHECKING:
    from collections.abc import Callable

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


def test_plan_when_gpukube_itself_is_wrong_then_a_defect_of_that_cluster_and_no_bad_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("ours")

    monkeypatch.setattr(looking, "plan_outside", broken)
    stage = Stage([POOL])
    prepared = Prepared((POOL.target.owner,), {CLUSTER.key: CLUSTER}, {CLUSTER.key: (POOL,)}, (), Filters())
    (plan,) = plan_clusters(prepared, {CLUSTER.key: stage.session}, stage.run)
    assert plan.error is not None
    (said,) = plan.error.diagnostics
    assert (said.code, str(said.where)) == ("defect", CLUSTER.key)


def frames_of(*modules: str) -> Callable[[], None]:
    """Make a function that fails in the last of these modules, called through the ones before."""

    def fail() -> None:
        raise TypeError("odd")

    call = fail
    for module in reversed(modules):
        made: dict[str, Any] = {"__name__": module, "inner": call}
        exec("def outer():\n    inner()", made)  # noqa: S102 - a frame of that module
        call = made["outer"]
    return call


@pytest.mark.parametrize(
    ("modules", "code"),
    [
        (("gpukube.engine.plan.planning", "gpukube_aks.live.client", "azure.core.pipeline"), "cloud-answer"),
        (("gpukube_aks.live.client", "gpukube_aks.pool.observe", "gpukube.core.jsontree"), "cloud-answer"),
        (("gpukube_eks.pool.observe", "gpukube.core.binding", "gpukube_eks.pool.fields"), "cloud-answer"),
        (("gpukube.engine.looking", "gpukube.cluster.kube.views", "json.decoder"), "cloud-answer"),
        (("gpukube_aks.live.client", "gpukube.core.plan"), "defect"),
        (("gpukube.core.plan", "gpukube_gke.pool.change", "gpukube.core.jsontree"), "defect"),
        (("gpukube.engine.change.live_pool", "json.encoder"), "defect"),
    ],
)
def test_failure_when_it_comes_out_of_reading_then_an_answer_else_a_defect(modules: tuple[str, ...], code: str) -> None:
    with pytest.raises(GpukubeError) as caught, reading_responses("AKS", "train-aks", "reading"):
        frames_of(*modules)()
    assert caught.value.diagnostics[0].code == code
