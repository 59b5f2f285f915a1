"""The shapes of parts that occur only in plans and diffs: durations, quotas, drains, replacements, upgrades."""

from __future__ import annotations

from typing import Literal, TypedDict

from gpukube.engine.documents.shapes.parts import (  # noqa: TC001 - the schema generator reads these at run time
    Diagnostic,
    Request,
)


class DurationTerm(TypedDict):
    """One part of a duration."""

    name: str
    """What takes this time."""
    leastSeconds: float
    """Duration if nothing waits."""
    mostSeconds: float
    """Maximum duration without a failure."""
    source: str
    """Public source, or a note that it is an estimate."""


class Duration(TypedDict):
    """Estimated duration; not guaranteed."""

    leastSeconds: float
    """Sum of the parts, if nothing waits."""
    mostSeconds: float
    """Sum of the maximum durations of the parts."""
    longest: str
    """The longest part."""
    terms: list[DurationTerm]
    """The consecutive parts; for a cluster, those of the pools that determine its end."""


class Quota(TypedDict):
    """A cloud quota that pools of the plan need more of."""

    name: str
    """Name in the cloud's API."""
    title: str
    """Name in the cloud's console and documentation."""
    place: str
    """Scope of the quota: account, subscription or project, and region."""
    unit: str
    """Unit that it counts: vCPUs or GPUs."""
    needed: float
    """Amount beyond current use, for all pools of the plan in that scope at their maximum size."""
    pools: list[str]
    """These pools, as cluster/pool."""
    used: float | None
    """Use by everything in the account; null if unknown."""
    limit: float | None
    """Limit; null if unknown."""
    short: bool
    """Whether less is left than needed, as far as known."""
    unknown: str
    """Why used or limit is unknown; empty if both are known."""
    fix: str
    """How to raise it far enough; empty if it is sufficient."""
    raiseBy: str
    """A command, with {value} for the new limit, or a page; set even if the quota is sufficient."""
    source: str
    """Public source for this quota's counting."""


class KeptPodPart(TypedDict):
    """A pod that does not leave immediately."""

    pod: str
    """namespace/name."""
    node: str
    """Node that it runs on."""
    why: str
    """What keeps it, what it needs, or why it cannot run on the new pool."""
    fix: str
    """What to do; empty if it leaves on its own."""
    budgets: list[str]
    """Disruption budgets that cover it, namespace/name."""


class TurnsPart(TypedDict):
    """A disruption budget that lets its pods leave in turns."""

    budget: str
    """namespace/name."""
    pods: int
    """Number of its pods on the nodes."""
    allowed: int
    """Number of pods that may leave at once now."""
    seconds: float
    """Approximate duration for all of them."""


class GangPart(TypedDict):
    """Pods that leave together."""

    name: str
    """Kind and namespace/name."""
    pods: int
    """Number of its pods on the nodes."""
    note: str
    """What leaving costs it; empty if unknown."""


class QueuePart(TypedDict):
    """A Kueue queue whose workloads run on the pool; gpukube does not change it."""

    name: str
    """namespace/name."""
    hold: str
    """The command that holds it."""
    resume: str
    """The command that resumes it."""


class PinPart(TypedDict):
    """A selector that names the pool, and matches nothing once the pool is deleted."""

    object: str
    """Kind and namespace/name."""
    field: str
    """Path of the field."""
    label: str
    """key=value."""


class LeavingPart(TypedDict):
    """Forecast for draining a pool's nodes."""

    pods: int
    """Pods that must leave."""
    seconds: float
    """Approximate delay by disruption budgets; 0 if there is none."""
    blocked: list[KeptPodPart]
    """Pods that never leave on their own."""
    waiting: list[KeptPodPart]
    """Pods that leave later."""
    needing: list[KeptPodPart]
    """Pods that leave only with --allow-disruption."""
    turns: list[TurnsPart]
    """Budgets that delay the drain."""
    gangs: list[GangPart]
    """Pods that leave together."""
    queues: list[QueuePart]
    """Kueue queues that should be held meanwhile."""
    homeless: list[KeptPodPart]
    """Pods that cannot run on the new pool."""
    pins: list[PinPart]
    """Selectors that name the pool."""
    unread: list[str]
    """What could not be read, so that this forecast may be incomplete."""


class ReplacementPart(TypedDict):
    """How `--replace surge` would replace a pool, and the progress of a replacement that has started."""

    surge: bool
    """Whether nothing known prevents two pools at once."""
    obstacles: list[Diagnostic]
    """Why two pools cannot exist at once; empty if they can, or do."""
    unknown: list[str]
    """What could not be determined about that."""
    oldPool: str
    """The cloud's name of the pool that is deleted."""
    newPool: str
    """The cloud's name of the pool that is created."""
    underWay: bool
    """Whether the new pool already exists: `pool apply --replace surge` continues with it."""
    step: Literal["create", "prove", "drain", "delete"]
    """Next step: create the new pool, verify its GPUs, drain the old pool, or delete it."""
    requests: list[Request]
    """The exact remaining calls of the cloud, in order; between the last two, calls of the cluster evict the pods."""


class Newer(TypedDict):
    """A version of the live nodes, and the available one."""

    live: str
    """Version as the cloud spells it; empty if it reports none."""
    available: str | None
    """Version after an upgrade; null if unknown, or if there is no choice."""


class Upgrades(TypedDict):
    """What an upgrade of the live nodes changes, and its effect on them and their pods."""

    planned: bool
    """Whether this plan upgrades (--upgrade); otherwise `image.available` is not read."""
    kubernetes: Newer
    """Kubernetes version: live, of the nodes; available, of the cluster or the spec."""
    image: Newer
    """Node image or release, which includes the driver if the cloud installs it."""
    unknown: str
    """Why the newest image is unknown; empty if it is known, or was not requested."""
    automatic: str
    """What upgrades these nodes automatically; empty if nothing does."""
    obstacle: str
    """Why the pool cannot be upgraded; empty if it can."""
    extraNodes: int | None
    """Maximum number of nodes that the cloud adds meanwhile; they need quota and machines. null if unknown."""
    nodes: str
    """How the nodes are replaced."""
    drainMinutes: int
    """Maximum minutes for draining a node."""
    overdue: Literal["fails", "stops", "skips", "forces"]
    """If pods are still there then, the upgrade fails and is rolled back, stops half-way, skips that node, or deletes
    the pods."""
    pods: str
    """The same in one sentence."""
    blocked: list[str] | None
    """Pods that their disruption budgets never release, namespace/name; null if budgets were not read."""
