"""A clock whose speed can be changed while others wait on it.

In scope: that clock. Out of scope: what the waiting is for. (`clock` has the port and the fixed clocks.)
"""

from __future__ import annotations

import asyncio
import math
import time


class PacedClock:
    """Time that starts at the wall clock's and runs at a speed that may change; conforms to `clock.Clock`.

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
        """Seconds ahead of the wall clock; 0 where a saved world has brought an earlier time."""
        return max(0.0, self.now() - time.time())

    def now(self) -> float:
        """Tell the sandbox's time, in seconds since the Unix epoch."""
        return self._base + (time.monotonic() - self._since) * self._speed

    def set_now(self, now: float) -> None:
        """Go on from another moment; nobody may be asleep."""
        self._base, self._since = now, time.monotonic()

    def set_speed(self, speed: float) -> None:
        """Go on at another speed; who sleeps now wakes when the sandbox's time says so.

        Raises:
            ValueError: The speed is not above 0.
        """
        self._base, self._since, self._speed = self.now(), time.monotonic(), _checked(speed)
        self._changed.set()
        self._changed = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        """Wait until that many sandbox seconds have passed; at once for 0 or less."""
        due = self.now() + seconds
        while (left := due - self.now()) > 0:
            changed = self._changed
            try:
                # Not wait_for: before Python 3.12 it loses a cancellation that comes with the event.
                async with asyncio.timeout(left / self._speed):
                    await changed.wait()
            except TimeoutError:
                break
        else:
            await asyncio.sleep(0)


def _checked(speed: float) -> float:
    if not 0 < speed < math.inf:  # not a number is neither
        message = f"speed is {speed}; it must be above 0"
        raise ValueError(message)
    return speed
