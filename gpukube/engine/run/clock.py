"""The run's clock: the only place where time passes, so that tests can set it and Ctrl-C can stop a wait."""

from __future__ import annotations

import threading
import time
from typing import Protocol


class Stopped(Exception):
    """The run was asked to stop; the cloud keeps working.

    Args:
        in_flight: A change was sent without waiting for its response, so its effect is unknown. Otherwise the next call
            was not made.
    """

    def __init__(self, *, in_flight: bool = False) -> None:
        self.in_flight = in_flight
        super().__init__()


class Clock(Protocol):
    """Returns the time and waits."""

    def now(self) -> float:
        """Return seconds since the epoch."""

    def wait(self, seconds: float) -> None:
        """Wait that long, or raise Stopped as soon as the run is stopped."""

    def stop(self) -> None:
        """End all present and future waits."""

    @property
    def stopped(self) -> bool:
        """Whether the run was stopped."""


class SystemClock:
    """Real time; `stop` may be called from any thread or a signal handler."""

    def __init__(self) -> None:
        self._stop = threading.Event()

    def now(self) -> float:
        """Return seconds since the epoch."""
        return time.time()

    def wait(self, seconds: float) -> None:
        """Wait that long, or raise Stopped as soon as the run is stopped."""
        if self._stop.wait(max(0.0, seconds)):
            raise Stopped

    def stop(self) -> None:
        """End all present and future waits."""
        self._stop.set()

    @property
    def stopped(self) -> bool:
        """Whether the run was stopped."""
        return self._stop.is_set()
