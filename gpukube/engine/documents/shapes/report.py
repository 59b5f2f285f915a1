"""The shape of reports on what was done, of results of validate, and of lines of the event log."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from gpukube.engine.documents.shapes.parts import (  # noqa: TC001 - the schema generator reads these at run time
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
    """Name of the step."""
    weight: Literal["note", "waiting", "broken"]
    """note: harmless; waiting: usually passes on its own; broken: does not."""
    seen: str
    """What was observed."""
    means: str
    """The usual cause; empty if obvious."""
    fix: str
    """Command to run; empty if waiting is enough."""


class Check(TypedDict):
    """A comparison on a node: expected and observed value."""

    what: str
    """Human-readable subject: a label, a taint, a condition, a pod."""
    expected: str
    """Expected value; empty for absent."""
    seen: str
    """Observed value; empty for absent."""
    holds: bool
    """Whether they match; a mismatch need not be a problem."""


class Probe(TypedDict):
    """Result of a pod with one device of the pool."""

    status: Literal["passed", "failed", "skipped"]
    """skipped is not a failure: the probe would have started a node, or no device was free."""
    says: str
    """One line."""
    resource: str
    """Resource that the pod requested."""
    image: str
    """Image that it ran."""
    node: str
    """Node that it ran on; empty if it did not run."""
    output: list[str]
    """Output of nvidia-smi -L."""
    findings: list[Finding]
    """Problems with the output."""


class NodeProof(TypedDict):
    """One node: devices by resource name."""

    node: str
    """Name of the node."""
    expected: dict[str, int]
    """Promised."""
    allocatable: dict[str, int]
    """Seen."""
    findings: list[Finding]
    """Steps that are missing on it."""
    checks: list[Check]
    """Other comparisons."""


class Proof(TypedDict):
    """State of the live nodes of a pool."""

    status: Literal["proven", "waiting", "broken", "empty", "unmanaged", "no-fabric"]
    """empty: no nodes, within bounds, in a cluster that is ready for them; unmanaged: the nodes are as declared, and no
    device is expected, because the spec leaves the device plugin to others; no-fabric: pods cannot use the
    fast network of the spec until something is installed, the rest is as declared."""
    summary: str
    """One line."""
    expected: dict[str, list[int]]
    """Resource -> devices expected with the minimum and with the maximum number of nodes."""
    allocatable: dict[str, int]
    """Resource -> devices observed on all nodes."""
    nodes: list[NodeProof]
    """Each node."""
    findings: list[Finding]
    """Steps that are missing for the pool as a whole."""
    probe: Probe | None
    """Result of the probe; null if none was requested."""


class PoolOutcome(TypedDict):
    """Outcome of one pool."""

    pool: str
    """Name in the spec."""
    name: str
    """The cloud's name."""
    outcome: Literal["done", "unchanged", "started", "unknown", "differs", "failed", "not-attempted"]
    """started: the cloud accepted the request and continues, but the run did not wait; unknown: the run ended during
    a call that the cloud may or may not have processed; differs: gpukube's pool differs from the spec, but was not
    changed; not-attempted: no request that changes it was sent."""
    message: str
    """One line."""
    changes: list[Change]
    """Differences that were applied, or that remain."""
    proof: Proof | None
    """State of the nodes; null if they were not read."""
    error: list[Diagnostic] | None
    """Why it failed, or why the run stopped waiting, with the fix."""
    resume: str
    """Command that resumes it; empty if there is nothing to resume."""
    tolerations: list[Toleration]
    """For a created or adopted pool: tolerations that pods requesting its devices need and that nothing adds."""


class ClusterOutcome(TypedDict):
    """Outcome of one cluster."""

    cluster: str
    """Key in the spec."""
    release: str
    """One line on the Helm release; empty if it was not read."""
    error: list[Diagnostic] | None
    """What stopped the work on the cluster: before any pool was changed, or after all were done."""
    pools: list[PoolOutcome]
    """Pools in the order of the spec."""


class ReportDocument(TypedDict):
    """Result of a command."""

    schemaVersion: Literal[2]
    """The meaning of a key never changes within a version; new keys may come. 2 because outcomes can be unknown."""
    kind: ReportKind
    """The command."""
    exitCode: int
    """Exit code of the process, unless it was interrupted (130)."""
    summary: dict[str, int]
    """Pools by outcome; outcomes without pools are omitted."""
    clusters: list[ClusterOutcome]
    """Clusters in the order of the spec."""
    shard: NotRequired[ShardPart]
    """Part of a fleet that this covers; only in a run with --shard."""
    merged: NotRequired[MergedPart]
    """Shards that this was merged from; only in output of `report merge`."""
    scope: NotRequired[ScopePart]
    """What the run covered."""


class ValidationDocument(TypedDict):
    """Findings on specs, without any cloud."""

    schemaVersion: Literal[1]
    """The meaning of a key never changes within a version; new keys may come."""
    kind: Literal["Validation"]
    """`validate`."""
    valid: bool
    """Whether there are no errors."""
    clusters: int
    """Declared."""
    pools: int
    """Declared pools, counted once per cluster; if there are errors, those without errors."""
    errors: list[Diagnostic]
    """What cannot work; with --strict also warnings."""
    warnings: list[Diagnostic]
    """What may be unintended."""
    hints: list[Diagnostic]
    """What works but costs more than necessary."""
    silenced: list[SilencedPart]
    """Warnings and hints that the spec accepts."""
    files: list[str]
    """Files that were read, as named on the command line; - for standard input."""


class LintDocument(TypedDict):
    """Findings in workload manifests."""

    schemaVersion: Literal[1]
    """The meaning of a key never changes within a version; new keys may come."""
    kind: Literal["Lint"]
    """`workload lint`."""
    valid: bool
    """Whether there are no errors."""
    manifests: int
    """Kubernetes objects, including those in lists."""
    templates: int
    """Pod templates in them."""
    resources: int
    """Limits and requests of NVIDIA resources outside of pod templates."""
    notJudged: list[str]
    """Objects with device names that no rule can interpret, with those names."""
    errors: list[Diagnostic]
    """What is rejected or can never run; with --strict also warnings."""
    warnings: list[Diagnostic]
    """What probably fails, or costs more than intended."""
    hints: list[Diagnostic]
    """What works but could be better."""
    silenced: list[SilencedPart]
    """Findings that comments and annotations of the manifests accept."""
    files: list[str]
    """Files that were read, as named on the command line; - for standard input."""


class EventDocument(TypedDict):
    """One line of the event log."""

    schemaVersion: Literal[1]
    """The meaning of a key never changes within a version; new keys may come."""
    kind: Literal["Event"]
    """Always Event."""
    at: str
    """RFC 3339, UTC, milliseconds."""
    cluster: str
    """Key in the spec."""
    pool: str | None
    """Name in the spec; null if it concerns the whole cluster."""
    phase: str
    """Phase of the work: check, release, create, update, delete, wait, verify, done, failed; others may come."""
    message: str
    """One line."""
