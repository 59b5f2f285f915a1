"""The shape of reports on what was done, of the answer of validate, and of lines of the event log."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from gpukube.engine.documents.shapes.parts import (  # noqa: TC001 - schemas are made of these when that tool runs
    Change,
    Diagnostic,
    MergedPart,
    ScopePart,
    ShardPart,
    SilencedPart,
    Toleration,
)

ReportKind = Literal["Create", "Apply", "Scale", "Delete", "Drain", "Release", "ReleaseRemoval", "Wait", "Verify"]


class Finding(TypedDict):
    """A step that is missing on a node or in a cluster."""

    where: str
    """Node or object."""
    step: str
    """Which step."""
    weight: Literal["note", "waiting", "broken"]
    """note: hinders nothing; waiting: usually passes by itself; broken: does not."""
    seen: str
    """What was seen."""
    means: str
    """What that usually comes from; empty when it is plain."""
    fix: str
    """What to run; empty when waiting is all there is to do."""


class Check(TypedDict):
    """One thing of a node, as it should be and as it is."""

    what: str
    """For people: a label, a taint, a condition, a pod."""
    expected: str
    """As it should be; empty for absent."""
    seen: str
    """As it is; empty for absent."""
    holds: bool
    """Whether they agree; what does not need not hinder anything."""


class Probe(TypedDict):
    """What a pod with one device of the pool saw."""

    status: Literal["passed", "failed", "skipped"]
    """skipped is no failure: there was nothing to ask without starting a node, or no device free."""
    says: str
    """One line."""
    resource: str
    """What the pod asked for."""
    image: str
    """What it ran."""
    node: str
    """Where it ran; empty when it did not."""
    output: list[str]
    """What nvidia-smi -L wrote."""
    findings: list[Finding]
    """What is wrong with that."""


class NodeProof(TypedDict):
    """One node: devices by resource name."""

    node: str
    """Its name."""
    expected: dict[str, int]
    """Promised."""
    allocatable: dict[str, int]
    """Seen."""
    findings: list[Finding]
    """What is missing on it."""
    checks: list[Check]
    """What else was compared."""


class Proof(TypedDict):
    """What the live nodes of a pool show."""

    status: Literal["proven", "waiting", "broken", "empty", "unmanaged"]
    """empty: no nodes, as the bounds allow, in a cluster that is ready for them; unmanaged: the nodes are as declared,
    and no device is due, because the spec leaves the device plugin to others."""
    summary: str
    """One line."""
    expected: dict[str, list[int]]
    """Resource -> devices promised by the fewest and by the most nodes."""
    allocatable: dict[str, int]
    """Resource -> devices seen on all nodes."""
    nodes: list[NodeProof]
    """Each node."""
    findings: list[Finding]
    """What is missing of the pool as a whole."""
    probe: Probe | None
    """What a pod saw; null when none was asked for."""


class PoolOutcome(TypedDict):
    """What became of one pool."""

    pool: str
    """Name in the spec."""
    name: str
    """The cloud's name."""
    outcome: Literal["done", "unchanged", "started", "unknown", "differs", "failed", "not-attempted"]
    """started: the cloud has taken it and goes on, and its end was not waited for; unknown: the run ended while a call
    was in flight, which the cloud may have taken or not; differs: is ours, unlike the spec, and was left alone;
    not-attempted: no request that changes it was sent."""
    message: str
    """One line."""
    changes: list[Change]
    """Differences: those that were made, or that were left alone."""
    proof: Proof | None
    """What the nodes show; null when it was not looked at."""
    error: list[Diagnostic] | None
    """Why it failed, or is not waited for any longer, with the remedy."""
    resume: str
    """Command that takes it up again; empty when there is nothing to resume."""
    tolerations: list[Toleration]
    """Of a pool that was made or adopted: what pods that ask for its devices need and nothing adds for them."""


class ClusterOutcome(TypedDict):
    """What became of one cluster."""

    cluster: str
    """Key in the spec."""
    release: str
    """One line on the Helm release; empty when it was not looked at."""
    error: list[Diagnostic] | None
    """What stopped the work on the cluster: before any pool was touched, or after all were done."""
    pools: list[PoolOutcome]
    """In the order of the spec."""


class ReportDocument(TypedDict):
    """What a command did."""

    schemaVersion: Literal[2]
    """The meaning of a key never changes within a version; new keys may come. 2 since outcomes can be unknown."""
    kind: ReportKind
    """The command."""
    exitCode: int
    """Of the process, unless it was interrupted (130)."""
    summary: dict[str, int]
    """Pools by outcome; outcomes that no pool has are left out."""
    clusters: list[ClusterOutcome]
    """In the order of the spec."""
    shard: NotRequired[ShardPart]
    """Which part of a fleet this is; only of a run with --shard."""
    merged: NotRequired[MergedPart]
    """Of which shards this was put together; only of what `report merge` writes."""
    scope: NotRequired[ScopePart]
    """What the run was of."""


class ValidationDocument(TypedDict):
    """What is to be said about specs without any cloud."""

    schemaVersion: Literal[1]
    """The meaning of a key never changes within a version; new keys may come."""
    kind: Literal["Validation"]
    """`validate`."""
    valid: bool
    """Whether there are no errors."""
    clusters: int
    """Declared."""
    pools: int
    """Declared, counted once per cluster; where there are errors, those that have none."""
    errors: list[Diagnostic]
    """What cannot work; with --strict also what would be warnings."""
    warnings: list[Diagnostic]
    """What may be meant otherwise."""
    hints: list[Diagnostic]
    """What works and costs more than it has to."""
    silenced: list[SilencedPart]
    """Warnings and hints that the spec accepts."""
    files: list[str]
    """Files that were read, as they were named; - for standard input."""


class LintDocument(TypedDict):
    """What is found in manifests of workloads."""

    schemaVersion: Literal[1]
    """The meaning of a key never changes within a version; new keys may come."""
    kind: Literal["Lint"]
    """`workload lint`."""
    valid: bool
    """Whether there are no errors."""
    manifests: int
    """Kubernetes objects, those of lists included."""
    templates: int
    """Pod templates in them."""
    resources: int
    """Limits and requests of NVIDIA's resources in them that are outside of pod templates."""
    notJudged: list[str]
    """Objects that name devices where no rule knows what they mean, with those names."""
    errors: list[Diagnostic]
    """What is refused or can never run; with --strict also what would be warnings."""
    warnings: list[Diagnostic]
    """What probably fails, or costs more than is meant."""
    hints: list[Diagnostic]
    """What works and could be better."""
    silenced: list[SilencedPart]
    """What comments and annotations of the manifests accept."""
    files: list[str]
    """Files that were read, as they were named; - for standard input."""


class EventDocument(TypedDict):
    """One line of the event log."""

    schemaVersion: Literal[1]
    """The meaning of a key never changes within a version; new keys may come."""
    kind: Literal["Event"]
    """Always this."""
    at: str
    """RFC 3339, UTC, milliseconds."""
    cluster: str
    """Key in the spec."""
    pool: str | None
    """Name in the spec; null when it concerns the whole cluster."""
    phase: str
    """Where the work is: check, release, create, update, delete, wait, verify, done, failed; others may come."""
    message: str
    """One line."""
