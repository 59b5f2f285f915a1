"""The shape of plans and diffs."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from gpukube.engine.documents.shapes.parts import (  # noqa: TC001 - the schema generator reads these at run time
    Change,
    Diagnostic,
    FamilyPart,
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
    """What is lost if a pool is replaced or deleted, or disrupted by a change."""

    nodes: int | None
    """Live nodes that are deleted or disrupted; null if neither the cloud nor the cluster reports the number."""
    of: int | None
    """Live nodes among which the cloud chooses those; null if all are affected, or the number is unknown."""
    gpus: float | None
    """Physical GPUs on them; null if the machine is not in the catalog."""
    pods: list[str] | None
    """Running pods that would move, namespace/name, without those of DaemonSets; with `of`, those of all nodes, some of
    which stay. null if unknown."""


class Devices(TypedDict):
    """Devices by resource name (nvidia.com/gpu, nvidia.com/mig-1g.5gb), before and after."""

    now: dict[str, int] | None
    """Allocatable on the live nodes; null if the inside of the cluster is unknown."""
    perNode: dict[str, int]
    """Expected on each node; empty for a pool that is deleted."""
    min: dict[str, int]
    """Expected with the minimum number of nodes."""
    max: dict[str, int]
    """Expected with the maximum number of nodes."""


class Fidelity(TypedDict):
    """How a cloud implements a feature that it does not support exactly as declared."""

    fidelity: Literal["exact", "emulated", "missing"]
    """emulated: with a substitute."""
    substitute: str
    """The substitute."""
    reason: str
    """Why."""


class LiveState(TypedDict):
    """The live pool as its cloud reports it."""

    status: str
    """Status as the cloud spells it."""
    state: Literal["ready", "busy", "failed", "deleting"]
    """The same in gpukube's terms."""
    failure: str
    """The cloud's last failure message; empty if there is none."""
    nodes: int | None
    """Current number of nodes; null if the cloud does not report it."""
    size: NodeRange | None
    """Live size: the bounds of its autoscaler, or the fixed number; null if the cloud does not report it."""
    zones: list[str]
    """Zones of the pool; empty if the cloud does not report them."""
    instanceType: str
    """Type as the cloud spells it; empty if it does not report it."""
    gpu: GpuModel | None
    """GPUs of each node; null if the machine is not in the catalog."""
    owner: str
    """Owner according to its label; empty if it has none."""
    protected: bool
    """Whether the live label forbids replacing and deleting it."""


class HealthFinding(TypedDict):
    """Something about live nodes that differs from what is expected."""

    where: str
    """Node or object."""
    step: str
    """The step that is missing."""
    weight: Literal["note", "waiting", "broken"]
    """note: harmless; waiting: usually passes on its own; broken: does not."""
    seen: str
    """What was observed."""
    fix: str
    """Command to run; empty if waiting is enough."""


class Health(TypedDict):
    """Health of live nodes. Shown, but never a difference: nodes boot and reboot; `pool verify` checks them."""

    status: Literal["well", "waiting", "broken"]
    """waiting: usually passes on its own; broken: does not."""
    findings: list[HealthFinding]
    """What differs from what is expected."""


class PoolPart(TypedDict):
    """What would happen to one pool."""

    pool: str
    """Name in the spec, or according to the live label of a pool that is deleted."""
    name: str
    """The cloud's name."""
    action: Literal["create", "update", "replace", "delete", "no-op", "adopt", "conflict", "standby"]
    """What would happen; conflict: gpukube does not touch what is in the way."""
    why: str
    """One line, also for no-op."""
    needs: list[str]
    """Flags that `pool apply` requires for this action."""
    declared: Position | None
    """Position of the pool in the spec."""
    instanceType: str | None
    """Type as the cloud spells it; null if unknown."""
    gpu: GpuModel | None
    """GPUs of each node; null if the machine is not in the catalog."""
    nodes: NodeRange | None
    """Declared size; null for a pool that is deleted."""
    zones: list[str]
    """Declared zones; empty for the cloud's choice."""
    devices: Devices
    """Devices before and after."""
    driver: str | None
    """Who installs the driver; null for a pool that is deleted."""
    devicePlugin: str | None
    """Who advertises nvidia.com/* on the nodes; null for a pool that is deleted."""
    managed: bool
    """Whether gpukube ensures that the nodes advertise GPUs; false if the spec leaves the plugin to others: no device
    is expected then."""
    configEntry: str | None
    """Key of the plugin configuration; empty if the advertiser is not gpukube's."""
    ownership: str | None
    """Why driver and plugin have these owners."""
    tolerations: list[Toleration]
    """Tolerations that pods requesting its devices need and that nothing adds; empty for a pool that is deleted."""
    fidelity: dict[str, Fidelity]
    """Features of this pool that its cloud does not support exactly, by name."""
    live: LiveState | None
    """The live pool; null if there is none."""
    loss: Loss | None
    """What is lost; null for actions that lose nothing."""
    leaving: LeavingPart | None
    """Forecast for draining the live nodes; null if no pool is replaced, or the cluster was not read."""
    price: PoolPricePart | None
    """List prices per hour, before and after; null for a pool of another owner."""
    changes: list[Change]
    """Fields that differ."""
    replacement: ReplacementPart | None
    """How a second pool would replace it; null for actions other than replace."""
    duration: Duration | None
    """Estimated duration; null if nothing happens to it, and in a Diff."""
    health: Health | None
    """Health of live nodes; null if there is nothing to compare, or if the expectation itself changes."""
    requests: list[Request]
    """The exact calls, in order."""
    diagnostics: list[Diagnostic]
    """Warnings, and the errors that would stop the run."""
    upgrades: Upgrades | None
    """What is newer than the live nodes; null if nothing newer was read."""
    family: NotRequired[FamilyPart]
    """Its place in its family; absent for a pool without alternatives."""


class UnplannedPool(TypedDict):
    """A declared pool of a cluster that could not be planned: only data from the spec."""

    pool: str
    """Name in the spec."""
    name: str
    """The cloud's name."""
    declared: Position | None
    """Position of the pool in the spec."""
    instanceType: str
    """Type as the cloud spells it."""
    gpu: GpuModel | None
    """GPUs of each node."""
    nodes: NodeRange
    """Declared size."""
    zones: list[str]
    """Declared zones; empty for the cloud's choice."""
    managed: bool
    """See PoolPart."""
    devices: Devices
    """Devices that it would have; `now` is null."""


class ValueChange(TypedDict):
    """One chart value that differs."""

    path: str
    """Dotted."""
    old: object
    """Live value; null if absent."""
    new: object
    """Desired value; null if absent."""


class Drift(TypedDict):
    """A field of an object in the cluster that differs from what the release created."""

    object: str
    """Kind and name."""
    field: str
    """Dotted path, list items by their key; empty if the whole object is missing."""
    old: object
    """Live value; null if absent."""
    new: object
    """Value that the release created; null if it created none."""


class Release(TypedDict):
    """A Helm release of a cluster."""

    action: Literal["install", "upgrade", "none", "conflict", "unknown"]
    """What would happen to it."""
    why: str
    """One line, also for none."""
    name: str
    """Name of the release."""
    namespace: str
    """Namespace of the release."""
    chart: str
    """Name of the chart."""
    version: str
    """Chart version afterwards."""
    entries: list[str]
    """Plugin configurations afterwards, by key; the DRA driver has none."""
    changes: list[ValueChange]
    """Values that differ."""
    drift: list[Drift]
    """Objects of the release that were changed or deleted by hand, and would be restored."""


class NodeRepair(TypedDict):
    """A label or taint of a live node that differs from the spec, and would be restored."""

    node: str
    """Name of the node."""
    pool: str
    """Name of the pool in the spec."""
    field: str
    """Field, named like those of pools: labels[team], taints[dedicated:NoSchedule]."""
    old: str | None
    """Value on the node; null if absent."""
    new: str
    """Declared."""


class Order(TypedDict):
    """An object that tells the cluster's autoscaler in which order to try the pools of autoscaled families."""

    object: str
    """Kind, namespace and name."""
    action: Literal["create", "update", "none", "foreign"]
    """foreign: it is not gpukube's, and stays as it is."""
    why: str
    """One line, also for none."""
    families: list[str]
    """Names of the families."""
    content: list[str]
    """The lines of its text afterwards; for a foreign object those that it lacks."""


class Undeclared(TypedDict):
    """A live pool of the same owner that the spec does not declare."""

    name: str
    """The cloud's name."""
    pool: str
    """Name according to its label."""
    owner: str
    """Owner according to its label."""
    needs: list[str]
    """Flags that `pool apply` needs to delete it."""


class ClusterPart(TypedDict):
    """One cluster."""

    cluster: str
    """Key in the spec."""
    provider: str
    """Cloud."""
    name: str
    """The cloud's name."""
    kubernetesVersion: str | None
    """Version of the control plane; null if it could not be read, like the next two."""
    location: str | None
    """Region or zone."""
    status: str | None
    """Status as the cloud spells it."""
    error: list[Diagnostic] | None
    """Why it could not be planned at all."""
    unknown: str
    """Why the inside of the cluster is unknown; empty if it is known. Nothing is planned there if it is unknown."""
    release: Release | None
    """The Helm release of the device plugin or the GPU Operator; null if the inside of the cluster is unknown."""
    draRelease: Release | None
    """The Helm release of NVIDIA's DRA driver; null if the cluster neither needs nor has it, or it is unknown."""
    nodeRepairs: list[NodeRepair]
    """Labels and taints of nodes that drifted."""
    orders: NotRequired[list[Order]]
    """Objects with the order of autoscaled families, for the autoscaler; absent without such families."""
    pools: list[PoolPart]
    """Declared pools, then those to delete."""
    unplanned: list[UnplannedPool]
    """Declared pools with data from the spec only, because the cluster could not be planned."""
    undeclared: list[Undeclared]
    """Live pools of this owner that are not declared, and stay."""
    duration: Duration | None
    """Estimated duration for its pools; null if nothing happens to them, and in a Diff."""
    quotas: list[Quota]
    """Cloud quotas that its pools need more of; empty if none is needed, and in a Diff, which reads none."""
    diagnostics: list[Diagnostic]
    """Findings that concern more than one pool."""


class GpuSum(TypedDict):
    """Physical GPUs of the pools of this plan."""

    before: float | None
    """On live nodes; null if a count or machine is unknown, or a cluster could not be read."""
    min: float
    """Afterwards, with the minimum number of nodes."""
    max: float
    """Afterwards, with the maximum number of nodes."""


class Summary(TypedDict):
    """Totals."""

    actions: dict[str, int]
    """Pools by action; actions without pools are omitted."""
    unplanned: int
    """Declared pools of clusters that could not be planned; not counted elsewhere."""
    releases: dict[str, int]
    """Releases by action, without none and unknown."""
    nodeRepairs: int
    """Drifted labels and taints of nodes."""
    undeclared: int
    """Live pools of the owner that are not declared."""
    clusters: int
    """Clusters that were read."""
    clustersFailed: int
    """Clusters that could not be planned."""
    clustersUnknown: int
    """Clusters whose inside is unknown."""
    duration: Duration | None
    """Duration of the slowest cluster: clusters do not wait for each other. null as for clusters."""
    gpus: GpuSum
    """Physical GPUs, without pools of other owners."""
    price: PriceSum
    """List prices per hour, before and after."""


class PlanDocument(TypedDict):
    """What would happen (kind Plan), or what differs between declared and live (kind Diff)."""

    schemaVersion: Literal[1]
    """The meaning of a key never changes within a version; new keys may come."""
    kind: Literal["Plan", "Diff"]
    """Plan: `pool plan`; Diff: `pool plan diff`."""
    differs: bool
    """Whether anything declared differs from what is live, including inside the clusters as far as known."""
    summary: Summary
    """Totals."""
    clusters: list[ClusterPart]
    """Clusters in the order of the spec."""
    notRead: list[str]
    """Keys of clusters in the spec that have no pool of this plan: they were not read."""
    warnings: list[Diagnostic]
    """Findings on the spec itself."""
    silenced: list[SilencedPart]
    """Findings that the spec accepts."""
    shard: NotRequired[ShardPart]
    """Part of a fleet that this covers; only in a run with --shard."""
    merged: NotRequired[MergedPart]
    """Shards that this was merged from; only in output of `report merge`."""
    scope: NotRequired[ScopePart]
    """What the run covered."""
