"""One outcome per pool of a run that is stopped or runs out of time: what is known of its calls, and no guess."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gpukube.core.fields import INSTANCE_TYPE
from gpukube.core.values import Nodes
from gpukube.engine.change.apply import Consent, apply_pools
from gpukube.engine.change.create import create_pools
from gpukube.engine.change.delete import delete_pools, plan_deletion
from gpukube.engine.change.releasing import plan_release, release_pools
from gpukube.engine.change.scale import Size, plan_scaling, scale_pools
from gpukube.engine.run.clock import Stopped
from gpukube.engine.run.report import exit_code
from gpukube.engine.run.sent import SentCalls
from gpukube.errors import Busy, CapacityError, CloudError, ClusterError, ExitCode, GpukubeError
from gpukube.testing.clock import ManualClock
from tests.builders import CLUSTER
from tests.unit.cluster.builders import SINGLE, desire, installed
from tests.unit.engine.stage import PACE, RESUME, Stage

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpukube.engine.run.report import ClusterReport

CUT = desire(sharing=SINGLE)
PLAIN = desire(name="plain", pool="plain")
GROWN = desire(sharing=SINGLE, nodes=Nodes(7, 7, 7, autoscaled=False))
BUSY = Busy("another operation runs", fix="wait")
LOST = CloudError("the answer was lost", fix="run it again")
NAME = CUT.target.name


def create(stage: Stage) -> ClusterReport:
    (report,) = create_pools([stage.plan()], {CLUSTER.key: stage.session}, stage.run)
    return report


def update(stage: Stage) -> ClusterReport:
    stage.pools = [GROWN]
    return stage.apply(Consent(allow_disruption=True))


def replacement(stage: Stage) -> ClusterReport:
    pool = stage.world.pools[NAME]
    stage.world.pools[NAME] = replace(pool, fields={**pool.fields, INSTANCE_TYPE: "other"})
    return stage.apply(Consent(replace="recreate"))


def delete(stage: Stage) -> ClusterReport:
    deletion = plan_deletion([stage.plan()], {CLUSTER.key: stage.session}, (CUT.target.owner,), [CUT.target.pool])
    (report,) = delete_pools(deletion, {CLUSTER.key: stage.session}, stage.run)
    return report


def scale(stage: Stage) -> ClusterReport:
    sessions = {CLUSTER.key: stage.session}
    scaling = plan_scaling([stage.plan()], sessions, (CUT.target.owner,), CUT.target.pool, Size(count=7))
    (report,) = scale_pools(scaling, sessions, stage.run)
    return report


def release(stage: Stage) -> ClusterReport:
    sessions = {CLUSTER.key: stage.session}
    releasing = plan_release([stage.plan()], sessions, (CUT.target.owner,), [CUT.target.pool])
    (report,) = release_pools(releasing, sessions, stage.run)
    return report


WORK: dict[str, Callable[[Stage], ClusterReport]] = {
    "create": create,
    "update": update,
    "replace": replacement,
    "delete": delete,
    "scale": scale,
    "release": release,
}


def staged(what: str) -> Stage:
    stage = Stage([CUT])
    if what != "create":
        stage.make()
    return stage


def outcomes(report: ClusterReport) -> list[str]:
    return [pool.outcome for pool in report.pools]


@pytest.mark.parametrize("taken", [False, True], ids=["lost", "taken"])
@pytest.mark.parametrize("what", WORK)
def test_outcome_when_stopped_while_a_call_is_in_flight_then_unknown(what: str, *, taken: bool) -> None:
    stage = staged(what)
    stage.world.fail_next(Stopped(in_flight=True), after=taken)
    report = WORK[what](stage)
    assert outcomes(report) == ["unknown"]
    assert "ended during a call" in report.pools[0].message
    assert report.pools[0].resume == RESUME


@pytest.mark.parametrize("what", WORK)
def test_outcome_when_an_answer_is_lost_then_a_look_tells_and_nothing_is_sent_twice(what: str) -> None:
    stage, quiet = staged(what), staged(what)
    expected = outcomes(WORK[what](quiet))
    stage.world.fail_next(LOST, after=True)
    assert outcomes(WORK[what](stage)) == expected
    assert stage.sent() == quiet.sent()


@pytest.mark.parametrize("what", WORK)
def test_outcome_when_a_call_had_no_effect_then_failed_and_not_sent_again(what: str) -> None:
    stage = staged(what)
    stage.world.fail_next(LOST)
    report = WORK[what](stage)
    assert [(pool.outcome, pool.error) for pool in report.pools] == [("failed", LOST)]
    assert len(stage.sent()) == 1


@pytest.mark.parametrize("what", WORK)
def test_outcome_when_stopped_before_the_first_call_then_not_attempted(what: str) -> None:
    stage = staged(what)
    for _ in range(100):
        stage.world.fail_next(BUSY)  # a refusal: the cloud has not taken it
    stage.run = replace(stage.run, clock=ManualClock(stop_at=20))
    report = WORK[what](stage)
    assert [(pool.outcome, pool.message) for pool in report.pools] == [("not-attempted", "no request was sent")]


def test_outcome_when_stopped_while_others_queue_then_these_are_not_sent() -> None:
    stage = Stage([CUT, PLAIN], ManualClock(stop_at=20))
    stage.provider.extras.pools_at_once = 1
    stage.world.polls_to_finish = 10_000
    assert outcomes(create(stage)) == ["started", "not-attempted"]
    assert stage.sent() == ["create"]
    queued = [event.message for event in stage.said if event.message.startswith("queued")]
    assert queued == ["queued", f"queued behind {CUT.target.pool}: the cloud changes one pool at a time"]


def test_outcome_when_stopped_right_before_a_call_is_made_then_not_attempted() -> None:
    stage = Stage([CUT])
    stage.world.fail_next(Stopped())
    assert outcomes(create(stage)) == ["not-attempted"]


@pytest.mark.parametrize("what", WORK)
def test_outcome_when_time_runs_out_before_the_first_call_then_not_attempted_and_seven(what: str) -> None:
    stage = staged(what)
    for _ in range(1000):
        stage.world.fail_next(BUSY)
    report = WORK[what](stage)
    assert outcomes(report) == ["not-attempted"]
    assert exit_code([report]) is ExitCode.TIMED_OUT


def test_outcome_when_time_runs_out_while_the_cloud_works_then_started_and_seven() -> None:
    stage = Stage([CUT, PLAIN])
    stage.world.polls_to_finish = 10_000
    stage.run = replace(stage.run, pace=replace(PACE, timeout_s=20))
    report = create(stage)
    assert outcomes(report) == ["started", "started"]
    assert [pool.error.diagnostics[0].code for pool in report.pools if pool.error] == ["timeout", "timeout"]
    assert exit_code([report]) is ExitCode.TIMED_OUT


def test_outcome_when_one_pool_is_made_and_another_not_awaited_then_each_its_own_and_three() -> None:
    stage = Stage([CUT, PLAIN])
    stage.provider.extras.pools_at_once = 1
    create(Stage([CUT], world=stage.world))
    stage.world.polls_to_finish = 10_000
    stage.run = replace(stage.run, pace=replace(PACE, timeout_s=20))
    report = create(stage)
    assert outcomes(report) == ["unchanged", "started"]
    assert exit_code([report]) is ExitCode.PARTLY_DONE


def test_outcome_when_the_next_run_is_stopped_too_then_still_started() -> None:
    stage = Stage([CUT], ManualClock(stop_at=20))
    stage.world.polls_to_finish = 10_000
    create(stage)
    again = Stage([CUT], ManualClock(stop_at=20), stage.world)
    report = create(again)
    assert again.sent() == ["create"]  # that of the first run
    assert outcomes(report) == ["started"]
    assert "Creating" in report.pools[0].message


def test_outcome_when_an_answer_was_lost_and_a_look_found_the_pool_then_started() -> None:
    stage = Stage([CUT], ManualClock(stop_at=20))
    stage.world.polls_to_finish = 10_000
    stage.world.fail_next(LOST, after=True)
    assert outcomes(create(stage)) == ["started"]


def test_outcome_when_only_the_proof_of_an_unchanged_pool_is_stopped_then_not_attempted() -> None:
    stage = Stage([CUT])
    stage.make()
    stage.seen_at = lambda _now: ClusterError("it is away", fix="wait")
    stage.session = stage.open_session()
    stage.run = replace(stage.run, clock=ManualClock(stop_at=20))
    report = create(stage)
    (pool,) = report.pools
    assert (pool.outcome, pool.message) == ("not-attempted", "nothing to change; not verified")


def test_outcome_when_time_is_too_short_for_the_proof_of_an_unchanged_pool_then_failed_and_seven() -> None:
    stage = Stage([CUT])
    stage.make()
    stage.seen_at = lambda _now: installed([CUT])  # no node
    stage.session = stage.open_session()
    stage.run = replace(stage.run, pace=replace(PACE, timeout_s=30))
    report = create(stage)
    assert (outcomes(report), exit_code([report])) == (["failed"], ExitCode.TIMED_OUT)


@pytest.mark.parametrize("error", [Stopped(), ClusterError("it is away", fix="wait")])
def test_apply_when_the_end_of_the_release_fails_then_the_pools_keep_their_outcomes(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def retire(*_given: object, **_named: object) -> str:
        raise error

    monkeypatch.setattr("gpukube.engine.change.apply.retire_entries", retire)
    stage = Stage([CUT])
    (report,) = apply_pools([stage.plan()], {CLUSTER.key: stage.session}, stage.run)
    assert outcomes(report) == ["done"]
    assert (report.error, "release: stopped" in report.release) == (
        (error, False) if isinstance(error, GpukubeError) else (None, True)
    )


def test_calls_when_refused_after_one_was_taken_then_that_stays_known() -> None:
    calls = SentCalls()
    with calls.sending("c", "p"):
        assert calls.state("c", "p") == "in-flight"
    with pytest.raises(CapacityError), calls.sending("c", "p"):
        raise CapacityError("none left", fix="another zone")
    assert (calls.state("c", "p"), calls.state("c", "q")) == ("taken", "none")
