"""How long a state has lasted, counting only time in which it was observed. Pure: the caller has the clock.

A machine that slept between two observations sees the old state when it wakes: the other machines slept too, or have
just recovered. Such a gap does not show that the state lasted.
"""

from __future__ import annotations

from dataclasses import dataclass

_GAP_POLLS = 4
"""Maximum time counted between two observations, in poll intervals."""


@dataclass(slots=True)
class Lasting:
    """A state that is observed repeatedly.

    Attributes:
        poll_s: Usual seconds between two observations.
        seconds: How long the state had lasted at the last observation; 0 if it did not hold.
    """

    poll_s: float
    seconds: float = 0.0
    _since: float | None = None

    def note(self, now: float, *, holds: bool) -> None:
        """Record an observation."""
        gap = 0.0 if self._since is None else now - self._since
        self.seconds = self.seconds + min(gap, _GAP_POLLS * self.poll_s) if holds else 0.0
        self._since = now if holds else None
