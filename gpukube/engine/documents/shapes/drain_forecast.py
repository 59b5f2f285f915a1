"""The shape of what is foreseen of a drain."""

from __future__ import annotations

from typing import TypedDict


class KeptPodPart(TypedDict):
    """A pod that does not leave at once."""

    pod: str
    """As namespace/name."""
    node: str
    """Where it runs."""
    why: str
    """What keeps it, what it needs, or why it cannot run on the new pool."""
    fix: str
    """What to do; empty where it goes by itself."""
    budgets: list[str]
    """Disruption budgets that cover it, as namespace/name."""


class TurnsPart(TypedDict):
    """A disruption budget that lets its pods go in turns."""

    budget: str
    """As namespace/name."""
    pods: int
    """Its pods on the nodes."""
    allowed: int
    """How many may go at once now."""
    seconds: float
    """About how long all of them take."""


class GangPart(TypedDict):
    """Pods that leave together."""

    name: str
    """Kind and namespace/name."""
    pods: int
    """Its pods on the nodes."""
    note: str
    """What leaving costs it; empty when it is not known."""


class QueuePart(TypedDict):
    """A queue of Kueue whose workloads run on the pool; it is not touched."""

    name: str
    """As namespace/name."""
    hold: str
    """The command that holds it."""
    resume: str
    """The command that lets it go on."""


class PinPart(TypedDict):
    """A selector that names the pool, and finds nothing once it is gone."""

    object: str
    """Kind and namespace/name."""
    field: str
    """Where it stands."""
    label: str
    """As key=value."""


class LeavingPart(TypedDict):
    """What the drain of a pool's nodes would meet."""

    pods: int
    """Pods that must leave."""
    seconds: float
    """About how long disruption budgets make it take; 0 when none does."""
    blocked: list[KeptPodPart]
    """Pods that nothing lets go by itself."""
    waiting: list[KeptPodPart]
    """Pods that go later."""
    needing: list[KeptPodPart]
    """Pods that leave only with --allow-disruption."""
    turns: list[TurnsPart]
    """Budgets that make it wait."""
    gangs: list[GangPart]
    """Pods that leave together."""
    queues: list[QueuePart]
    """Queues of Kueue that should be held meanwhile."""
    homeless: list[KeptPodPart]
    """Pods that the new pool could not run."""
    pins: list[PinPart]
    """Selectors that name the pool."""
    unread: list[str]
    """What could not be read, so that some of this may be missing."""
