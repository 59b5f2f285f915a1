"""An account's quotas in a place: limits, what pools count against them, and what is left.

A provider has one `CloudQuotas` as its member `quotas`; the numbers come from `Cloud.quotas`. In scope: these values.
Out of scope: any cloud, and the needs of a plan's pools (gpukube.engine.plan.quotas).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpukube.core.values import Capacity, Change, ClusterRef, Desired, Observed
    from gpukube.gpu.catalog import Machine


@dataclass(frozen=True, slots=True)
class CloudQuota:
    """One quota of an account in a place, shared by all clusters there.

    Attributes:
        provider: Cloud.
        name: Name in the cloud's API: "L-417A185B", "standardNDSH100v5Family", "NVIDIA_A100_GPUS".
        title: Name in the cloud's documentation.
        unit: Unit: "vCPUs" or "GPUs".
        place: Account and region: "111122223333/us-east-1".
        raise_by: How to raise it: a command in which `{value}` is the new limit, or a page.
        source: Public source that this quota limits such pools.
        unread: Why it cannot be read; "" if it can.
    """

    provider: str
    name: str
    title: str
    unit: str
    place: str
    raise_by: str
    source: str
    unread: str = ""


@dataclass(frozen=True, slots=True)
class QuotaDraw:
    """Amount that one node counts against a quota."""

    quota: CloudQuota
    per_node: float


@dataclass(frozen=True, slots=True)
class QuotaReading:
    """Limit and usage of a quota.

    Attributes:
        limit: Limit; None if unknown.
        used: Usage of the whole account; None if unknown.
        unknown: Why one of them is unknown; "" if both are known.
    """

    limit: float | None = None
    used: float | None = None
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class QuotaNeed:
    """Amount that one pool would count against a quota in addition to its current usage.

    Attributes:
        quota: The quota.
        amount: Amount in the quota's unit, at the pool's maximum size.
        pool: The pool as a resource, "train-aks/a100mig".
    """

    quota: CloudQuota
    amount: float
    pool: str


@dataclass(frozen=True, slots=True)
class QuotaUse:
    """What a run needs of a quota, with its limit and usage.

    Attributes:
        quota: The quota.
        needed: Additional amount for all pools of the run in its place.
        pools: These pools.
        reading: Limit and usage.
    """

    quota: CloudQuota
    needed: float
    pools: tuple[str, ...]
    reading: QuotaReading

    @property
    def free(self) -> float | None:
        """Amount left; None if unknown."""
        if self.reading.limit is None or self.reading.used is None:
            return None
        return max(0.0, self.reading.limit - self.reading.used)

    @property
    def is_short(self) -> bool:
        """Whether less is left than needed, which a low limit shows even if usage is unknown."""
        limit = self.reading.limit
        return limit is not None and self.needed + (self.reading.used or 0) > limit

    @property
    def least_limit(self) -> float:
        """Minimum sufficient limit, as far as known."""
        return self.needed + (self.reading.used or 0)

    @property
    def fix(self) -> str:
        """How to raise the quota to a sufficient limit."""
        return self.quota.raise_by.replace("{value}", f"{self.least_limit:g}")


@dataclass(frozen=True, slots=True)
class CloudQuotas:
    """A cloud package's facts about its quotas; pure.

    Attributes:
        draws: Returns the quotas that a node counts against, by cluster, location, machine, and capacity type; empty if
            none applies.
        surge: Returns how many temporary extra nodes a change of a live pool creates; 0 if it recreates no nodes.
    """

    draws: Callable[[ClusterRef, str, Machine, Capacity], tuple[QuotaDraw, ...]]
    surge: Callable[[Desired, Observed, Sequence[Change]], int]


def share_of(amount: str, nodes: int) -> int:
    """Return an amount, "1" or "33%", as a number of nodes; percentages are rounded up."""
    return -(-nodes * int(amount[:-1]) // 100) if amount.endswith("%") else int(amount)
