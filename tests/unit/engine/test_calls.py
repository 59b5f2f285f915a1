"""A call ends with the run: with its answer, the end of the timeout, or the stop, and says what is known of it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.helm.chart import ChartSource
from gpukube.core.values import Settings
from gpukube.engine.run.calls import Calls
from gpukube.engine.run.clock import Stopped, SystemClock
from gpukube.engine.run.context import Pace, Run
from gpukube.errors import CloudError, WaitTimeout
from gpukube.testing.clock import ManualClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FAR = 1e12
RESUME = "gpukube pool create -f pools.yaml"


class Hanging:
    """A call without an answer."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.released = threading.Event()

    def __call__(self) -> str:
        self.begun.set()
        self.released.wait()
        return "late"


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    call = Hanging()
    yield call
    call.released.set()


def stop_when_begun(call: Hanging, stop: Callable[[], None]) -> None:
    """Have another thread stop the run as soon as the call is under way."""

    def wait() -> None:
        call.begun.wait()
        stop()

    threading.Thread(target=wait, daemon=True).start()


def test_call_when_answered_then_the_answer() -> None:
    assert Calls(SystemClock(), FAR, RESUME)("c", "asking", lambda: 7) == 7


def test_call_when_it_fails_then_its_own_error() -> None:
    def fail() -> None:
        raise CloudError("refused")

    with pytest.raises(CloudError, match="refused"):
        Calls(SystemClock(), FAR, RESUME)("c", "asking", fail)


@pytest.mark.parametrize("changes", [False, True])
def test_call_when_stopped_while_it_hangs_then_given_up_and_it_says_whether_a_change_is_open(
    hanging: Hanging, *, changes: bool
) -> None:
    clock = SystemClock()
    stop_when_begun(hanging, clock.stop)
    with pytest.raises(Stopped) as caught:
        Calls(clock, FAR, RESUME)("c", "asking", hanging, changes=changes)
    assert caught.value.in_flight is changes


def test_call_when_a_change_answers_right_after_the_stop_then_its_answer_counts(hanging: Hanging) -> None:
    clock = SystemClock()

    def stop() -> None:
        clock.stop()
        hanging.released.set()

    stop_when_begun(hanging, stop)
    assert Calls(clock, FAR, RESUME)("c", "asking", hanging, changes=True) == "late"


def test_call_when_the_timeout_ends_while_it_hangs_then_wait_timeout_names_the_call(hanging: Hanging) -> None:
    clock = SystemClock()
    calls = Calls(clock, clock.now() + 0.3, RESUME)
    with pytest.raises(WaitTimeout) as caught:
        calls("train-aks/t4", "calling CreateNodePool", hanging, changes=True)
    assert caught.value.in_flight
    assert caught.value.render() == (
        "train-aks/t4: error[timeout]: timed out while calling CreateNodePool\n"
        f"    fix: the cloud keeps working; to resume: {RESUME}"
    )


def test_call_when_the_run_is_over_then_not_made(hanging: Hanging) -> None:
    clock = SystemClock()
    with pytest.raises(WaitTimeout) as late:
        Calls(clock, clock.now() - 60, RESUME)("c", "asking", hanging, changes=True)
    clock.stop()
    with pytest.raises(Stopped) as stopped:
        Calls(clock, FAR, RESUME)("c", "asking", hanging, changes=True)
    assert not late.value.in_flight
    assert not stopped.value.in_flight
    assert not hanging.begun.is_set()


def test_cleaning_when_the_run_is_stopped_then_calls_are_made_all_the_same_and_end(hanging: Hanging) -> None:
    clock = SystemClock()
    clock.stop()
    cleaning = Calls(clock, FAR, RESUME).cleaning()
    assert cleaning("c", "deleting", lambda: "gone") == "gone"
    with pytest.raises(WaitTimeout):
        cleaning("c", "deleting", hanging)


@pytest.mark.parametrize(("timeout_s", "over"), [(60.0, True), (0.0, False)])
def test_run_when_it_has_no_timeout_then_its_calls_are_not_late(timeout_s: float, *, over: bool) -> None:
    clock = ManualClock()
    run = Run(Settings(), ChartSource(), {}, RESUME, Pace(timeout_s=timeout_s), clock=clock)
    clock.wait(1e6)  # `verify` without --timeout looks once, however long that takes
    assert run.is_over is over
