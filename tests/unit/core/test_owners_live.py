"""What is on the cluster counts: an operator that serves others serves these pools too, and the cluster knows best."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from gpukube.core.values import ClusterFacts, Settings
from gpukube.engine.looking import plan_clusters
from gpukube.engine.plan.planning import Scope
from gpukube.engine.plan.prepare import Filters, Prepared
from gpukube.engine.run.session import Session
from gpukube.errors import ClusterError
from gpukube.gpu.sharing import Sharing
from gpukube.testing.fakes import FakeCloud
from tests.builders import CLUSTER, make_observed
from tests.unit.cluster.builders import SINGLE, desire, installed, operated, operating, release_secret
from tests.unit.engine.stage import FakeKube, Stage

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest

    from gpukube.cluster.kube.client import Kube
    from gpukube.cluster.kube.releases import Release
    from gpukube.cluster.state.snapshot import Snapshot
    from gpukube.core.values import Desired
    from gpukube.engine.plan.planning import ClusterPlan
    from gpukube.errors import GpukubeError

WHOLE = desire(sharing=Sharing(), pool="whole", name="whole")
CUT_BY_CLOUD = desire(sharing=SINGLE, pool="cut", name="cut")
THEIRS = operated(sharing=Sharing(), owner="stranger", pool="theirs", name="theirs")
OPERATING = operating([THEIRS])
CHARTED = installed([WHOLE])


class KubeWithReleases(FakeKube):
    """A cluster where nothing of the users runs, and that shows its releases."""

    def release_secrets(self, *_asked: object, **_how: object) -> tuple[Mapping[str, object], ...]:  # type: ignore[override]  # the base has none
        seen = self._seen()
        return tuple(packed(release) for release in (*seen.history, *seen.operator_history))


def packed(release: Release) -> Mapping[str, object]:
    """Write a release as Helm does, without its objects: then none is looked for."""
    record = {
        "name": release.name,
        "namespace": release.namespace,
        "version": release.revision,
        "info": {"status": release.status},
        "chart": {"metadata": {"name": release.chart, "version": release.chart_version}},
        "config": release.values,
        "manifest": "",
    }
    return release_secret(record, name=release.name, revision=release.revision)


def planned(wanted: Desired, seen: Snapshot | GpukubeError, *live: Desired, scope: Scope = Scope()) -> ClusterPlan:
    stage = Stage([*live], seen_at=lambda _now: seen)
    for pool in live:
        stage.world.pools[pool.target.name] = make_observed(pool)
    kube = KubeWithReleases(stage.clock, lambda _now: seen)
    session = Session(CLUSTER, stage.provider, stage.session.cloud, Settings(), None, cast("Kube", kube))
    prepared = Prepared((wanted.target.owner,), {CLUSTER.key: CLUSTER}, {CLUSTER.key: (wanted,)}, (), Filters())
    (plan,) = plan_clusters(prepared, {CLUSTER.key: session}, stage.run, scope)
    return plan


def advertiser(plan: ClusterPlan) -> str:
    (pool,) = plan.desired
    return pool.ownership.advertiser


def test_plan_when_another_specs_operator_is_there_then_it_serves_this_pool_too() -> None:
    plan = planned(WHOLE, OPERATING)
    assert advertiser(plan) == "operator"
    assert plan.pools[0].desired == plan.desired[0]
    assert "gpukube's GPU Operator is already on the cluster" in plan.desired[0].ownership.reason
    assert plan.release is not None
    assert (plan.release.kind.advertiser, plan.release.action) == ("operator", "none")
    assert plan.diagnostics == ()


def test_plan_when_the_cluster_cannot_be_asked_then_the_labels_of_live_pools_tell() -> None:
    assert advertiser(planned(WHOLE, ClusterError("no answer", fix="wait"), THEIRS)) == "operator"
    assert advertiser(planned(WHOLE, OPERATING, THEIRS, scope=Scope(skip_cluster=True))) == "operator"
    assert advertiser(planned(WHOLE, OPERATING, scope=Scope(skip_cluster=True))) == "chart"


def test_plan_when_the_operator_is_gone_then_the_cluster_is_believed_and_not_the_labels() -> None:
    plan = planned(WHOLE, CHARTED, THEIRS)
    assert advertiser(plan) == "chart"
    assert plan.pools[0].desired == plan.desired[0]


def test_plan_when_the_operator_does_not_know_the_kubernetes_then_warned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeCloud, "identify", lambda _: ClusterFacts("here", "1.31.4", ready=True, status="Running"))
    plan = planned(WHOLE, OPERATING)
    assert [(found.code, found.severity) for found in plan.diagnostics] == [("owner", "warning")]
    assert planned(WHOLE, CHARTED).diagnostics == ()


def test_plan_when_the_live_operator_would_undo_a_cut_then_refused_once() -> None:
    plan = planned(CUT_BY_CLOUD, OPERATING)
    assert advertiser(plan) == "none"
    assert [found.code for found in plan.diagnostics] == ["owner"]
    assert "; or " in plan.diagnostics[0].fix
