"""Runs independent tasks in parallel threads.

Threads, not asyncio: the three SDKs are synchronous, and 24 calls of 150 ms take 0.7 s with 8 threads instead of 4.9 s
in sequence. A task never submits to the executor it runs in.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING, TypeVar

from gpukube.errors import GpukubeError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

K = TypeVar("K")
V = TypeVar("V")


def run_all(tasks: Mapping[K, Callable[[], V]], at_once: int) -> dict[K, V | GpukubeError]:
    """Run the tasks, at most `at_once` at a time, and continue if one fails.

    Returns:
        Per key the result, or the GpukubeError it raised. In the order of `tasks`.

    Raises:
        Exception: Anything else that a task raises; that is a defect.
    """
    if len(tasks) <= 1 or at_once <= 1:
        return {key: _guarded(task) for key, task in tasks.items()}
    with ThreadPoolExecutor(max_workers=min(at_once, len(tasks)), thread_name_prefix="gpukube") as executor:
        futures = {executor.submit(_guarded, task): key for key, task in tasks.items()}
        done = {futures[future]: future.result() for future in as_completed(futures)}
    return {key: done[key] for key in tasks}


def _guarded(task: Callable[[], V]) -> V | GpukubeError:
    try:
        return task()
    except GpukubeError as error:
        return error
