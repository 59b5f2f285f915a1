"""Types that the client learns at run time."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.kube.api_types import ApiType
from gpukube.cluster.kube.calls import global_kind, namespaced_kind
from sandbox_tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def restless() -> Iterator[None]:
    """Switch threads as often as can be."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.parametrize("describe", [global_kind, namespaced_kind])
def test_kind_when_many_threads_ask_at_once_then_all_get_the_same(
    describe: Callable[[ApiType], type], restless: None
) -> None:
    at_once = 16
    barrier = Barrier(at_once)

    def ask(plural: str) -> type:
        barrier.wait(PATIENCE_S)
        return describe(ApiType("test.gpukube.io", "v1", "Thing", f"{describe.__name__}-{plural}"))

    for attempt in range(40):
        with ThreadPoolExecutor(at_once) as threads:
            kinds = set(threads.map(ask, [f"things{attempt}"] * at_once))
        assert len(kinds) == 1
