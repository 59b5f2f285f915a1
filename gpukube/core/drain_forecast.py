"""Forecast of a drain of a pool's nodes, as values in plans.

In scope: the values. Out of scope: reading clusters and computing the forecast (engine.plan.leaving, cluster.drain).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KeptPod:
    """A pod that cannot be evicted immediately.

    Attributes:
        pod: The pod, as "namespace/name".
        node: Its node.
        why: What keeps it.
        fix: What to do so that it can be evicted; "" if it leaves on its own.
        budgets: Disruption budgets that cover it, "namespace/name".
    """

    pod: str
    node: str
    why: str
    fix: str = ""
    budgets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Turns:
    """A disruption budget that lets its pods be evicted in turns: how many, how many at a time, and about how long."""

    budget: str
    pods: int
    allowed: int
    seconds: float


@dataclass(frozen=True, slots=True)
class DrainedGang:
    """Pods that are evicted together, with the cost to their workload."""

    name: str
    pods: int
    note: str


@dataclass(frozen=True, slots=True)
class FedQueue:
    """A Kueue queue whose workloads run on the pool, with the commands that hold and resume it."""

    name: str
    hold: str
    resume: str


@dataclass(frozen=True, slots=True)
class PoolPin:
    """A selector that names the pool or one of its nodes, and matches nothing once these are deleted.

    Attributes:
        object: Object that contains it: "Deployment ml/web".
        field: Field of the object: "nodeSelector", "required node affinity", "nodeLabels".
        label: "key=value".
    """

    object: str
    field: str
    label: str


@dataclass(frozen=True, slots=True)
class DrainForecast:
    """Forecast of a drain.

    Attributes:
        pods: Number of pods to evict.
        blocked: Pods that block the drain until somebody acts.
        waiting: Pods that leave later on their own.
        needing: Pods that are evicted only with --allow-disruption; `why` names the signs on them.
        turns: Budgets that delay the drain.
        homeless: Pods that the new pool could not run; `why` is the reason.
        pins: Selectors that name the pool.
        unread: What could not be read; the forecast may be incomplete.
    """

    pods: int
    blocked: tuple[KeptPod, ...] = ()
    waiting: tuple[KeptPod, ...] = ()
    needing: tuple[KeptPod, ...] = ()
    turns: tuple[Turns, ...] = ()
    gangs: tuple[DrainedGang, ...] = ()
    queues: tuple[FedQueue, ...] = ()
    homeless: tuple[KeptPod, ...] = ()
    pins: tuple[PoolPin, ...] = ()
    unread: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """Estimated duration due to budgets, which apply concurrently."""
        return max((turn.seconds for turn in self.turns), default=0.0)
