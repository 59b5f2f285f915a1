"""What a cloud lets an account run in a place: its quotas, what pools count against them, and what is left.

A provider gives one `CloudQuotas` as its member `quotas`; the numbers come from `Cloud.quotas`. In scope: these
values. Out of scope: any cloud, and which pools of a plan need what (gpukube.engine.plan.quotas).
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
    """One quota of an account in a place; two clusters there share it.

    Attributes:
        provider: Cloud.
        name: As the cloud's API has it: "L-417A185B", "standardNDSH100v5Family", "NVIDIA_A100_GPUS".
        title: As its pages call it.
        unit: What it counts: "vCPUs" or "GPUs".
        place: Whose it is and where: "111122223333/us-east-1".
        raise_by: What raises it: a command, where `{value}` stands for the new limit, or a page.
        source: Public source that this quota limits such pools.
        unread: Why it cannot be read at all; "" when it can.
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
    """What one node counts against a quota."""

    quota: CloudQuota
    per_node: float


@dataclass(frozen=True, slots=True)
class QuotaReading:
    """A quota as it was read.

    Attributes:
        limit: Most that there may be; None when not known.
        used: What there is, of all users of the account; None when not known.
        unknown: Why one of them is not known; "" when both are.
    """

    limit: float | None = None
    used: float | None = None
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class QuotaNeed:
    """What one pool would count against a quota, beyond what it counts now.

    Attributes:
        quota: Which.
        amount: In the quota's unit, with as many nodes as the pool may have.
        pool: The pool as a resource, "train-aks/a100mig".
    """

    quota: CloudQuota
    amount: float
    pool: str


@dataclass(frozen=True, slots=True)
class QuotaUse:
    """What a run needs of a quota, beside what is used and allowed.

    Attributes:
        quota: Which.
        needed: By all pools of the run in its place, beyond what is used.
        pools: These pools.
        reading: What was read.
    """

    quota: CloudQuota
    needed: float
    pools: tuple[str, ...]
    reading: QuotaReading

    @property
    def free(self) -> float | None:
        """What is left; None when not known."""
        if self.reading.limit is None or self.reading.used is None:
            return None
        return max(0.0, self.reading.limit - self.reading.used)

    @property
    def is_short(self) -> bool:
        """Whether less is left than is needed; a limit below that alone is enough to know."""
        limit = self.reading.limit
        return limit is not None and self.needed + (self.reading.used or 0) > limit

    @property
    def least_limit(self) -> float:
        """The limit that would do, by what is known."""
        return self.needed + (self.reading.used or 0)

    @property
    def fix(self) -> str:
        """What raises the quota far enough."""
        return self.quota.raise_by.replace("{value}", f"{self.least_limit:g}")


@dataclass(frozen=True, slots=True)
class CloudQuotas:
    """What a cloud package knows of its quotas; pure.

    Attributes:
        draws: What a node counts against, by cluster, its location, machine, and how the machine is bought. Empty where
            nothing limits it.
        surge: How many nodes more there are for a while when a live pool changes so; 0 where no node is made anew.
    """

    draws: Callable[[ClusterRef, str, Machine, Capacity], tuple[QuotaDraw, ...]]
    surge: Callable[[Desired, Observed, Sequence[Change]], int]


def share_of(amount: str, nodes: int) -> int:
    """Count the nodes of an amount, "1" or "33%"; percentages are rounded up."""
    return -(-nodes * int(amount[:-1]) // 100) if amount.endswith("%") else int(amount)
