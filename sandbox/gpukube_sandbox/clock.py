"""The sandbox's own time, which all waits and timestamps of the emulation use.

In scope: the `Clock` protocol, a clock that runs faster than the wall clock, and one that tests advance manually.
Out of scope: what a caller waits for.
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
    """The time of the emulated services.

    Attributes:
        speed: Sandbox seconds per wall second; 1.0 is real time.
    """

    @property
    def speed(self) -> float:
        """Sandbox seconds per wall second."""
        ...

    @property
    def lead_s(self) -> float:
        """Seconds by which `now()` is ahead of the clients' clock."""
        ...

    def now(self) -> float:
        """Return the sandbox's time in seconds since the Unix epoch."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Sleep for sandbox seconds; return immediately for 0 or less."""
        ...


class ScaledClock:
    """A clock that starts at the wall clock's time and runs `speed` times as fast.

    Args:
        speed: Sandbox seconds per wall second, above 0.
        origin: First value of `now()`; defaults to the wall clock's time.
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
        """Seconds by which this clock is ahead of the wall clock that it started with."""
        return (self._monotonic() - self._started) * (self._speed - 1.0)

    def now(self) -> float:
        """Return the sandbox's time in seconds since the Unix epoch."""
        return self._origin + (self._monotonic() - self._started) * self._speed

    async def sleep(self, seconds: float) -> None:
        """Sleep for `seconds / speed` wall seconds."""
        await asyncio.sleep(max(0.0, seconds) / self._speed)


class ManualClock:
    """A clock that only advances when a test advances it.

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
        """Always 0: tests read this clock."""
        return 0.0

    def now(self) -> float:
        """Return the sandbox's time in seconds since the Unix epoch."""
        return self._now

    async def sleep(self, seconds: float) -> None:
        """Sleep until `advance` has passed that time."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now + seconds, next(self._order), woken))
        await woken

    async def advance(self, seconds: float, *, turns: int = 25) -> None:
        """Advance the time, wake sleepers in order, and run the event loop after each.

        Args:
            seconds: Sandbox seconds to advance.
            turns: Iterations of the event loop after each wakeup.
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
    """Format a time like Kubernetes and ARM: RFC 3339, UTC, whole seconds ("2026-06-01T12:00:00Z")."""
    return _written(int(seconds))


@lru_cache(1000)
def _written(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
