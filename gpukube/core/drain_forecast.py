"""What a drain of a pool's nodes would meet, as it is foreseen: values that plans carry.

In scope: the values. Out of scope: reading clusters and judging (engine.plan.leaving, cluster.drain).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KeptPod:
    """A pod that does not leave at once.

    Attributes:
        pod: As "namespace/name".
        node: Where it runs.
        why: What keeps it.
        fix: What lets it go; "" where it goes by itself.
        budgets: Disruption budgets that cover it, "namespace/name".
    """

    pod: str
    node: str
    why: str
    fix: str = ""
    budgets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Turns:
    """A disruption budget that lets its pods go in turns: so many of them, so many at a time, about so many seconds."""

    budget: str
    pods: int
    allowed: int
    seconds: float


@dataclass(frozen=True, slots=True)
class DrainedGang:
    """Pods that leave together, with what it costs the work that they do."""

    name: str
    pods: int
    note: str


@dataclass(frozen=True, slots=True)
class FedQueue:
    """A queue of Kueue whose workloads run on the pool, with the commands that hold and resume it."""

    name: str
    hold: str
    resume: str


@dataclass(frozen=True, slots=True)
class PoolPin:
    """A selector that names the pool or one of its nodes, and finds nothing once these are gone.

    Attributes:
        object: What has it: "Deployment ml/web".
        field: Where: "nodeSelector", "required node affinity", "nodeLabels".
        label: "key=value".
    """

    object: str
    field: str
    label: str


@dataclass(frozen=True, slots=True)
class DrainForecast:
    """What a drain would meet.

    Attributes:
        pods: How many must leave.
        blocked: Those that nothing lets go by itself.
        waiting: Those that go later.
        needing: Those that leave only with --allow-disruption; `why` has the signs on them.
        turns: Budgets that make it wait.
        homeless: Those that the new pool could not run; `why` is the reason.
        pins: Selectors that name the pool.
        unread: What could not be read, so that some of this may be missing.
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
        """About how long budgets make it take; they wait side by side."""
        return max((turn.seconds for turn in self.turns), default=0.0)
