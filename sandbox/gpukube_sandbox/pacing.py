"""A clock whose speed can change while tasks sleep.

In scope: that clock. Out of scope: the protocol and the fixed clocks (`clock`).
"""

from __future__ import annotations

import asyncio
import math
import time


class PacedClock:
    """A clock that starts at the wall clock's time and runs at a variable speed; conforms to `clock.Clock`.

    Args:
        speed: Sandbox seconds per wall second, above 0.

    Raises:
        ValueError: The speed is not above 0.
    """

    def __init__(self, speed: float) -> None:
        self._speed = _checked(speed)
        self._base = time.time()
        self._since = time.monotonic()
        self._changed = asyncio.Event()

    @property
    def speed(self) -> float:
        """Sandbox seconds per wall second."""
        return self._speed

    @property
    def lead_s(self) -> float:
        """Seconds by which it is ahead of the wall clock; 0 if a restored world set an earlier time."""
        return max(0.0, self.now() - time.time())

    def now(self) -> float:
        """Return the sandbox's time in seconds since the Unix epoch."""
        return self._base + (time.monotonic() - self._since) * self._speed

    def set_now(self, now: float) -> None:
        """Continue from another time; no task may be sleeping."""
        self._base, self._since = now, time.monotonic()

    def set_speed(self, speed: float) -> None:
        """Continue at another speed; sleeping tasks adjust to it.

        Raises:
            ValueError: The speed is not above 0.
        """
        self._base, self._since, self._speed = self.now(), time.monotonic(), _checked(speed)
        self._changed.set()
        self._changed = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        """Sleep for sandbox seconds; return immediately for 0 or less."""
        due = self.now() + seconds
        while (left := due - self.now()) > 0:
            changed = self._changed
            try:
                # Not wait_for: before Python 3.12 it loses a cancellation that coincides with the event.
                async with asyncio.timeout(left / self._speed):
                    await changed.wait()
            except TimeoutError:
                break
        else:
            await asyncio.sleep(0)


def _checked(speed: float) -> float:
    if not 0 < speed < math.inf:  # also rejects NaN
        message = f"speed is {speed}; it must be above 0"
        raise ValueError(message)
    return speed
