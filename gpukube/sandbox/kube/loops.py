"""The loop every controller runs in.

Lives here: wait for a change or for the time a controller asked for, then reconcile. Must not live here: what is done.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from gpukube.sandbox.clock import Clock
    from gpukube.sandbox.kube.objectapi import Bell

__all__ = ["run_loop"]


async def run_loop(bell: Bell, clock: Clock, reconcile: Callable[[], Awaitable[float | None]]) -> None:
    """Reconcile now, and again whenever the bell rings or the moment has come that the last run asked for.

    Args:
        bell: Rings when something of interest changes.
        clock: The sandbox's time.
        reconcile: Does the work; gives the sandbox time of its next own step, or None.
    """
    while True:
        due = await reconcile()
        rung = asyncio.ensure_future(bell.wait())
        waits = [rung]
        if due is not None:
            waits.append(asyncio.ensure_future(clock.sleep(due - clock.now())))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
