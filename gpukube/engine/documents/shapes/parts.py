"""Parts that several kinds of documents share: positions, findings, changes, calls, devices."""

from __future__ import annotations

from typing import Literal, TypedDict


class Position(TypedDict):
    """A position in a user's file."""

    file: str
    """File as named on the command line; - for standard input."""
    line: int
    """1-based."""
    column: int
    """1-based."""


class Diagnostic(TypedDict):
    """A finding."""

    severity: Literal["error", "warning", "hint"]
    """Errors stop a run before anything changes; warnings do not; a hint marks what works but costs more."""
    id: str
    """Number of the rule, such as GPK103, documented in docs/diagnostics; empty if only a live run can report it."""
    code: str
    """Stable and documented in docs/codes.md."""
    where: str
    """file:line:column, or a resource such as train-aks/a100mig."""
    position: Position | None
    """The same position in parts, if it is in a file."""
    field: str
    """Path of the spec field at that position, such as pools[0].nodes.count; empty if unknown."""
    message: str
    """What is wrong, including the observed value."""
    why: str
    """The rule behind it; empty if obvious."""
    fix: str
    """What to write or run."""


class ScopePart(TypedDict):
    """What a run covered: it identifies the run's comment on a pull request."""

    owners: list[str]
    """metadata.name of the specs; empty without a spec."""
    filters: list[str]
    """--cluster and --pool of the run; empty if it covered the whole spec."""


class SilencedPart(TypedDict):
    """A finding that the spec accepts."""

    finding: Diagnostic
    """The finding as it would be reported."""
    reason: str
    """The reason that the spec gives."""


class Toleration(TypedDict):
    """A toleration as it is written in a pod."""

    key: str
    """Key of the taint."""
    operator: Literal["Exists", "Equal"]
    """Exists: any value."""
    value: str
    """Value of the taint; empty with Exists."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
    """Effect of the taint."""


class Change(TypedDict):
    """One field of a pool that differs."""

    field: str
    """Field in the terms of the spec: nodes.count, labels[team]."""
    old: object
    """Live value; null if absent."""
    new: object
    """Declared value; null if absent."""
    kind: Literal["in-place", "disruptive", "replace", "refused"]
    """Effect of the change; disruptive: in place, but running pods are disrupted."""
    sentence: str
    """Human-readable effect."""
    declared: Position | None
    """Position of the field in the spec, or of its nearest parent that is written."""


class Request(TypedDict):
    """A native call, exactly as it would be sent; user data is replaced by its digest."""

    service: str
    """Provider."""
    operation: str
    """Operation of the cloud's SDK."""
    params: object
    """Arguments with the cloud's own names."""


class GpuModel(TypedDict):
    """The GPUs of one machine."""

    model: str
    """Name in the catalog."""
    count: float
    """GPUs per node; a fraction if a machine has a share of a GPU."""


class NodeRange(TypedDict):
    """Number of nodes, as totals of the pool."""

    count: int
    """Fixed size, or the size at creation of an autoscaled pool."""
    min: int
    """Fewest."""
    max: int
    """Most."""
    autoscaled: bool
    """Whether the cloud's autoscaler controls the number."""


class ShardPart(TypedDict):
    """The part of a fleet that a document covers."""

    index: int
    """Number of the shard, from 1."""
    total: int
    """Total number of shards."""
    spec: str
    """Digest of the whole spec, with defaults, variables and --set."""
    clusters: dict[str, int]
    """Clusters of this shard by key -> their positions among those of all shards, from 1; empty if it has none."""
    of: int
    """Number of clusters of all shards."""
    exitCode: int
    """Exit code of the command."""


class FamilyPart(TypedDict):
    """Place of a pool in its family: a pool and its alternatives, of which one has all nodes if the size is fixed."""

    name: str
    """Name of the family: that of its first pool."""
    rank: int | None
    """Place in the order in which the pools are tried, from 1; null if the spec is not known."""
    of: int | None
    """Number of pools of the family; null if the spec is not known."""
    role: Literal["holder", "next", "standby", "leftover", "second"] | None
    """holder: it has the nodes; next: no pool has nodes, and it is tried first; standby: it is tried only if those
    before it get no machines; leftover: an attempt left it without nodes; second: it has nodes, and another one too;
    null for an autoscaled family, whose pools all exist."""
    differs: list[str]
    """How it differs from the first pool of the family."""
    mostWaitSeconds: float | None
    """For role next: the longest time until the run gives up, if no pool gets machines; null for the other roles."""


class MergedPart(TypedDict):
    """The shards that a document was merged from."""

    total: int
    """Total number of shards."""
    missing: list[int]
    """Shards whose documents are missing, from 1; empty if the document is complete."""
    spec: str
    """Digest of the whole spec, as in the documents of the shards."""
    exitCode: int
    """Exit code of the merge: 1 if shards are missing, else that of a single command without shards."""
