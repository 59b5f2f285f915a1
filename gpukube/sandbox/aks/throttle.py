"""Token buckets of the AKS resource provider.

Lives here: the buckets and their refusal. Must not live here: faults that throttle on demand.

Source: docs: aks/quotas-skus-regions (burst, refill, scope). The sentence of the refusal is unconfirmed; its code is
`Throttled` (docs: troubleshoot azure-kubernetes, throttled-error).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpukube.sandbox.aks.answers import Refusal

if TYPE_CHECKING:
    from gpukube.sandbox.clock import Clock


@dataclass(frozen=True, slots=True)
class Limit:
    """Burst tokens, and how many come back per second."""

    burst: int
    refill_per_s: float


LIMITS: dict[str, Limit] = {
    "put-agent-pool": Limit(20, 1 / 60),  # per pool
    "get-cluster": Limit(60, 1.0),  # per cluster
    "list-clusters": Limit(500, 1.0),  # per subscription
    "list-clusters-in-group": Limit(60, 1.0),  # per resource group
    "get-operation": Limit(200, 2.0),  # per subscription
    "other": Limit(60, 1.0),  # per subscription, of one API: "all other APIs"
}


class Throttle:
    """All buckets of one service, filled by the sandbox's time.

    Args:
        clock: The sandbox's time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._levels: dict[tuple[str, str], tuple[float, float]] = {}
        self.limits = dict(LIMITS)
        self.enabled = True

    def reset(self) -> None:
        """Fill every bucket and go back to the documented limits."""
        self._levels.clear()
        self.limits = dict(LIMITS)
        self.enabled = True

    def take(self, name: str, scope: str) -> None:
        """Take a token.

        Args:
            name: Key of `LIMITS`.
            scope: What the bucket is counted per.

        Raises:
            Refusal: 429 Throttled with Retry-After, in seconds of the wall clock.
        """
        if not self.enabled:
            return
        limit, now = self.limits[name], self._clock.now()
        level, seen = self._levels.get((name, scope), (float(limit.burst), now))
        level = min(float(limit.burst), level + (now - seen) * limit.refill_per_s)
        if level < 1:
            self._levels[name, scope] = (level, now)
            raise self._refusal(name, (1 - level) / limit.refill_per_s)
        self._levels[name, scope] = (level - 1, now)

    def _refusal(self, name: str, wait_s: float) -> Refusal:
        after = str(math.ceil(wait_s / self._clock.speed))
        message = f"The request was throttled: too many requests of kind {name}. Retry after {after} seconds."
        return Refusal(429, "Throttled", message, headers={"Retry-After": after})
