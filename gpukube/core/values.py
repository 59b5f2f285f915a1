"""Values passed between packages: desired and live pools, changes, and requests.

In scope: frozen dataclasses with at most small derived properties. Out of scope: code that computes them (see resolve,
owners, diff, plan), and anything that knows a cloud.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, cast

from gpukube.errors import Where

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from gpukube.core.drain_forecast import DrainForecast
    from gpukube.core.fabric import Fabric
    from gpukube.core.fields import FieldPath
    from gpukube.core.members import Chosen
    from gpukube.core.upgrades import UpgradeOutlook
    from gpukube.errors import Finding, GpukubeError
    from gpukube.gpu.catalog import Machine
    from gpukube.gpu.sharing import Sharing

OWNER_LABEL = "gpukube.io/owner"
"""Node label in the pool API: the spec's metadata.name. Labels, because all three clouds update them in place."""
POOL_LABEL = "gpukube.io/pool"
"""Node label in the pool API: the pool's name in the spec (a cloud name may differ)."""
PROTECT_LABEL = "gpukube.io/protect"
"""Node label in the pool API: "true" refuses delete and replace; read from the live pool, not from the spec."""
RELEASED_LABEL = "gpukube.io/released"
"""Node label in the pool API of a released pool: its name in its spec. It voids any copy of the marks."""
FAMILY_LABEL = "gpukube.io/family"
"""Node label in the pool API of a pool with alternatives, and of each of these: the name of the first of them."""
MARKS = (OWNER_LABEL, POOL_LABEL, PROTECT_LABEL, FAMILY_LABEL)
"""The labels that make a pool gpukube's."""

TaintEffect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
Action = Literal["create", "update", "replace", "delete", "no-op", "adopt", "conflict", "standby"]
"""standby: an alternative of a pool that is not needed now, because another one has the nodes or is tried first."""
FamilyRole = Literal["holder", "next", "standby", "leftover", "second"]
Advertiser = Literal["chart", "operator", "cloud", "dra", "none"]
Obstacle = Literal["foreign", "foreign-copy", "managed", "marks-lost", "not-ready"]
ReplaceHow = Literal["", "recreate", "surge"]
SurgeStep = Literal["create", "prove", "drain", "delete"]
PoolState = Literal["ready", "busy", "failed", "deleting"]
UpdateKind = Literal["in-place", "disruptive", "replace", "refused"]


@dataclass(frozen=True, slots=True, order=True)
class Taint:
    """A Kubernetes taint; `str()` is the usual key=value:Effect."""

    key: str
    value: str
    effect: TaintEffect

    def __str__(self) -> str:
        """Render as key=value:Effect, the form of kubectl and of the AKS API."""
        return f"{self.key}={self.value}:{self.effect}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse the output of `str()`; the effect is not checked."""
        pair, _, effect = text.rpartition(":")
        key, _, value = pair.partition("=")
        return cls(key, value, cast("TaintEffect", effect))


@dataclass(frozen=True, slots=True)
class Toleration:
    """A toleration of pods; `value` is "" with Exists."""

    key: str
    operator: Literal["Exists", "Equal"]
    value: str
    effect: TaintEffect


@dataclass(frozen=True, slots=True)
class Nodes:
    """The size of a pool, as pool totals.

    Attributes:
        count: Fixed size, or the initial size of an autoscaled pool.
        minimum: Minimum size; equals count if the size is fixed.
        maximum: Maximum size; equals count if the size is fixed.
        autoscaled: Whether the cloud's autoscaler owns the size.
        scope: Whether the autoscaler's bounds apply to the whole pool or to each zone; the numbers are totals in either
            case. Only clouds that support both compare it.
    """

    count: int
    minimum: int
    maximum: int
    autoscaled: bool
    scope: Literal["pool", "zone"] = "pool"


@dataclass(frozen=True, slots=True)
class Reservation:
    """Where reserved machines come from.

    Attributes:
        form: The cloud's form, named as in the spec; "flexStartQueued" for two forms combined.
        id: Id of the block, reservation, or group, as the cloud expects it; "" for forms without one.
        max_run_s: Maximum lifetime of a node in seconds; None for the cloud's limit.
    """

    form: str
    id: str = ""
    max_run_s: int | None = None


@dataclass(frozen=True, slots=True)
class Capacity:
    """How the machines are bought.

    Attributes:
        type: As in the spec.
        max_price: Maximum spot price, USD per hour; None for the market price.
        reservation: Reservation of reserved machines; None for others.
    """

    type: Literal["on-demand", "spot", "reserved"]
    max_price: float | None = None
    reservation: Reservation | None = None


@dataclass(frozen=True, slots=True)
class Upgrade:
    """How nodes are replaced, "1" or "33%"; None means the cloud's default."""

    max_surge: str | None = None
    max_unavailable: str | None = None


@dataclass(frozen=True, slots=True)
class Disk:
    """The node's system disk; None and "" mean the cloud's default.

    Attributes:
        size_gib: Size in GiB.
        type: The cloud's own name of the type.
        iops: Provisioned I/O operations per second.
        throughput: Provisioned MiB per second.
        encrypted: Whether it is encrypted.
        kms_key: The user's own key, by the cloud's own name.
    """

    size_gib: int | None
    type: str | None
    iops: int | None = None
    throughput: int | None = None
    encrypted: bool | None = None
    kms_key: str = ""


class Locator(Protocol):
    """Finds the position of a field in the user's file."""

    def at(self, path: str) -> Where:
        """Return the position of a field ("sharing.mig.profile"), or of its nearest parent in the file."""


@dataclass(frozen=True, slots=True)
class ClusterRef:
    """A cluster of the spec.

    Attributes:
        key: Its name inside the spec.
        provider: Provider name, "aks".
        name: The cloud's name of the cluster.
        identity: The other identifying fields, named as in the spec (subscription, resourceGroup, region, ...).
        kubeconfig: File to use instead of the cloud's own access; "" for the cloud's.
        context: Context inside that file.
        where: Position in the spec.
        places: Positions of its fields, by their names in the spec.
    """

    key: str
    provider: str
    name: str
    identity: Mapping[str, str]
    kubeconfig: str = ""
    context: str = ""
    where: Where = field(default_factory=lambda: Where("spec"), compare=False)
    places: Mapping[str, Where] = field(default_factory=dict, compare=False, repr=False)

    def at(self, name: str) -> Where:
        """Return the position of one of its fields; that of the cluster if the field is not in the file."""
        return self.places.get(name, self.where)


@dataclass(frozen=True, slots=True)
class Target:
    """One pool of the spec on one cluster, fully resolved but not yet translated.

    Attributes:
        owner: metadata.name of the spec.
        pool: Name of the pool in the spec.
        cluster: Its cluster.
        name: Name in the cloud's API.
        machine: Resolved instance type; the first, if the pool has several.
        image: The cloud's own name of a node image family; "" for its default.
        taints: Taints from the spec, including the GPU taint if gpu_taint is set.
        labels, tags: The user's own, without those that gpukube adds.
        native: The escape hatch of this provider, as written.
        locator: Finds the position of each field in the user's file.
        upgrade: How nodes are replaced.
        kubernetes_version: Kubernetes version of the nodes, "1.34" or more exact; "" for the cluster's.
        max_pods: Maximum pods per node; None for the cloud's default.
        driver_version: Driver version, on clouds that let users choose; "" for the default.
        chart_version: Version of the chart that serves the pool; "" for the tested one.
        chart_values: Additional values for that chart.
        machines: All instance types, in the order of the spec, if there are several; else ().
        high_speed: Whether the nodes have the machine's network for traffic between GPUs.
        placement: "compact", "none", the cloud's own name of a group or policy; "" for the cloud's default.
        local_storage: Use of the machine's own disks; "" for the cloud's default.
        kubelet: Settings of the kubelet, with the names of KubeletConfiguration.
        sysctls: Kernel parameters by name.
        hugepages: Size ("2Mi" or "1Gi") -> number of huge pages per node.
        confidential: Whether the machines' memory is encrypted.
        family: Name of the first pool of its family, a pool and its alternatives; "" for a pool of no family.
        rank: Its place among the pools of its family, in the order in which they are tried; 0 for the first.
        place: Whether the family is on each of its clusters or on one of them.
        turn: Place of its cluster among those of the pool, in the order of the spec; 0 for the first.
        max_hourly_price: Maximum price of all its nodes, USD per hour; None for any.
    """

    owner: str
    pool: str
    cluster: ClusterRef
    name: str
    machine: Machine
    nodes: Nodes
    capacity: Capacity
    zones: tuple[str, ...]
    disk: Disk
    image: str
    sharing: Sharing
    taints: tuple[Taint, ...]
    gpu_taint: bool
    labels: Mapping[str, str]
    tags: Mapping[str, str]
    protect: bool
    driver_owner: Literal["auto", "cloud", "operator", "none"]
    plugin_owner: Literal["auto", "helm", "operator", "cloud", "dra", "none"]
    native: Mapping[str, object]
    locator: Locator = field(compare=False, repr=False)
    upgrade: Upgrade = Upgrade()
    kubernetes_version: str = ""
    max_pods: int | None = None
    driver_version: str = ""
    chart_version: str = ""
    chart_values: Mapping[str, object] = field(default_factory=dict)
    machines: tuple[Machine, ...] = ()
    high_speed: bool = False
    placement: str = ""
    local_storage: Literal["", "ephemeral", "raw"] = ""
    kubelet: Mapping[str, object] = field(default_factory=dict)
    sysctls: Mapping[str, str] = field(default_factory=dict)
    hugepages: Mapping[str, int] = field(default_factory=dict)
    confidential: bool = False
    family: str = ""
    rank: int = 0
    place: Literal["all", "any"] = "all"
    turn: int = 0
    max_hourly_price: float | None = None

    @property
    def marks(self) -> dict[str, str]:
        """Its labels that never change, by which its live pool and its family are found."""
        family = {FAMILY_LABEL: self.family} if self.family else {}
        return {OWNER_LABEL: self.owner, POOL_LABEL: self.pool, **family}

    @property
    def all_machines(self) -> tuple[Machine, ...]:
        """Its instance types, in the order of the spec."""
        return self.machines or (self.machine,)

    @property
    def where(self) -> Where:
        """The pool as a resource, "train-aks/a100mig"."""
        return Where(f"{self.cluster.key}/{self.pool}")


@dataclass(frozen=True, slots=True)
class NodeStack:
    """What the nodes of a pool include before anything is installed in the cluster: the input of the ownership solver.

    Attributes:
        driver: "cloud" if the node image or the cloud installs the NVIDIA driver.
        advertiser: "cloud" if the cloud runs its own device plugin there.
        cut_by: What creates the MIG instances: "cloud" through a pool field, "operator" through its MIG manager,
            "none".
        source: Source of these facts.
        image: Human-readable cloud and image family, "EKS AL2023".
        no_operator: Why the GPU Operator cannot serve these nodes; "" if it can.
        no_driver: Why the GPU Operator cannot install a driver on these nodes; "" if it can.
        without_plugin: What to write to get nodes without the cloud's plugin; "" if that is impossible.
        runtime: Container runtime on the nodes that gives containers access to GPUs, for the operator's RuntimeClass.
        operator_values: Values of the operator's chart that these nodes need, by dotted path.
        fields: Dotted paths in the create request that cause this: "nodegroup.amiType". Other paths are omitted on
            purpose.
        no_dra: Why NVIDIA's DRA driver cannot serve these nodes; "" if it can.
        with_dra: What to write to get nodes that it can serve.
        dra_labels: Node labels that the DRA driver needs at creation in addition to gpukube's.
        dra_values: Values of the DRA driver's chart that these nodes need, by dotted path.
    """

    driver: Literal["cloud", "none"]
    advertiser: Literal["cloud", "none"]
    cut_by: Literal["cloud", "operator", "none"]
    source: str
    image: str = "these nodes"
    no_operator: str = ""
    no_driver: str = ""
    without_plugin: str = ""
    runtime: str = "nvidia"
    operator_values: Mapping[str, object] = field(default_factory=dict)
    fields: tuple[str, ...] = ()
    no_dra: str = ""
    with_dra: str = ""
    dra_labels: Mapping[str, str] = field(default_factory=dict)
    dra_values: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ownership:
    """The solver's result for one pool: who owns driver and plugin, and the settings that enforce it.

    Attributes:
        driver: Who installs the driver.
        advertiser: The one component that advertises nvidia.com/* on the nodes.
        config_key: Key of the plugin config that the nodes use; "" if gpukube's release is not the advertiser.
        labels: Node labels to set at creation.
        reason: One human-readable line.
        row: Name of the matching row of the solver's table; "" if none was looked up.
        values: Chart values that these nodes need in addition to the usual ones, by dotted path.
        operator_values: If the GPU Operator serves nodes of the DRA driver: values of the operator's chart, likewise;
            otherwise None.
    """

    driver: Literal["cloud", "operator", "none"]
    advertiser: Advertiser
    config_key: str
    labels: Mapping[str, str]
    reason: str
    row: str = ""
    values: Mapping[str, object] = field(default_factory=dict)
    operator_values: Mapping[str, object] | None = None

    @property
    def operated(self) -> bool:
        """Whether gpukube's GPU Operator serves the nodes: as their advertiser, or for driver or MIG beside DRA."""
        return self.advertiser == "operator" or self.operator_values is not None


@dataclass(frozen=True, slots=True)
class Promise:
    """What a pool will advertise: resource name -> devices per node, times the node range.

    Devices of the DRA driver have no resource name: "gpu.nvidia.com" stands for whole GPUs, and
    "mig.nvidia.com/<profile>" for MIG devices.
    """

    per_node: Mapping[str, int]
    nodes: Nodes

    def total(self, nodes: int) -> dict[str, int]:
        """Return the devices of a number of nodes."""
        return {name: count * nodes for name, count in self.per_node.items()}


@dataclass(frozen=True, slots=True)
class Request:
    """A native API call: the plan prints it, golden tests compare it, the client sends it.

    Attributes:
        service: Provider name, "aks".
        operation: The SDK's operation, "agent_pools.begin_create_or_update".
        params: JSON-like arguments, the body in the cloud's wire names.
    """

    service: str
    operation: str
    params: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class MarksCopy:
    """The second copy of a pool's marks, which survives a replacement of its labels (see `core.marks`).

    Attributes:
        owner, pool: As stored in the cloud's tags; values that tags cannot contain are hashed.
        protected: The protection mark.
    """

    owner: str
    pool: str
    protected: bool = False


@dataclass(frozen=True, slots=True)
class Desired:
    """A target translated to its cloud.

    Attributes:
        target: The resolved pool.
        ownership: Who owns driver and plugin.
        promise: What the nodes will advertise.
        fields: Normalized intent, flat, by paths such as ("nodes", "count") or ("labels", "team"). Compared with
            Observed.fields; a field that is absent here is left to the cloud.
        labels: Node labels as sent, including gpukube's.
        effective_taints: Taints that the nodes will have, including those that the cloud adds.
        create: The call that creates the pool.
        copy: The second copy of gpukube's marks as `create` writes it; None on a cloud without one.
        copy_is_fixed: Whether the cloud can write the copy only at creation.
        fabric: The nodes' network for traffic between GPUs, if the spec requests it.
        unchecked: What could not be checked when the live cluster completed it.
    """

    target: Target
    ownership: Ownership
    promise: Promise
    fields: Mapping[FieldPath, object]
    labels: Mapping[str, str]
    effective_taints: tuple[Taint, ...]
    create: Request
    copy: MarksCopy | None = None
    copy_is_fixed: bool = False
    fabric: Fabric | None = None
    unchecked: tuple[Finding, ...] = ()

    @property
    def managed(self) -> bool:
        """Whether gpukube ensures that the nodes advertise GPUs; False if the spec opts out."""
        return self.target.plugin_owner != "none"


@dataclass(frozen=True, slots=True)
class Observed:
    """A live pool.

    Attributes:
        name: The cloud's name.
        owner, pool: gpukube's marks, read from the live labels; "" if it has none.
        protected: The live protection mark; also true if the labels lost the marks but a second copy exists.
        state: "ready", "busy" (an operation is running), "failed" (exists but is unusable), or "deleting".
        status: The cloud's own status.
        failure: The cloud's last failure message; may be "".
        fields: Normalized like Desired.fields, without what the cloud added.
        nodes: Current node count; None if the cloud does not return it.
        labels, effective_taints: Labels and taints of the nodes.
        instance_type: The cloud's name.
        etag: Version for conditional writes; "" if the cloud has none.
        native: The pool as read.
        copy: The second copy of the marks, if it was written for this pool; otherwise None.
        copied: Whether its tags have a copy that was written for another pool, from which this one was cloned.
        written: Fields ("tags", "team") that gpukube wrote into an open group; once they are no longer declared, the
            plan removes them.
        moving: Fields that the cloud changes on its own, like `fields`; compared only if declared.
        inherited: Paths of members of `native` that the cluster gives to each of its pools.
    """

    name: str
    owner: str
    pool: str
    protected: bool
    state: PoolState
    status: str
    failure: str
    fields: Mapping[FieldPath, object]
    nodes: int | None
    labels: Mapping[str, str]
    effective_taints: tuple[Taint, ...]
    instance_type: str
    etag: str
    native: Mapping[str, object] = field(repr=False)
    copy: MarksCopy | None = None
    written: frozenset[FieldPath] = frozenset()
    moving: Mapping[FieldPath, object] = field(default_factory=dict)
    copied: bool = False
    inherited: frozenset[str] = frozenset()

    @property
    def family(self) -> str:
        """Name of the first pool of its family; "" for a pool of no family."""
        return self.labels.get(FAMILY_LABEL, "") if self.owner else ""

    @property
    def released(self) -> str:
        """The name in its spec before the release; "true" from older gpukube versions; "" if not released."""
        return "" if self.owner else self.labels.get(RELEASED_LABEL, "")


@dataclass(frozen=True, slots=True)
class Change:
    """One field that differs; None means absent. `field` is a key of Desired.fields."""

    field: FieldPath
    old: object
    new: object


@dataclass(frozen=True, slots=True)
class UpdateRow:
    """The effect of changing a field on one cloud.

    Attributes:
        field: Key of Desired.fields; ("labels", "*") covers every label.
        kind: in-place, disruptive (in place, but restarts or evicts pods), replace, or refused.
        sentence: Human-readable: what happens and why.
        call: The operation that makes the change; "" if none can.
        source: Public source of the fact.
    """

    field: FieldPath
    kind: UpdateKind
    sentence: str
    call: str
    source: str

    @property
    def renews_nodes(self) -> bool:
        """Whether the change recreates nodes; sizes, taints, and labels change on existing ones."""
        return self.kind == "disruptive" and self.field[0] not in ("nodes", "taints", "labels")


@dataclass(frozen=True, slots=True)
class Ability:
    """How faithfully a cloud supports a feature of the spec.

    Attributes:
        fidelity: "exact", "emulated" (by the substitute named) or "missing".
        substitute: What gpukube does instead; "" if exact.
        reason: Why; "" if exact.
    """

    fidelity: Literal["exact", "emulated", "missing"]
    substitute: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ClassifiedChange:
    """A change and its effect."""

    change: Change
    row: UpdateRow


@dataclass(frozen=True, slots=True)
class Loss:
    """What a replacement or deletion removes, or a disruptive change affects.

    Attributes:
        nodes: Affected nodes; None if neither the cloud nor the cluster reports the number.
        gpus: Physical GPUs on them; None if the machine is not in the catalog.
        pods: Running pods that a drain would evict, "namespace/name", without DaemonSet pods; None if the cluster was
            not read.
        of: Number of live nodes from which the cloud picks, if not all are affected; `pods` are those of all.
    """

    nodes: int | None
    gpus: float | None
    pods: tuple[str, ...] | None
    of: int | None = None


@dataclass(frozen=True, slots=True)
class Replacement:
    """The replacement of a live pool by a second one, and its progress (see `core.replacing`).

    Attributes:
        name: The cloud's name of the new pool.
        successor: The declared pool under that name; None if it cannot be created, for a reason in `obstacles`.
        beside: The new pool, if it is live.
        step: The next step: create the new pool (or get it ready), verify its GPUs, drain the old pool, or delete it.
        requests: The remaining cloud calls, in order.
        obstacles: Why both pools cannot coexist; empty if they can.
        unknown: Conditions for that which could not be checked.
    """

    name: str
    successor: Desired | None
    beside: Observed | None = None
    step: SurgeStep = "create"
    requests: tuple[Request, ...] = ()
    obstacles: tuple[Finding, ...] = ()
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FamilyPlace:
    """A declared pool of a family with a fixed size, of which one pool has all nodes.

    Attributes:
        name: Name of the family.
        turn: Its place in the order in which the pools are tried, over all clusters of a family with place: any.
        role: holder: it has the nodes; next: no pool has nodes, and it is tried first; standby: it is tried only if the
            ones before it get no machines; leftover: an attempt left it without nodes, and it is deleted; second: it
            has nodes, and another one has them too.
        differs: How it differs from the first pool of the family, for people.
        of: Number of pools of the family, over the same clusters as `turn`.
    """

    name: str
    turn: int
    role: FamilyRole
    differs: tuple[str, ...] = ()
    of: int = 1


@dataclass(frozen=True, slots=True)
class PoolPlan:
    """The plan of one pool, and the reason for it.

    Attributes:
        cluster: Its cluster.
        pool: Name in the spec (for deletes, in the live mark).
        name: The cloud's name.
        action: See Action; "conflict" means that a pool of another owner has the name.
        why: One line, also for a no-op.
        desired: None for deletes.
        observed: None if the pool does not exist.
        changes: Classified differences.
        requests: The exact native calls, in order; for a replace those of `--replace recreate`, unless the plan is for
            `--replace surge` or such a replacement is already in progress.
        diagnostics: Warnings, and the errors that stop the run.
        loss: What a replace, delete, or disruptive update costs; None for other actions.
        capacity: Allocatable devices now, by resource name; None if the cluster was not read.
        obstacle: Kind of a conflict that the user can resolve: "foreign" with --adopt if the pool has no owner,
            "foreign-copy" with --adopt-from, "managed" with --adopt-managed, "not-ready" after the cloud's operation
            ends; None for other conflicts.
        replacement: For a replace: the replacement by a second pool. `observed` is the old pool.
        upgrade: The available upgrade of the live nodes and its cost; None if nothing is newer, or it is unknown.
        leaving: Forecast of a drain of the live nodes; None if nothing leaves, or it is unknown.
        resumes: For a failed pool that its cloud repairs: the evidence that its nodes are partly upgraded and that the
            cloud would continue; "" if it would not.
        lost: For a replacement: the chosen members of the live pool that the new one would not have, accepted or not.
        family: Its place in its family; None for a pool of no family, or of an autoscaled one.
    """

    cluster: ClusterRef
    pool: str
    name: str
    action: Action
    why: str
    desired: Desired | None
    observed: Observed | None
    changes: tuple[ClassifiedChange, ...] = ()
    requests: tuple[Request, ...] = ()
    diagnostics: tuple[Finding, ...] = ()
    loss: Loss | None = None
    capacity: Mapping[str, int] | None = None
    obstacle: Obstacle | None = None
    replacement: Replacement | None = None
    upgrade: UpgradeOutlook | None = None
    leaving: DrainForecast | None = None
    resumes: str = ""
    lost: tuple[Chosen, ...] = ()
    family: FamilyPlace | None = None

    @property
    def where(self) -> Where:
        """The pool as a resource, "train-aks/a100mig"."""
        return Where(f"{self.cluster.key}/{self.pool}")

    @property
    def disruptive(self) -> tuple[ClassifiedChange, ...]:
        """The in-place changes that restart or evict running pods."""
        return tuple(c for c in self.changes if c.row.kind == "disruptive")

    @property
    def disturbs(self) -> bool:
        """Whether the plan restarts or evicts pods while their pool stays, which requires consent."""
        return bool(self.resumes) or (self.action == "update" and bool(self.disruptive))


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """A cluster as the cloud reports it.

    Attributes:
        location: Region or zone.
        kubernetes_version: Control plane version, "1.34.2".
        ready: Whether the control plane accepts work.
        status: The cloud's own status.
        endpoints: Service -> host that was called; empty for an emulated cloud, whose ports change.
        channel: The cloud's own name of the release or upgrade channel that upgrades nodes automatically; "" for none.
        expander: How the cloud's own autoscaler chooses among pools on which a pod fits; "" if it has no such setting.
    """

    location: str
    kubernetes_version: str
    ready: bool
    status: str
    endpoints: Mapping[str, str] = field(default_factory=dict)
    channel: str = ""
    expander: str = ""


@dataclass(frozen=True, slots=True)
class KubeAccess:
    """A complete kubeconfig (server, CA, one user) for one cluster; never printed, never written except 0600."""

    kubeconfig: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Operation:
    """A running change in the cloud.

    Attributes:
        pool: The cloud's name of the pool.
        verb: "create", "update" or "delete".
        handle: The cloud's own handle (a URL, an id); "" to poll the pool itself, as after a lost response.
        warning: Part of the call that the cloud refused without affecting the change; "" for none.
    """

    pool: str
    verb: Literal["create", "update", "delete"]
    handle: str = ""
    warning: str = ""


@dataclass(frozen=True, slots=True)
class Progress:
    """The state of a running operation.

    Attributes:
        done: Whether it succeeded.
        status: The cloud's own status, shown live.
        retry_after_s: Seconds to wait as requested by the cloud; None if it requests nothing.
        error: Why it failed, as a gpukube error; otherwise None.
    """

    done: bool
    status: str
    retry_after_s: float | None = None
    error: GpukubeError | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """How to reach the clouds in this run.

    Attributes:
        endpoints: Provider name -> base URL that replaces the cloud's own (the sandbox, a private endpoint).
        sandbox: Connect only to loopback, with nothing but `secret`.
        secret: Secret of the emulated clouds, instead of real credentials; "" if unknown.
        request_timeout_s: Timeout of one HTTP request.
        connections: Size of each client's connection pool.
        kube_timeout_s: Timeout of one call to a Kubernetes API.
    """

    endpoints: Mapping[str, str] = field(default_factory=dict)
    sandbox: bool = False
    secret: str = field(default="", repr=False)
    request_timeout_s: float = 60.0
    connections: int = 16
    kube_timeout_s: float = 20.0
