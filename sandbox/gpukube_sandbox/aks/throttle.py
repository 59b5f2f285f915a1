"""Token buckets of the AKS resource provider.

In scope: their sizes and their errors. Out of scope: the buckets themselves, faults that throttle on demand.

Source: docs: aks/quotas-skus-regions (burst, refill, scope). The error message is unconfirmed; its code is
`Throttled` (docs: troubleshoot azure-kubernetes, throttled-error).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gpukube_sandbox.aks.answers import ArmError
from gpukube_sandbox.throttle import Buckets, Limit

if TYPE_CHECKING:
    from gpukube_sandbox.clock import Clock

LIMITS: dict[str, Limit] = {
    "put-agent-pool": Limit(20, 1 / 60),  # per pool
    "get-cluster": Limit(60, 1.0),  # per cluster
    "list-clusters": Limit(500, 1.0),  # per subscription
    "list-clusters-in-group": Limit(60, 1.0),  # per resource group
    "get-operation": Limit(200, 2.0),  # per subscription
    "spot-scores": Limit(30, 0.5),  # per subscription; the numbers are unconfirmed
    "other": Limit(60, 1.0),  # per subscription and API: "all other APIs"
}


class Throttle(Buckets):
    """All buckets of the service.

    Args:
        clock: The sandbox's time.
    """

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock, LIMITS)

    def take(self, name: str, scope: str) -> None:
        """Take a token from a bucket.

        Raises:
            ArmError: 429 Throttled with Retry-After, in wall clock seconds.
        """
        wait_s = self.wait_s(name, scope)
        if wait_s:
            after = str(math.ceil(wait_s / self._clock.speed))
            message = f"The request was throttled: too many requests of kind {name}. Retry after {after} seconds."
            raise ArmError(429, "Throttled", message, headers={"Retry-After": after})
