"""The shape of plans and diffs."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from gpukube.engine.documents.shapes.parts import (  # noqa: TC001 - schemas are made of these when that tool runs
    Change,
    Diagnostic,
    GpuModel,
    MergedPart,
    NodeRange,
    Position,
    Request,
    ScopePart,
    ShardPart,
    SilencedPart,
    Toleration,
)
from gpukube.engine.documents.shapes.plan_parts import (  # noqa: TC001 - as above
    Duration,
    LeavingPart,
    Quota,
    ReplacementPart,
    Upgrades,
)
from gpukube.engine.documents.shapes.prices import PoolPricePart, PriceSum  # noqa: TC001 - as above


class Loss(TypedDict):
    """What goes away with a pool that is replaced or deleted, or suffers from a disruptive change."""

    nodes: int | None
    """Live nodes that go or suffer; null when neither the cloud nor the cluster says how many there are."""
    of: int | None
    """Live nodes among which the cloud chooses those; null when all are meant, or their number is not known."""
    gpus: float | None
    """Physical GPUs on them; null when the machine is not in the catalog."""
    pods: list[str] | None
    """Running pods that would be moved, namespace/name, those of DaemonSets left out; with `of` those of all nodes,
    some of which stay. null when not known."""


class Devices(TypedDict):
    """Devices by resource name (nvidia.com/gpu, nvidia.com/mig-1g.5gb), before and after."""

    now: dict[str, int] | None
    """Allocatable on the live nodes; null when the inside of the cluster is not known."""
    perNode: dict[str, int]
    """Promised by each node; empty for a pool that is deleted."""
    min: dict[str, int]
    """Promised by the fewest nodes."""
    max: dict[str, int]
    """Promised by the most nodes."""


class Fidelity(TypedDict):
    """How a cloud does a feature that it does not do exactly as declared."""

    fidelity: Literal["exact", "emulated", "missing"]
    """emulated: by a substitute."""
    substitute: str
    """What stands in."""
    reason: str
    """Why."""


class LiveState(TypedDict):
    """The live pool as its cloud sees it."""

    status: str
    """The cloud's own word."""
    state: Literal["ready", "busy", "failed", "deleting"]
    """The same in ours."""
    failure: str
    """The cloud's last failure message; empty when there is none."""
    nodes: int | None
    """Present count; null when the cloud does not say."""
    size: NodeRange | None
    """Its own size: the bounds of its autoscaler, or the fixed number; null when the cloud does not say."""
    zones: list[str]
    """Its zones; empty when the cloud does not say."""
    instanceType: str
    """The cloud's name; empty when it does not say."""
    gpu: GpuModel | None
    """GPUs of each node; null when the machine is not in the catalog."""
    owner: str
    """Owner by its mark; empty when it has none."""
    protected: bool
    """Whether the live mark refuses replace and delete."""


class HealthFinding(TypedDict):
    """Something about live nodes that is not as promised."""

    where: str
    """Node or object."""
    step: str
    """Which step is missing."""
    weight: Literal["note", "waiting", "broken"]
    """note: hinders nothing; waiting: usually passes by itself; broken: does not."""
    seen: str
    """What was seen."""
    fix: str
    """What to run; empty when waiting is all there is to do."""


class Health(TypedDict):
    """Live nodes against the promise. Shown, never a difference: nodes boot and reboot; `pool verify` judges them."""

    status: Literal["well", "waiting", "broken"]
    """waiting: usually passes by itself; broken: does not."""
    findings: list[HealthFinding]
    """What is not as promised."""


class PoolPart(TypedDict):
    """What would happen to one pool."""

    pool: str
    """Name in the spec, or the live mark of a pool that is deleted."""
    name: str
    """The cloud's name."""
    action: Literal["create", "update", "replace", "delete", "no-op", "adopt", "conflict"]
    """What would happen; conflict: something stands in the way that gpukube does not touch."""
    why: str
    """One line, for no-op too."""
    needs: list[str]
    """Flags without which `pool apply` refuses this action."""
    declared: Position | None
    """Where the spec declares the pool."""
    instanceType: str | None
    """The cloud's name; null when it is not known."""
    gpu: GpuModel | None
    """GPUs of each node; null when the machine is not in the catalog."""
    nodes: NodeRange | None
    """Declared size; null for a pool that is deleted."""
    zones: list[str]
    """Declared zones; empty: the cloud's choice."""
    devices: Devices
    """Devices before and after."""
    driver: str | None
    """Who installs the driver; null for a pool that is deleted."""
    devicePlugin: str | None
    """Who advertises nvidia.com/* on the nodes; null for a pool that is deleted."""
    managed: bool
    """Whether gpukube sees to it that the nodes advertise GPUs; false where the spec leaves the plugin to others: no
    device is promised then."""
    configEntry: str | None
    """Key of the plugin configuration; empty when the advertiser is not ours."""
    ownership: str | None
    """Why driver and plugin are owned so."""
    tolerations: list[Toleration]
    """What pods that ask for its devices need and nothing adds for them; empty for a pool that is deleted."""
    fidelity: dict[str, Fidelity]
    """Features of this pool that its cloud does not do exactly, by name."""
    live: LiveState | None
    """The pool as it lives; null when nothing is there."""
    loss: Loss | None
    """What it costs; null for actions that cost nothing."""
    leaving: LeavingPart | None
    """What the drain of the live nodes would meet; null where no pool is replaced, or the cluster was not read."""
    price: PoolPricePart | None
    """List prices per hour, before and after; null for a pool that is not ours."""
    changes: list[Change]
    """Fields that differ."""
    replacement: ReplacementPart | None
    """How a second pool would take its place; null for other actions than replace."""
    duration: Duration | None
    """How long it would take, an estimate; null where nothing happens to it, and in a Diff."""
    health: Health | None
    """Live nodes against the promise; null when there is nothing to compare, or the promise itself changes."""
    requests: list[Request]
    """The exact calls, in order."""
    diagnostics: list[Diagnostic]
    """Warnings, and the errors that would stop the run."""
    upgrades: Upgrades | None
    """What is newer for the live nodes; null when nothing is, as far as was read."""


class UnplannedPool(TypedDict):
    """A declared pool of a cluster that could not be planned: what the spec alone tells."""

    pool: str
    """Name in the spec."""
    name: str
    """The cloud's name."""
    declared: Position | None
    """Where the spec declares it."""
    instanceType: str
    """The cloud's name."""
    gpu: GpuModel | None
    """GPUs of each node."""
    nodes: NodeRange
    """Declared size."""
    zones: list[str]
    """Declared zones; empty: the cloud's choice."""
    managed: bool
    """As of pools that could be planned."""
    devices: Devices
    """Devices that it would have; `now` is null."""


class ValueChange(TypedDict):
    """One chart value that differs."""

    path: str
    """Dotted."""
    old: object
    """Live; null where it is absent."""
    new: object
    """Wanted; null where it is absent."""


class Drift(TypedDict):
    """One field of an object in the cluster that is not as the release made it."""

    object: str
    """Kind and name."""
    field: str
    """Dotted, items of lists by their key; empty when the whole object is gone."""
    old: object
    """Live; null where it is absent."""
    new: object
    """As the release made it; null where it made none."""


class Release(TypedDict):
    """The one Helm release of a cluster."""

    action: Literal["install", "upgrade", "none", "conflict", "unknown"]
    """What would happen to it."""
    why: str
    """One line, for none too."""
    name: str
    """Of the release."""
    namespace: str
    """Where it is."""
    chart: str
    """Name of the chart."""
    version: str
    """Chart version after."""
    entries: list[str]
    """Plugin configurations after, by key."""
    changes: list[ValueChange]
    """Values that differ."""
    drift: list[Drift]
    """Objects of the release that were changed by hand or are gone, and would be restored."""


class NodeRepair(TypedDict):
    """One label or taint of a live node that is not as declared, and would be set again."""

    node: str
    """Name of the node."""
    pool: str
    """Pool, as the spec names it."""
    field: str
    """As fields of pools are named: labels[team], taints[dedicated:NoSchedule]."""
    old: str | None
    """On the node; null where it is not there."""
    new: str
    """Declared."""


class Undeclared(TypedDict):
    """A live pool of the same owner that the spec does not declare."""

    name: str
    """The cloud's name."""
    pool: str
    """By its mark."""
    owner: str
    """By its mark."""
    needs: list[str]
    """Flags with which `pool apply` would delete it."""


class ClusterPart(TypedDict):
    """One cluster."""

    cluster: str
    """Key in the spec."""
    provider: str
    """Cloud."""
    name: str
    """The cloud's name."""
    kubernetesVersion: str | None
    """Of the control plane; null when it could not be asked, as the next two."""
    location: str | None
    """Region or zone."""
    status: str | None
    """The cloud's own word."""
    error: list[Diagnostic] | None
    """Why it could not be planned at all."""
    unknown: str
    """Why its inside is not known; empty when it is. Nothing is proposed there then."""
    release: Release | None
    """The Helm release; null when the inside is not known."""
    nodeRepairs: list[NodeRepair]
    """Labels and taints of nodes that drifted."""
    pools: list[PoolPart]
    """Declared pools, then those to delete."""
    unplanned: list[UnplannedPool]
    """Declared pools of which only the spec is known, because the cluster could not be planned."""
    undeclared: list[Undeclared]
    """Pools of this owner that are live and not declared, and stay."""
    duration: Duration | None
    """How long its pools would take, an estimate; null where nothing happens to them, and in a Diff."""
    quotas: list[Quota]
    """Quotas of the cloud that its pools need more of; empty where none is needed, and in a Diff, which reads none."""
    diagnostics: list[Diagnostic]
    """Findings that concern more than one pool."""


class GpuSum(TypedDict):
    """Physical GPUs of the pools of this plan."""

    before: float | None
    """On live nodes; null when a count or machine is not known, or a cluster could not be read."""
    min: float
    """After, with the fewest nodes."""
    max: float
    """After, with the most nodes."""


class Summary(TypedDict):
    """The whole in numbers."""

    actions: dict[str, int]
    """Pools by action; actions that no pool has are left out."""
    unplanned: int
    """Declared pools of clusters that could not be planned; counted nowhere else."""
    releases: dict[str, int]
    """Releases by action, none and unknown left out."""
    nodeRepairs: int
    """Drifted labels and taints of nodes."""
    undeclared: int
    """Live pools of the owner that are not declared."""
    clusters: int
    """Clusters looked at."""
    clustersFailed: int
    """Clusters that could not be planned."""
    clustersUnknown: int
    """Clusters whose inside is not known."""
    duration: Duration | None
    """Of the cluster that would take longest: clusters do not wait for each other. null as there."""
    gpus: GpuSum
    """Physical GPUs; pools that are not ours left out."""
    price: PriceSum
    """List prices per hour, before and after."""


class PlanDocument(TypedDict):
    """What would happen (kind Plan), or what differs between declared and live (kind Diff)."""

    schemaVersion: Literal[1]
    """The meaning of a key never changes within a version; new keys may come."""
    kind: Literal["Plan", "Diff"]
    """Plan: `pool plan`; Diff: `pool plan diff`."""
    differs: bool
    """Whether anything declared differs from what is live, inside the clusters too where that is known."""
    summary: Summary
    """The whole in numbers."""
    clusters: list[ClusterPart]
    """In the order of the spec."""
    notRead: list[str]
    """Clusters of the spec that no pool of this plan is on, by key: they were not called."""
    warnings: list[Diagnostic]
    """Findings on the spec itself."""
    silenced: list[SilencedPart]
    """Findings that the spec accepts."""
    shard: NotRequired[ShardPart]
    """Which part of a fleet this is; only of a run with --shard."""
    merged: NotRequired[MergedPart]
    """Of which shards this was put together; only of what `report merge` writes."""
    scope: NotRequired[ScopePart]
    """What the run was of."""
