"""What documents of several kinds are made of: places, findings, changes, calls, devices."""

from __future__ import annotations

from typing import Literal, TypedDict


class Position(TypedDict):
    """A place in a file of the user."""

    file: str
    """As it was named on the command line; - for standard input."""
    line: int
    """1-based."""
    column: int
    """1-based."""


class Diagnostic(TypedDict):
    """A finding for people."""

    severity: Literal["error", "warning", "hint"]
    """Errors stop a run before anything is changed; warnings do not; a hint is about what works and costs."""
    id: str
    """Number of the rule, such as GPK103, documented in docs/diagnostics; empty where only a live run can say it."""
    code: str
    """Stable and documented in docs/codes.md."""
    where: str
    """file:line:column, or a resource such as train-aks/a100mig."""
    position: Position | None
    """The same as parts, where it is a place in a file."""
    field: str
    """Path of the field of the spec that stands there, such as pools[0].nodes.count; empty where it is not known."""
    message: str
    """What is wrong, with the value seen."""
    why: str
    """The rule behind it; empty where it is plain."""
    fix: str
    """What to write or run."""


class ScopePart(TypedDict):
    """What a run was of: with it a comment on a pull request is found again, and each run has its own."""

    owners: list[str]
    """metadata.name of its specs; empty without a spec."""
    filters: list[str]
    """--cluster and --pool of the run; empty when it was of the whole spec."""


class SilencedPart(TypedDict):
    """A finding that the spec accepts."""

    finding: Diagnostic
    """As it would be told."""
    reason: str
    """What the spec says about it."""


class Toleration(TypedDict):
    """A toleration, as it stands in a pod."""

    key: str
    """Of the taint."""
    operator: Literal["Exists", "Equal"]
    """Exists: whatever its value."""
    value: str
    """Of the taint; empty with Exists."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
    """Of the taint."""


class Change(TypedDict):
    """One field of a pool that differs."""

    field: str
    """In the terms of the spec: nodes.count, labels[team]."""
    old: object
    """Live value; null where it is absent."""
    new: object
    """Declared value; null where it is absent."""
    kind: Literal["in-place", "disruptive", "replace", "refused"]
    """What the change does: disruptive is in place, but running pods suffer."""
    sentence: str
    """The same for people."""
    declared: Position | None
    """Where the spec declares the field, or its nearest parent that is written."""


class Request(TypedDict):
    """A native call, exactly as it would be sent; the texts of user data are replaced by their digests."""

    service: str
    """Provider."""
    operation: str
    """Operation of the cloud's SDK."""
    params: object
    """Arguments in the cloud's own names."""


class GpuModel(TypedDict):
    """The GPUs of one machine."""

    model: str
    """Name in the catalog."""
    count: float
    """Per node; a fraction where a machine has a share of a GPU."""


class NodeRange(TypedDict):
    """How many nodes, as pool totals."""

    count: int
    """Fixed size, or the size at creation of an autoscaled pool."""
    min: int
    """Fewest."""
    max: int
    """Most."""
    autoscaled: bool
    """Whether the cloud's autoscaler owns the number."""


class ShardPart(TypedDict):
    """Which part of a fleet a document is of."""

    index: int
    """Of the shard, from 1."""
    total: int
    """How many shards there are."""
    spec: str
    """Digest of the whole spec, with defaults, variables and --set."""
    clusters: dict[str, int]
    """Clusters of this shard by key -> their places among those of all shards, from 1; empty when none is in it."""
    of: int
    """How many clusters all shards have together."""
    exitCode: int
    """Of the command."""


class MergedPart(TypedDict):
    """Of which shards a document was put together."""

    total: int
    """How many shards there are."""
    missing: list[int]
    """Shards whose documents are missing, from 1; empty when the document is whole."""
    spec: str
    """Digest of the whole spec, as in the documents of the shards."""
    exitCode: int
    """Of the command that merged: 1 when shards are missing, else what one command without shards would have had."""
