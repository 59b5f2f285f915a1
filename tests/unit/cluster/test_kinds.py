"""Types that the client learns at run time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from gpukube.cluster.kube import _listed_kind


def test_kind_when_many_threads_ask_at_once_then_all_get_the_same() -> None:
    at_once = 16
    barrier = Barrier(at_once)

    def ask(plural: str) -> type:
        barrier.wait(10)
        return _listed_kind("test.gpukube.io", "v1", plural)

    for attempt in range(20):
        with ThreadPoolExecutor(at_once) as threads:
            kinds = set(threads.map(ask, [f"things{attempt}"] * at_once))
        assert len(kinds) == 1
