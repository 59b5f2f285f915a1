"""How long the autoscaler leaves a group alone after a failed scale-up; pure.

Source: kubernetes-sigs/cluster-autoscaler pkg/utils/backoff/exponential_backoff.go, pkg/config/flags
(initial-node-group-backoff-duration, max-node-group-backoff-duration, node-group-backoff-reset-timeout).
"""

from __future__ import annotations

from dataclasses import dataclass, field

FIRST_S = 300.0
LONGEST_S = 1800.0
FORGOTTEN_S = 10800.0
"""Seconds after the last failure at which the next one counts as the first."""


@dataclass(frozen=True, slots=True)
class _Pause:
    length_s: float
    until: float
    failed_at: float


@dataclass(slots=True)
class BackOff:
    """The pauses of all groups: 5, 10, 20, then 30 minutes.

    A failure during a pause, such as that of a second scale-up that ran at the same time, begins the same pause again.
    """

    _pauses: dict[str, _Pause] = field(default_factory=dict)

    def begin(self, group: str, now: float) -> None:
        """Begin a pause of a group whose scale-up has failed."""
        last = self._pauses.get(group)
        length = FIRST_S
        if last and now <= last.failed_at + FORGOTTEN_S:
            length = last.length_s if now <= last.until else min(2 * last.length_s, LONGEST_S)
        self._pauses[group] = _Pause(length, now + length, now)

    def end(self, group: str) -> None:
        """Forget the failures of a group whose scale-up has succeeded."""
        self._pauses.pop(group, None)

    def holds(self, group: str, now: float) -> bool:
        """Return whether a group is in a pause."""
        return group in self._pauses and self._pauses[group].until > now

    def ends_after(self, now: float) -> list[float]:
        """Return when the current pauses end."""
        return [pause.until for pause in self._pauses.values() if pause.until > now]
