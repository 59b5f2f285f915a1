"""Waiting with a clock that moves when it is waited on: pace, deadline, stop, and what is said meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import pytest

from gpukube.core.values import Operation, Progress, Request
from gpukube.engine.run.clock import Stopped, SystemClock
from gpukube.engine.run.wait import SHORTEST_S, Wait
from gpukube.errors import Busy, CapacityError, CloudError, Conflict, Throttled, WaitTimeout
from gpukube.testing.clock import ManualClock

if TYPE_CHECKING:
    from gpukube.provider import Cloud

OPERATION = Operation("a100mig", "create", "handle")
REQUEST = Request("fake", "create", {})
BUSY = Busy("another operation runs")
THROTTLED = Throttled("the cloud throttles these requests")


@dataclass
class Answers:
    """A cloud that gives these answers, one per call."""

    clock: ManualClock
    polls: list[Progress | Exception] = field(default_factory=list)
    sends: list[Operation | Exception] = field(default_factory=list)
    asked_at: list[float] = field(default_factory=list)

    def poll(self, operation: Operation) -> Progress:
        assert operation is OPERATION
        self.asked_at.append(self.clock.now())
        answer = self.polls.pop(0) if len(self.polls) > 1 else self.polls[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def send(self, request: Request) -> Operation:
        assert request is REQUEST
        self.asked_at.append(self.clock.now())
        answer = self.sends.pop(0) if len(self.sends) > 1 else self.sends[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


@dataclass
class Bench:
    """A wait of ten minutes that looks every ten seconds, and what it said."""

    answers: Answers
    wait: Wait
    said: list[str]

    @property
    def cloud(self) -> Cloud:
        return cast("Cloud", self.answers)


def bench(
    *polls: Progress | Exception, sends: list[Operation | Exception] | None = None, stop_at: float = 1e9
) -> Bench:
    clock, said = ManualClock(stop_at), list[str]()
    wait = Wait(clock, 600.0, 10.0, said.append, "gpukube pool create -f pools.yaml")
    return Bench(Answers(clock, list(polls), sends or []), wait, said)


def going(status: str = "Creating", after: float | None = None) -> Progress:
    return Progress(done=False, status=status, retry_after_s=after)


DONE = Progress(done=True, status="Succeeded")


def test_wait_when_done_at_once_then_asked_once() -> None:
    made = bench(DONE)
    made.wait.for_operation(made.cloud, OPERATION)
    assert (made.answers.asked_at, made.said) == ([0.0], [])


PACES: dict[str, tuple[float | None, float]] = {
    "cloud does not say": (None, 10.0),
    "cloud says": (25.0, 25.0),
    "cloud says now": (0.0, SHORTEST_S),
    "cloud says next week": (604800.0, 120.0),
}


@pytest.mark.parametrize("name", PACES)
def test_wait_when_going_on_then_at_the_clouds_pace_within_bounds(name: str) -> None:
    after, expected = PACES[name]
    made = bench(going(after=after), DONE)
    made.wait.for_operation(made.cloud, OPERATION)
    assert made.answers.asked_at == [0.0, expected]


def test_wait_when_the_status_changes_then_each_is_told_once() -> None:
    made = bench(going("Creating"), going("Creating"), going("Updating"), going("Creating"), DONE)
    made.wait.for_operation(made.cloud, OPERATION)
    assert made.said == ["Creating", "Updating", "Creating"]


def test_wait_when_it_ends_badly_then_the_providers_own_error() -> None:
    error = CapacityError("none left")
    made = bench(going(), Progress(done=False, status="Failed", error=error))
    with pytest.raises(CapacityError) as caught:
        made.wait.for_operation(made.cloud, OPERATION)
    assert caught.value is error


def test_wait_when_the_deadline_passes_then_times_out_and_says_how_to_resume() -> None:
    made = bench(going())
    with pytest.raises(WaitTimeout, match="a100mig is still Creating") as caught:
        made.wait.for_operation(made.cloud, OPERATION)
    assert made.answers.asked_at[-1] == 600.0  # the last look is at the deadline itself
    assert caught.value.diagnostics[0].fix.endswith("to resume: gpukube pool create -f pools.yaml")


def test_wait_when_throttled_then_reads_become_rarer_until_one_is_answered() -> None:
    made = bench(going(), *[THROTTLED] * 6, going(), THROTTLED, DONE)
    made.wait.for_operation(made.cloud, OPERATION)
    assert made.answers.asked_at == [0.0, 10.0, 20.0, 40.0, 80.0, 160.0, 280.0, 400.0, 410.0, 420.0]
    assert made.said == ["Creating", *["waiting: the cloud throttles these requests"] * 2]


def test_wait_when_throttled_until_the_deadline_then_times_out() -> None:
    made = bench(THROTTLED)
    with pytest.raises(WaitTimeout, match="a100mig cannot be read: the cloud throttles these requests"):
        made.wait.for_operation(made.cloud, OPERATION)
    assert made.answers.asked_at[-1] == 600.0


def test_wait_when_the_cloud_fails_otherwise_then_raised_at_once() -> None:
    made = bench(CloudError("no"))
    with pytest.raises(CloudError, match="no"):
        made.wait.for_operation(made.cloud, OPERATION)


def test_wait_when_stopped_then_at_once() -> None:
    made = bench(going(), stop_at=35)
    with pytest.raises(Stopped):
        made.wait.for_operation(made.cloud, OPERATION)
    assert made.answers.asked_at == [0.0, 10.0, 20.0, 30.0]


def test_send_when_the_cluster_is_busy_then_tried_again_until_it_is_not() -> None:
    made = bench(sends=[BUSY, BUSY, OPERATION])
    assert made.wait.send(made.cloud, REQUEST) is OPERATION
    assert made.answers.asked_at == [0.0, 10.0, 20.0]
    assert made.said == ["waiting: another operation runs"] * 2


def test_send_when_it_stays_busy_then_times_out() -> None:
    made = bench(sends=[BUSY])
    with pytest.raises(WaitTimeout, match="the cluster is still busy"):
        made.wait.send(made.cloud, REQUEST)


def test_send_when_the_conflict_is_another_one_then_raised_at_once() -> None:
    made = bench(sends=[Conflict("it exists", code="exists")])
    with pytest.raises(Conflict, match="it exists"):
        made.wait.send(made.cloud, REQUEST)
    assert len(made.answers.asked_at) == 1


def test_pause_when_the_time_is_over_then_says_what_was_not_there() -> None:
    made = bench()

    def wait_for_ever() -> None:
        while True:
            made.wait.pause(made.wait.poll_s, "it never comes")

    with pytest.raises(WaitTimeout, match="timed out: it never comes"):
        wait_for_ever()


@pytest.mark.parametrize("seconds", [30.0, 0.0])
def test_system_clock_when_stopped_then_every_wait_ends_at_once(seconds: float) -> None:
    clock = SystemClock()
    clock.wait(0.001)
    before = clock.stopped
    clock.stop()
    assert (before, clock.stopped) == (False, True)
    with pytest.raises(Stopped):
        clock.wait(seconds)
