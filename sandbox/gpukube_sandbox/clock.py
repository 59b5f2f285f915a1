"""The sandbox's own time: every wait and every timestamp of the emulation goes through here.

In scope: the `Clock` port, the clock that runs faster than the wall, and the one that tests turn by hand.
Out of scope: anything that knows what the waiting is for.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


class Clock(Protocol):
    """What the emulated services may know of time.

    Attributes:
        speed: Sandbox seconds per wall second; 1.0 is real time.
    """

    @property
    def speed(self) -> float:
        """Sandbox seconds that pass in one second of the wall clock."""
        ...

    @property
    def lead_s(self) -> float:
        """Seconds that `now()` is ahead of the clock of whoever reads a time."""
        ...

    def now(self) -> float:
        """Tell the sandbox's time, in seconds since the Unix epoch."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait until that many sandbox seconds have passed; at once for 0 or less."""
        ...


class ScaledClock:
    """Time that starts at the wall clock's and runs `speed` times as fast.

    Args:
        speed: Sandbox seconds per wall second, above 0.
        origin: First value of `now()`; the wall clock's when not given.
        monotonic: Source of elapsed wall seconds.
    """

    def __init__(
        self,
        speed: float = 1.0,
        *,
        origin: float | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        if speed <= 0:
            message = f"speed is {speed}; it must be above 0"
            raise ValueError(message)
        self._speed = speed
        self._monotonic = monotonic
        self._started = monotonic()
        self._origin = time.time() if origin is None else origin

    @property
    def speed(self) -> float:
        """Sandbox seconds per wall second."""
        return self._speed

    @property
    def lead_s(self) -> float:
        """Seconds ahead of the wall clock that this one started with."""
        return (self._monotonic() - self._started) * (self._speed - 1.0)

    def now(self) -> float:
        """Tell the sandbox's time, in seconds since the Unix epoch."""
        return self._origin + (self._monotonic() - self._started) * self._speed

    async def sleep(self, seconds: float) -> None:
        """Wait `seconds / speed` wall seconds."""
        await asyncio.sleep(max(0.0, seconds) / self._speed)


class ManualClock:
    """Time that stands still until a test moves it.

    Args:
        origin: First value of `now()`.
    """

    def __init__(self, origin: float = 1_750_000_000.0) -> None:
        self._now = origin
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    @property
    def speed(self) -> float:
        """Always 1: a test's seconds are the sandbox's."""
        return 1.0

    @property
    def lead_s(self) -> float:
        """None: who reads a time here reads this clock."""
        return 0.0

    def now(self) -> float:
        """Tell the sandbox's time, in seconds since the Unix epoch."""
        return self._now

    async def sleep(self, seconds: float) -> None:
        """Wait until `advance` has passed that moment."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now + seconds, next(self._order), woken))
        await woken

    async def advance(self, seconds: float, *, turns: int = 25) -> None:
        """Move time on, waking the sleepers in order and letting the loop run after each.

        Args:
            seconds: Sandbox seconds to pass.
            turns: Turns of the event loop given to what was woken, per waking.
        """
        target = self._now + seconds
        await _run_loop(turns)
        while self._sleepers and self._sleepers[0][0] <= target:
            due, _, woken = heapq.heappop(self._sleepers)
            self._now = max(self._now, due)
            if not woken.done():
                woken.set_result(None)
                await _run_loop(turns)
        self._now = target
        await _run_loop(turns)


async def _run_loop(turns: int) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)


def timestamp(seconds: float) -> str:
    """Write a moment as Kubernetes and ARM do: RFC 3339, UTC, whole seconds ("2026-06-01T12:00:00Z")."""
    return _written(int(seconds))


@lru_cache(1000)
def _written(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
