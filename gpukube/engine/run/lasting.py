"""How long a state has lasted, counting only time in which it was observed. Pure: the caller has the clock.

A machine that slept between two looks finds the old state when it wakes: the other machines slept too, or have just
recovered. Such a gap does not show how long the state lasts.
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
        seconds: For how long the state has lasted at the last look; 0 when it did not hold.
    """

    poll_s: float
    seconds: float = 0.0
    _since: float | None = None

    def note(self, now: float, *, holds: bool) -> None:
        """Take in one look."""
        gap = 0.0 if self._since is None else now - self._since
        self.seconds = self.seconds + min(gap, _GAP_POLLS * self.poll_s) if holds else 0.0
        self._since = now if holds else None
