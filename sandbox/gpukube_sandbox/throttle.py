"""Token buckets that refill in sandbox time.

In scope: the buckets. Out of scope: a cloud's limits, and how it words its refusal.

They use sandbox time because a client that polls every ten seconds in a real cloud polls every sixth of a second here
at the default speed, and must not be throttled for it. A limit reached at `--speed 1` is also reached in the cloud.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube_sandbox.clock import Clock


@dataclass(frozen=True, slots=True)
class Limit:
    """Burst size, and tokens refilled per second."""

    burst: int
    refill_per_s: float


class Buckets:
    """All buckets of one service.

    Args:
        clock: The sandbox's time.
        limits: Name -> size of each bucket of that name.
    """

    def __init__(self, clock: Clock, limits: Mapping[str, Limit]) -> None:
        self._clock = clock
        self._usual = dict(limits)
        self._levels: dict[tuple[str, str], tuple[float, float]] = {}
        self.limits = dict(limits)
        self.enabled = True

    def reset(self) -> None:
        """Fill every bucket and restore the default limits."""
        self._levels.clear()
        self.limits = dict(self._usual)
        self.enabled = True

    def wait_s(self, name: str, scope: str) -> float:
        """Take a token.

        Args:
            name: Name of a limit.
            scope: Scope of the bucket.

        Returns:
            0.0, or the sandbox seconds until the next token, without taking one.
        """
        if not self.enabled:
            return 0.0
        limit, now = self.limits[name], self._clock.now()
        level, seen = self._levels.get((name, scope), (float(limit.burst), now))
        level = min(float(limit.burst), level + (now - seen) * limit.refill_per_s)
        is_empty = level < 1
        self._levels[name, scope] = (level if is_empty else level - 1, now)
        return (1 - level) / limit.refill_per_s if is_empty else 0.0
