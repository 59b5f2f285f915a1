"""Many pieces of work at once: order, limits, and failures that stop nobody else."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from gpukube.engine.run.fanout import run_all
from gpukube.errors import CloudError
from sandbox_tests.waiting import PATIENCE_S


def fail(message: str) -> str:
    raise CloudError(message)


@pytest.mark.parametrize("at_once", [1, 2, 50])
def test_run_all_when_some_fail_then_the_others_end_and_the_order_is_kept(at_once: int) -> None:
    tasks = {key: partial(fail, key) if key in "bd" else partial(str.upper, key) for key in "edcba"}
    results = run_all(tasks, at_once)
    assert list(results) == list("edcba")
    assert {key: str(result) for key, result in results.items()} == {"e": "E", "d": "d", "c": "C", "b": "b", "a": "A"}
    assert isinstance(results["b"], CloudError)


def test_run_all_when_there_is_nothing_to_do_then_nothing() -> None:
    assert run_all({}, 8) == {}


def test_run_all_when_limited_then_never_more_at_once() -> None:
    lock, running, most = threading.Lock(), 0, 0
    three = threading.Barrier(3, timeout=PATIENCE_S)

    def work() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        three.wait()
        with lock:
            running -= 1

    run_all(dict.fromkeys(range(9), work), 3)
    assert most == 3


def test_run_all_when_two_wait_for_each_other_then_they_do_run_at_once() -> None:
    meeting = threading.Barrier(2, timeout=PATIENCE_S)
    results = run_all({"left": meeting.wait, "right": meeting.wait}, 2)
    assert sorted(str(place) for place in results.values()) == ["0", "1"]


@pytest.mark.parametrize("at_once", [1, 4])
def test_run_all_when_a_task_has_a_defect_then_it_is_not_taken_for_a_failure(at_once: int) -> None:
    def defect() -> str:
        raise KeyError("ours")

    with pytest.raises(KeyError):
        run_all({"good": lambda: "fine", "bad": defect}, at_once)
