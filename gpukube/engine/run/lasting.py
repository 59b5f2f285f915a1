"""How long a state has been seen to last: what counts is time in which somebody looked. Pure: the caller has the clock.

A machine that slept, or stood still, between two looks finds the state of before when it wakes: the others stood still
too, or have just mended themselves. Such a gap says nothing about how long the state lasts.
"""

from __future__ import annotations

from dataclasses import dataclass

_GAP_POLLS = 4
"""Of the time between two looks so many pauses count at most."""


@dataclass(slots=True)
class Lasting:
    """A state that is looked at again and again.

    Attributes:
        poll_s: Seconds between two looks when nothing comes between.
        seconds: For how long the state has lasted at the last look; 0 when it was not so.
    """

    poll_s: float
    seconds: float = 0.0
    _since: float | None = None

    def note(self, now: float, *, so: bool) -> None:
        """Take in one look."""
        gap = 0.0 if self._since is None else now - self._since
        self.seconds = self.seconds + min(gap, _GAP_POLLS * self.poll_s) if so else 0.0
        self._since = now if so else None
