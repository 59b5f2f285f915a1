"""Deleting when calls are refused, answers are lost, and pools are not for deletion."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.release.plan import plan_release
from gpukube.engine.change.create import create_pools
from gpukube.engine.change.delete import delete_pools, plan_deletion
from gpukube.errors import Busy, CloudError, ClusterError, Conflict, SpecError
from gpukube.testing.clock import ManualClock
from tests.builders import CLUSTER
from tests.unit.cluster.builders import SINGLE, desire, installed
from tests.unit.engine.stage import RESUME, Stage

if TYPE_CHECKING:
    from gpukube.cluster.state.snapshot import Snapshot
    from gpukube.core.values import Desired
    from gpukube.engine.run.report import PoolReport

CUT = desire(sharing=SINGLE)
OWNERS = (CUT.target.owner,)
LOST = CloudError("the answer was lost", fix="run it again")
BUSY = Busy("another operation runs", fix="wait")


@pytest.fixture
def stage() -> Stage:
    made = Stage([CUT])
    create_pools([made.plan()], {CLUSTER.key: made.session}, made.run)
    made.world.requests.clear()
    return made


def delete(stage: Stage) -> PoolReport:
    deletion = plan_deletion([stage.plan()], {CLUSTER.key: stage.session}, OWNERS, [CUT.target.pool])
    (report,) = delete_pools(deletion, {CLUSTER.key: stage.session}, stage.run)
    (pool,) = report.pools
    return pool


def test_delete_when_the_call_fails_then_said_and_the_next_run_deletes(stage: Stage) -> None:
    stage.world.fail_next(LOST)
    first = delete(stage)
    assert (first.outcome, first.error, first.resume) == ("failed", LOST, RESUME)
    assert delete(stage).outcome == "done"
    assert stage.world.pools == {}


def test_delete_when_the_cluster_is_busy_then_waited_for(stage: Stage) -> None:
    stage.world.fail_next(BUSY)
    assert delete(stage).outcome == "done"
    assert "waiting: another operation runs" in stage.messages()


def test_delete_when_stopped_while_busy_then_the_way_to_resume(stage: Stage) -> None:
    for _ in range(100):
        stage.world.fail_next(BUSY)
    stage.run = replace(stage.run, clock=ManualClock(stop_at=20))
    report = delete(stage)
    assert (report.outcome, report.resume) == ("not-attempted", RESUME)
    assert CUT.target.name in stage.world.pools


def test_delete_when_it_is_gone_already_then_content(stage: Stage) -> None:
    delete(stage)
    stage.world.requests.clear()
    assert delete(stage).outcome == "unchanged"
    assert stage.sent() == []


def half_done(live: list[Desired], status: str) -> Snapshot:
    """A cluster whose release was left like that."""
    seen = installed(live)
    return replace(seen, history=(*seen.history[:-1], replace(seen.history[-1], status=status)))


NOT_TIDIED = "not cleaned up; repeat the delete, or the next apply does it: it is away"
LEFT: dict[str, tuple[Snapshot, str, str]] = {
    "its entry": (installed([CUT]), "failed", NOT_TIDIED),
    "its entry in the record alone": (replace(installed([CUT]), config_map={}), "failed", NOT_TIDIED),
    "a change that was cut off": (half_done([], "pending-upgrade"), "failed", NOT_TIDIED),
    "nothing": (installed([]), "unchanged", "to remove it: gpukube release remove"),
}


@pytest.mark.parametrize("what", LEFT)
@pytest.mark.parametrize("declared", [True, False], ids=["declared", "by address"])
def test_delete_when_it_is_gone_and_a_killed_run_left_something_then_not_unchanged(
    stage: Stage, what: str, *, declared: bool
) -> None:
    seen, outcome, said = LEFT[what]
    delete(stage)
    stage.seen_at = lambda _now: ClusterError("it is away", fix="wait")  # shows that it is looked for
    session = stage.open_session()
    stage.pools = [CUT] if declared else []
    plan = replace(stage.plan(), seen=seen, release=plan_release((), seen, retire=True))
    if what == "nothing" and not declared:
        with pytest.raises(SpecError):
            plan_deletion([plan], {CLUSTER.key: session}, OWNERS, [CUT.target.pool])
        return
    deletion = plan_deletion([plan], {CLUSTER.key: session}, OWNERS, [CUT.target.pool])
    (report,) = delete_pools(deletion, {CLUSTER.key: session}, stage.run)
    assert [(pool.pool, pool.outcome) for pool in report.pools] == [(CUT.target.pool, outcome)]
    assert said in report.release
    assert bool(report.release) == bool(said)
    assert bool(report.pools[0].resume) == (outcome == "failed")


def test_delete_when_the_inside_is_not_known_then_said_that_entries_stay(stage: Stage) -> None:
    plan = replace(stage.plan(), unknown="no answer")
    deletion = plan_deletion([plan], {CLUSTER.key: stage.session}, OWNERS, [CUT.target.pool])
    (report,) = delete_pools(deletion, {CLUSTER.key: stage.session}, stage.run)
    assert [pool.outcome for pool in report.pools] == ["done"]
    assert report.release == "release: not read; repeat the delete, or the next apply removes unused entries: no answer"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"owner": "", "pool": "", "copy": None}, "not-ours"),
        ({"owner": "", "pool": ""}, "lost-marks"),
        ({"owner": "others"}, "not-ours"),
        ({"protected": True}, "protected"),
    ],
)
def test_delete_when_it_may_not_be_deleted_then_nothing_is_sent(
    stage: Stage, changes: dict[str, object], code: str
) -> None:
    live = stage.world.pools[CUT.target.name]
    stage.world.pools[CUT.target.name] = replace(live, **changes)  # type: ignore[arg-type]  # test data
    with pytest.raises(Conflict) as caught:
        plan_deletion([stage.plan()], {CLUSTER.key: stage.session}, OWNERS, [CUT.target.name])
    assert caught.value.diagnostics[0].code == code


def test_delete_when_the_name_is_unknown_then_said(stage: Stage) -> None:
    with pytest.raises(SpecError) as caught:
        plan_deletion([stage.plan()], {CLUSTER.key: stage.session}, OWNERS, ["other"])
    assert caught.value.diagnostics[0].code == "no-pool"


def test_delete_when_a_cluster_could_not_be_asked_then_its_error(stage: Stage) -> None:
    with pytest.raises(CloudError) as caught:
        plan_deletion([replace(stage.plan(), error=LOST)], {CLUSTER.key: stage.session}, OWNERS, [CUT.target.pool])
    assert caught.value is LOST
