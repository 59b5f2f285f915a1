"""The loop that runs every controller.

In scope: waiting for a change or for the time a controller returned. Out of scope: what a controller does.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from gpukube_sandbox.clock import Clock
    from gpukube_sandbox.kube.store.objectapi import Wakeup

_RETRY_S = 30.0
_RESTS = 3.0
"""Ratio of a controller's pause to its last run, so that changes in between are handled in one run, not many. In a
cluster of hundreds of pods that all start within a moment of a fast clock, this takes a third of the time."""
_LONGEST_REST_S = 0.2


async def run_loop(
    wakeup: Wakeup,
    clock: Clock,
    reconcile: Callable[[], Awaitable[float | None]],
    report: Callable[[Exception], None],
) -> None:
    """Reconcile now, and again after every wakeup or at the time that the last run returned.

    Args:
        wakeup: Triggered when a watched object changes.
        clock: The sandbox's time.
        reconcile: Does the work; returns the sandbox time of its next step, or None.
        report: Called with every failure. The loop continues after one: an object that a controller cannot handle must
            not stop the cluster.
    """
    while True:
        began, since = clock.now(), time.monotonic()
        try:
            due = await reconcile()
        except Exception as failure:  # noqa: BLE001 -- top level of a task
            report(failure)
            due = clock.now() + _RETRY_S
        if clock.now() > began:  # a clock that a test sets manually does not advance, and such a test expects no pause
            # In wall-clock time: the sandbox's speed may change by a factor of a thousand at any moment.
            await asyncio.sleep(min(_LONGEST_REST_S, _RESTS * (time.monotonic() - since)))
        woken = asyncio.ensure_future(wakeup.wait())
        waits = [woken]
        if due is not None:
            waits.append(asyncio.ensure_future(clock.sleep(due - clock.now())))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
