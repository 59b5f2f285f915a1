"""The shapes of parts that only plans and diffs have: durations, quotas, drains, replacements, upgrades."""

from __future__ import annotations

from typing import Literal, TypedDict

from gpukube.engine.documents.shapes.parts import (  # noqa: TC001 - schemas are made of these when that tool runs
    Diagnostic,
    Request,
)


class DurationTerm(TypedDict):
    """One part of a duration."""

    name: str
    """What takes it."""
    leastSeconds: float
    """When nothing waits."""
    mostSeconds: float
    """When it takes as long as it may without failing."""
    source: str
    """Public source, or that it is an estimate."""


class Duration(TypedDict):
    """How long something would take: an estimate, and no promise."""

    leastSeconds: float
    """The sum of the parts, when nothing waits."""
    mostSeconds: float
    """The sum of the parts, when each takes as long as it may."""
    longest: str
    """The part that most of it goes to."""
    terms: list[DurationTerm]
    """The parts, one after the other; of a cluster those of the pools that its end waits for."""


class Quota(TypedDict):
    """One quota of a cloud that pools of the plan need more of."""

    name: str
    """As the cloud's API has it."""
    title: str
    """As its pages call it."""
    place: str
    """Whose it is and where: account, subscription or project, and region."""
    unit: str
    """What it counts: vCPUs or GPUs."""
    needed: float
    """Beyond what is used, by all pools of the plan in that place with as many nodes as they may have."""
    pools: list[str]
    """These pools, as cluster/pool."""
    used: float | None
    """By everybody in the account; null when not known."""
    limit: float | None
    """null when not known."""
    short: bool
    """Whether less is left than needed, as far as is known."""
    unknown: str
    """Why used or limit is not known; empty when both are."""
    fix: str
    """What raises it far enough; empty when it does."""
    raiseBy: str
    """A command, where {value} stands for the new limit, or a page; whether or not it does."""
    source: str
    """Public source that this quota counts."""


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


class ReplacementPart(TypedDict):
    """How `--replace surge` would replace a pool, and how far a replacement is that was begun."""

    surge: bool
    """Whether nothing that is known speaks against two pools at once."""
    obstacles: list[Diagnostic]
    """Why two pools cannot exist at once; empty where they can, or do."""
    unknown: list[str]
    """What could not be found out about that."""
    oldPool: str
    """The cloud's name of the pool that goes."""
    newPool: str
    """The cloud's name of the pool that comes."""
    underWay: bool
    """Whether the new pool exists already: `pool apply --replace surge` goes on with it."""
    step: Literal["create", "prove", "drain", "delete"]
    """What is done next: the new pool is created, its GPUs are proven, the old pool is drained, or deleted."""
    requests: list[Request]
    """The exact calls of the cloud that are left, in order; between the last two the pods leave by calls of the
    cluster."""


class Newer(TypedDict):
    """One thing that nodes run, and what they could run."""

    live: str
    """In the cloud's words; empty when it does not say, or has none of its own."""
    available: str | None
    """What an upgrade would bring; null when it is not known, or there is nothing to choose."""


class Upgrades(TypedDict):
    """What an upgrade of the live nodes would bring, and what it does to them and their pods."""

    planned: bool
    """Whether this plan does it (--upgrade); otherwise `image.available` is not read."""
    kubernetes: Newer
    """Version of the nodes; the cluster's, or the spec's."""
    image: Newer
    """Node image or release, which brings the driver where the cloud installs it."""
    unknown: str
    """Why the newest image is not known; empty when it is, or was not asked for."""
    automatic: str
    """Who upgrades these nodes without being asked; empty for nobody."""
    obstacle: str
    """Why the pool cannot be upgraded; empty when it can."""
    extraNodes: int | None
    """Nodes that the cloud adds meanwhile at the most; they need quota and machines. null when not known."""
    nodes: str
    """How the nodes are replaced."""
    drainMinutes: int
    """How long a node may take to drain."""
    overdue: Literal["fails", "stops", "skips", "forces"]
    """If pods are still there then, the upgrade fails and is taken back, stops half-way, leaves that node as it is, or
    deletes the pods."""
    pods: str
    """The same in a sentence."""
    blocked: list[str] | None
    """Pods that their disruption budgets never let go, namespace/name; null where budgets were not read."""
