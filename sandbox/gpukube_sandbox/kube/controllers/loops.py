"""The loop every controller runs in.

In scope: wait for a change or for the time a controller asked for, then reconcile. Out of scope: what is done.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from gpukube_sandbox.clock import Clock
    from gpukube_sandbox.kube.store.objectapi import Bell

_AGAIN_S = 30.0
_RESTS = 3.0
"""How many times as long as it worked a controller rests: what changes meanwhile is one piece of work, not many. In a
cluster of hundreds of pods, where all of them boot within a moment of a fast clock, that is a third of the time."""
_LONGEST_REST_S = 0.2


async def run_loop(
    bell: Bell,
    clock: Clock,
    reconcile: Callable[[], Awaitable[float | None]],
    report: Callable[[Exception], None],
) -> None:
    """Reconcile now, and again whenever the bell rings or the moment has come that the last run asked for.

    Args:
        bell: Rings when something of interest changes.
        clock: The sandbox's time.
        reconcile: Does the work; gives the sandbox time of its next own step, or None.
        report: Told of every failure. The loop goes on after one: an object that a controller cannot digest must not
            end the cluster.
    """
    while True:
        began, since = clock.now(), time.monotonic()
        try:
            due = await reconcile()
        except Exception as failure:  # noqa: BLE001 -- the edge of a task
            report(failure)
            due = clock.now() + _AGAIN_S
        if clock.now() > began:  # a clock that a test moves by hand stands still, and nobody waits for a rest there
            # By the machine's own time: the sandbox's may run a thousand times faster now than in a moment.
            await asyncio.sleep(min(_LONGEST_REST_S, _RESTS * (time.monotonic() - since)))
        rung = asyncio.ensure_future(bell.wait())
        waits = [rung]
        if due is not None:
            waits.append(asyncio.ensure_future(clock.sleep(due - clock.now())))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
