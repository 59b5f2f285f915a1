"""Creating when calls are refused, answers are lost, and others are at work."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpukube.core.values import ClusterFacts
from gpukube.engine.change.create import create_pools
from gpukube.engine.run.report import ClusterReport, PoolReport, exit_code
from gpukube.errors import (
    Busy,
    CapacityError,
    CloudError,
    ClusterError,
    Conflict,
    ExitCode,
    Finding,
    GpukubeError,
    QuotaError,
    WaitTimeout,
    Where,
)
from gpukube.testing.clock import ManualClock
from tests.builders import CLUSTER
from tests.unit.cluster.builders import SINGLE, desire
from tests.unit.engine.stage import RESUME, Stage

CUT = desire(sharing=SINGLE)
PLAIN = desire(name="plain", pool="plain")
LOST = CloudError("the answer was lost", fix="run it again")
BUSY = Busy("another operation runs", fix="wait")


def create(stage: Stage) -> ClusterReport:
    (report,) = create_pools([stage.plan()], {CLUSTER.key: stage.session}, stage.run)
    return report


def create_one(stage: Stage) -> PoolReport:
    (pool,) = create(stage).pools
    return pool


def test_create_when_the_answer_is_lost_after_it_was_done_then_followed_and_proven() -> None:
    stage = Stage([CUT])
    stage.world.fail_next(LOST, after=True)
    report = create_one(stage)
    assert (report.outcome, stage.sent()) == ("done", ["create"])
    assert report.proof is not None
    assert report.proof.total == {"nvidia.com/gpu": 56}


def test_create_when_the_call_never_arrived_then_failed_and_the_next_run_makes_it() -> None:
    stage = Stage([CUT])
    stage.world.fail_next(LOST)
    first = create_one(stage)
    assert (first.outcome, first.error, first.resume) == ("failed", LOST, RESUME)
    assert create_one(stage).outcome == "done"


def test_create_when_another_run_made_it_meanwhile_then_followed() -> None:
    stage = Stage([CUT])
    plan = stage.plan()
    stage.session.cloud.send(CUT.create)
    (report,) = create_pools([plan], {CLUSTER.key: stage.session}, stage.run)
    assert [pool.outcome for pool in report.pools] == ["done"]
    assert len(stage.world.pools) == 1


def test_create_when_a_stranger_made_it_meanwhile_then_refused_and_left_alone() -> None:
    stage = Stage([CUT])
    plan = stage.plan()
    stage.session.cloud.send(CUT.create)
    theirs = replace(stage.world.pools[CUT.target.name], owner="", pool="", copy=None)
    stage.world.pools[CUT.target.name] = theirs
    (report,) = create_pools([plan], {CLUSTER.key: stage.session}, stage.run)
    assert isinstance(report.pools[0].error, Conflict)
    assert stage.world.pools == {CUT.target.name: theirs}


def test_create_when_the_cluster_is_busy_then_waited_for_and_said() -> None:
    stage = Stage([CUT])
    stage.world.fail_next(BUSY)
    stage.world.fail_next(BUSY)
    assert create_one(stage).outcome == "done"
    assert "waiting: another operation runs" in stage.messages()


def test_create_when_the_cluster_stays_busy_then_timed_out_with_the_way_to_resume() -> None:
    stage = Stage([CUT])
    for _ in range(1000):
        stage.world.fail_next(BUSY)
    report = create(stage)
    (pool,) = report.pools
    assert isinstance(pool.error, WaitTimeout)
    assert RESUME in pool.error.diagnostics[0].fix
    assert exit_code([report]) is ExitCode.TIMED_OUT


def test_create_when_another_owner_wins_the_name_then_told_whose_it_is() -> None:
    stage = Stage([CUT])
    plan = stage.plan()
    other = desire(sharing=SINGLE, owner="vision")
    stage.session.cloud.send(other.create)
    (report,) = create_pools([plan], {CLUSTER.key: stage.session}, stage.run)
    (pool,) = report.pools
    assert pool.error is not None
    assert [d.code for d in pool.error.diagnostics] == ["foreign-pool"]
    assert 'belongs to "vision"' in pool.error.diagnostics[0].seen


def test_create_when_the_operation_fails_late_then_its_class_and_the_next_run_repairs() -> None:
    stage = Stage([CUT])
    stage.world.fail_operation(CUT.target.name, QuotaError("no more cores", fix="raise the quota"))
    report = create(stage)
    assert (report.pools[0].outcome, exit_code([report])) == ("failed", ExitCode.CAPACITY)
    assert create_one(stage).outcome == "done"
    assert stage.sent() == ["create", "repair"]


def test_create_when_one_of_two_pools_fails_then_the_other_is_made() -> None:
    stage = Stage([CUT, PLAIN])
    stage.world.fail_operation(CUT.target.name, CapacityError("none left", fix="another zone"))
    report = create(stage)
    assert [pool.outcome for pool in report.pools] == ["failed", "done"]
    assert exit_code([report]) is ExitCode.PARTLY_DONE


def test_create_when_stopped_while_the_cloud_works_then_the_way_to_resume() -> None:
    stage = Stage([CUT], ManualClock(stop_at=20))
    stage.world.polls_to_finish = 10_000
    report = create_one(stage)
    assert (report.outcome, report.resume) == ("started", RESUME)
    assert report.message == "create is still running in the cloud; no longer watched"
    assert list(stage.world.pools) == [CUT.target.name]


def test_create_when_the_pool_was_on_its_way_out_then_made_anew() -> None:
    stage = Stage([CUT])
    create(stage)
    going = replace(stage.world.pools[CUT.target.name], state="busy", status="Deleting")
    stage.world.pools[CUT.target.name] = going
    plan = stage.plan()
    del stage.world.pools[CUT.target.name]  # the deletion that somebody began has ended
    (report,) = create_pools([plan], {CLUSTER.key: stage.session}, stage.run)
    assert [pool.outcome for pool in report.pools] == ["done"]
    assert stage.sent() == ["create", "create"]


NOT_WORKABLE: dict[str, tuple[dict[str, object], GpukubeError | None, str]] = {
    "unreachable cloud": ({"error": LOST}, LOST, "cloud"),
    "unreachable cluster": ({"unreachable": ClusterError("no answer", fix="wait")}, None, "cluster"),
    "stopped cluster": (
        {"facts": ClusterFacts("x", "1.34.2", ready=False, status="Stopped")},
        None,
        "cluster-not-ready",
    ),
    "foreign advertiser": (
        {"diagnostics": (Finding("foreign-plugin", Where("x"), "another plugin", fix="remove it"),)},
        None,
        "foreign-plugin",
    ),
}


@pytest.mark.parametrize("case", NOT_WORKABLE)
def test_create_when_the_cluster_is_not_workable_then_nothing_is_sent(case: str) -> None:
    changes, error, code = NOT_WORKABLE[case]
    stage = Stage([CUT])
    plan = replace(stage.plan(), **changes)  # type: ignore[arg-type]  # test data
    (report,) = create_pools([plan], {CLUSTER.key: stage.session}, stage.run)
    assert report.error is not None
    assert error is None or report.error is error
    assert report.error.diagnostics[0].code == code
    assert [pool.outcome for pool in report.pools] == ["not-attempted"]
    assert stage.sent() == []
