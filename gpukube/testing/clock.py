"""A clock whose time passes only in waits."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gpukube.engine.run.clock import Stopped

if TYPE_CHECKING:
    from gpukube.engine.run.clock import Clock

__all__ = ["ManualClock"]


class ManualClock:
    """A clock that a wait advances immediately.

    Args:
        stop_at: Seconds at which the run is stopped, as by Ctrl-C.
    """

    def __init__(self, stop_at: float = math.inf) -> None:
        self._now = 0.0
        self._stop_at = stop_at

    def now(self) -> float:
        """Return the seconds waited so far."""
        return self._now

    def wait(self, seconds: float) -> None:
        """Advance the clock; raise Stopped if it reaches the stop."""
        self._now = min(self._now + max(0.0, seconds), self._stop_at)
        if self.stopped:
            raise Stopped

    def stop(self) -> None:
        """Stop now."""
        self._stop_at = self._now

    @property
    def stopped(self) -> bool:
        """Whether the clock is stopped."""
        return self._now >= self._stop_at


if TYPE_CHECKING:
    _: type[Clock] = ManualClock
