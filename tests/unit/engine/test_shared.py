"""Threads that wait for the same thing share their looks, and none takes over one that is too old for it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from gpukube.engine.run.shared import Shared
from sandbox_tests.waiting import PATIENCE_S

THREADS = 8


def test_look_when_many_wait_for_one_then_the_next_serves_them_all_and_none_takes_over_a_former_one() -> None:
    shared: Shared[str] = Shared()
    under_way, go_on = threading.Event(), threading.Event()
    looks: list[str] = []

    def early() -> str:
        under_way.set()
        assert go_on.wait(PATIENCE_S)
        return "early"

    def late() -> str:
        looks.append("late")
        return "late"

    with ThreadPoolExecutor(THREADS + 1) as threads:
        first = threads.submit(shared.newer, None, early)
        assert under_way.wait(PATIENCE_S)
        others = [threads.submit(shared.newer, 1, late) for _ in range(THREADS)]
        go_on.set()
        assert first.result() == (1, "early")
        assert [other.result() for other in others] == [(2, "late")] * THREADS
    assert looks == ["late"]


def test_look_when_a_sibling_has_made_a_newer_one_then_that() -> None:
    shared: Shared[str] = Shared()
    assert shared.newer(None, lambda: "a") == (1, "a")
    assert shared.newer(1, lambda: "b") == (2, "b")
    assert shared.newer(1, lambda: "c") == (2, "b")
    assert shared.newer(2, lambda: "c") == (3, "c")
    assert shared.newer(None, lambda: "d") == (4, "d")


def test_look_when_it_fails_then_another_takes_its_turn() -> None:
    shared: Shared[str] = Shared()

    def fail() -> str:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        shared.newer(None, fail)
    assert shared.newer(None, lambda: "a") == (1, "a")
