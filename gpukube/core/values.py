"""The values that the rooms hand each other: what is wanted, what is there, what changes, what is sent.

In scope: frozen dataclasses without behavior beyond small derived properties. Out of scope: anything
that computes them (see resolve, owners, diff, plan) or that knows a cloud.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, cast

from gpukube.errors import Where

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from gpukube.core.drain_forecast import DrainForecast
    from gpukube.core.fields import FieldPath
    from gpukube.core.upgrades import UpgradeOutlook
    from gpukube.errors import Finding, GpukubeError
    from gpukube.gpu.catalog import Machine
    from gpukube.gpu.sharing import Sharing

OWNER_LABEL = "gpukube.io/owner"
"""Node label in the pool API: the spec's metadata.name. Labels, because all three clouds change them in place."""
POOL_LABEL = "gpukube.io/pool"
"""Node label in the pool API: the pool's name in the spec (a cloud name may differ)."""
PROTECT_LABEL = "gpukube.io/protect"
"""Node label in the pool API: "true" refuses delete and replace; read from the live pool, not from the spec."""
RELEASED_LABEL = "gpukube.io/released"
"""Node label in the pool API of a released pool: its name in its spec. A copy of the marks beside it is void."""
MARKS = (OWNER_LABEL, POOL_LABEL, PROTECT_LABEL)
"""The labels that make a pool gpukube's."""

TaintEffect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
Action = Literal["create", "update", "replace", "delete", "no-op", "adopt", "conflict"]
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
        """Read what `str()` writes; the effect is taken as it is."""
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
    """How many nodes a pool has, as pool totals.

    Attributes:
        count: Fixed size, or the size at creation of an autoscaled pool.
        minimum: Smallest size; equals count when the size is fixed.
        maximum: Largest size; equals count when the size is fixed.
        autoscaled: Whether the cloud's autoscaler owns the number.
        scope: Whether the autoscaler keeps its bounds for the whole pool or for each zone; the numbers are totals in
            both cases. Only clouds that have both kinds compare it.
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
        form: Which of the cloud's forms, named as in the spec; "flexStartQueued" for two that are written together.
        id: Of the block, reservation or group, as the cloud wants it; "" for forms without one.
        max_run_s: Seconds that a node may live; None for the cloud's limit.
    """

    form: str
    id: str = ""
    max_run_s: int | None = None


@dataclass(frozen=True, slots=True)
class Capacity:
    """How the machines are bought.

    Attributes:
        type: As in the spec.
        max_price: Highest spot price, USD per hour; None for the market's.
        reservation: Of reserved machines; None for others.
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
    """The node's system disk; None means the cloud's default."""

    size_gib: int | None
    type: str | None


class Locator(Protocol):
    """Finds the place in the user's file that a field came from."""

    def at(self, path: str) -> Where:
        """Return the position of a field ("sharing.mig.profile"), or of its nearest parent that is written."""


@dataclass(frozen=True, slots=True)
class ClusterRef:
    """A cluster of the spec.

    Attributes:
        key: Its name inside the spec.
        provider: Provider name, "aks".
        name: The cloud's name of the cluster.
        identity: The other identifying fields as the spec writes them (subscription, resourceGroup, region, ...).
        kubeconfig: File to use instead of the cloud's own access; "" for the cloud's.
        context: Context inside that file.
        where: Position in the spec.
        places: Positions of its fields, by the names of the spec.
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
        """Return the position of one of its fields; that of the cluster where the field is not written."""
        return self.places.get(name, self.where)


@dataclass(frozen=True, slots=True)
class Target:
    """One pool of the spec on one cluster, every choice made, nothing translated yet.

    Attributes:
        owner: metadata.name of the spec.
        pool: Name of the pool in the spec.
        cluster: Where it goes.
        name: Name in the cloud's API.
        machine: Resolved instance type.
        image: The cloud's own name of a node image family; "" for its default.
        taints: Taints the spec asks for, the GPU taint included when gpu_taint is set.
        labels, tags: The user's own, without those gpukube adds.
        native: The escape hatch of this provider, as written.
        locator: Where each field stands in the user's file.
        upgrade: How nodes are replaced.
        kubernetes_version: Of the nodes, "1.34" or more exact; "" for the cluster's.
        max_pods: Most pods of a node; None for the cloud's default.
        driver_version: Where the cloud lets one choose; "" for its choice.
        chart_version: Of the plugin's chart; "" for the tested one.
        chart_values: Further values for that chart.
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

    @property
    def where(self) -> Where:
        """The pool as a resource, "train-aks/a100mig"."""
        return Where(f"{self.cluster.key}/{self.pool}")


@dataclass(frozen=True, slots=True)
class NodeStack:
    """What the nodes of a pool bring before anything is installed in the cluster: the facts the solver goes by.

    Attributes:
        driver: "cloud" when the node image or the cloud installs the NVIDIA driver.
        advertiser: "cloud" when the cloud runs a device plugin there by itself.
        cut_by: Who makes the MIG instances: "cloud" by a pool field, "operator" by its MIG manager, "none".
        source: Where this is documented.
        image: Cloud and image family as people call them, "EKS AL2023".
        no_operator: Why the GPU Operator cannot serve these nodes; "" when it can.
        no_driver: Why the GPU Operator cannot bring a driver to these nodes; "" when it can.
        without_plugin: What to write to get nodes without the cloud's plugin; "" when there is nothing to write.
        runtime: Name of the container runtime on the nodes that hands GPUs to containers: what the operator's
            RuntimeClass has to name.
        operator_values: Values of the operator's chart that these nodes need, by dotted path.
        fields: Places in the create request that make it so, dotted: "nodegroup.amiType". What is not there is left out
            on purpose.
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


@dataclass(frozen=True, slots=True)
class Ownership:
    """The solver's answer for one pool: who owns driver and plugin, and what makes it so.

    Attributes:
        driver: Who installs the driver.
        advertiser: The one component that registers nvidia.com/* on the nodes.
        config_key: Key of the plugin configuration the nodes choose; "" when the advertiser is not ours.
        labels: Node labels to set at birth.
        reason: One line for people.
        row: Name of the row of the solver's table that answered; "" when nobody looked one up.
        values: Chart values that these nodes need of the release, by dotted path, beyond those it always has.
    """

    driver: Literal["cloud", "operator", "none"]
    advertiser: Advertiser
    config_key: str
    labels: Mapping[str, str]
    reason: str
    row: str = ""
    values: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Promise:
    """What a pool will advertise: resource name -> devices per node, times the node range."""

    per_node: Mapping[str, int]
    nodes: Nodes

    def total(self, nodes: int) -> dict[str, int]:
        """Return the devices of that many nodes."""
        return {name: count * nodes for name, count in self.per_node.items()}


@dataclass(frozen=True, slots=True)
class Request:
    """A native call as a value: the plan prints it, golden tests compare it, the client sends it.

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
    """The second copy of a pool's marks, which survives when its labels are replaced (see `core.marks`).

    Attributes:
        owner, pool: In the form of the cloud's tags: a value that they cannot hold is a hash of it.
        protected: The protection mark.
    """

    owner: str
    pool: str
    protected: bool = False


@dataclass(frozen=True, slots=True)
class Desired:
    """A target in the terms of its cloud.

    Attributes:
        target: What was asked for.
        ownership: Who owns driver and plugin.
        promise: What the nodes will advertise.
        fields: Normalised intent, flat, by paths such as ("nodes", "count") or ("labels", "team"). Compared with
            Observed.fields; a field that is absent here is left to the cloud.
        labels: Node labels as sent, ours included.
        effective_taints: Taints the nodes will carry, those the cloud adds by itself included.
        create: The call that makes the pool.
        copy: The second copy of our marks as `create` writes it; None on a cloud without one.
        copy_is_fixed: The cloud writes the copy at creation only.
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

    @property
    def managed(self) -> bool:
        """Whether gpukube sees to it that the nodes advertise GPUs; where the spec says it does not, nothing is due."""
        return self.target.plugin_owner != "none"


@dataclass(frozen=True, slots=True)
class Observed:
    """A live pool.

    Attributes:
        name: The cloud's name.
        owner, pool: Our marks as read from the live labels; "" when it is not ours.
        protected: The live protection mark; also true for a pool with a second copy of marks that its labels lost.
        state: "ready", "busy" (the cloud works on it), "failed" (kept by the cloud, not usable) or "deleting" (the
            cloud takes it away).
        status: The cloud's own word.
        failure: The cloud's last failure message; "".
        fields: Normalised like Desired.fields; what the cloud added by itself is left out.
        nodes: Present node count, None when the cloud does not say.
        labels, effective_taints: As the nodes carry them.
        instance_type: The cloud's name.
        etag: Version for guarded writes; "" when the cloud has none.
        native: The pool as read.
        copy: The second copy of the marks, where it was written for this very pool; None otherwise.
        copied: Its tags have a copy that was written for another pool: somebody made this one from it.
        written: Fields ("tags", "team") that gpukube wrote into an open group: they are changes to absent when nobody
            declares them any more.
        moving: Fields that the cloud moves by itself, as `fields`; they are compared where they are declared.
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

    @property
    def released(self) -> str:
        """The pool that it was until it was released; "true" where an earlier gpukube did that; "" where none did."""
        return "" if self.owner else self.labels.get(RELEASED_LABEL, "")


@dataclass(frozen=True, slots=True)
class Change:
    """One field that differs; None means absent. `field` is a key of Desired.fields."""

    field: FieldPath
    old: object
    new: object


@dataclass(frozen=True, slots=True)
class UpdateRow:
    """What a change of a field does on one cloud.

    Attributes:
        field: Key of Desired.fields; ("labels", "*") covers every label.
        kind: in-place, disruptive (in place, but pods suffer), replace, or refused.
        sentence: For people: what happens and why.
        call: The operation that does it; "" when none can.
        source: Public source of the fact.
    """

    field: FieldPath
    kind: UpdateKind
    sentence: str
    call: str
    source: str

    @property
    def renews_nodes(self) -> bool:
        """Whether nodes are made anew: a size, a taint and a label change on those that are there."""
        return self.kind == "disruptive" and self.field[0] not in ("nodes", "taints", "labels")


@dataclass(frozen=True, slots=True)
class Ability:
    """How faithfully a cloud does a feature of the spec.

    Attributes:
        fidelity: "exact", "emulated" (by the substitute named) or "missing".
        substitute: What is done instead; "" when exact.
        reason: Why; "" when exact.
    """

    fidelity: Literal["exact", "emulated", "missing"]
    substitute: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ClassifiedChange:
    """A change together with what it would do."""

    change: Change
    row: UpdateRow


@dataclass(frozen=True, slots=True)
class Loss:
    """What goes away with a pool that is replaced or deleted, or suffers from a disruptive change.

    Attributes:
        nodes: Nodes that go or suffer; None when neither the cloud nor the cluster says how many there are.
        gpus: Physical GPUs on them; None when the machine is not in the catalog.
        pods: Running pods that a drain would move, "namespace/name", those of DaemonSets left out; None when the
            inside of the cluster is not known.
        of: Live nodes among which the cloud chooses those that go, when not all do; the pods are those of all.
    """

    nodes: int | None
    gpus: float | None
    pods: tuple[str, ...] | None
    of: int | None = None


@dataclass(frozen=True, slots=True)
class Replacement:
    """How a second pool takes the place of a live one, and how far that is (see `core.replacing`).

    Attributes:
        name: The cloud's name of the new pool.
        successor: The declared pool under that name; None where it cannot be made, as an obstacle tells.
        beside: The new pool, where it is live.
        step: What is done next: the new pool made (or made ready), its GPUs proven, the old one drained or deleted.
        requests: The calls to the cloud that are left, in order.
        obstacles: Why there is no room for both; empty where nothing speaks against it.
        unknown: What could not be found out about that.
    """

    name: str
    successor: Desired | None
    beside: Observed | None = None
    step: SurgeStep = "create"
    requests: tuple[Request, ...] = ()
    obstacles: tuple[Finding, ...] = ()
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PoolPlan:
    """What will happen to one pool, and why.

    Attributes:
        cluster: Where.
        pool: Name in the spec (or the live mark, for deletes).
        name: The cloud's name.
        action: See Action; "conflict" is a pool that stands in the way and is not ours.
        why: One line, for a no-op too.
        desired: None for deletes.
        observed: None when nothing is there.
        changes: Classified differences.
        requests: The exact native calls, in order; of a replace those of `--replace recreate`, unless the plan is for
            `--replace surge` or a replacement by a second pool is under way: then those of that.
        diagnostics: Warnings, and the errors that stop the run.
        loss: What a replace, delete or disruptive update costs; None for other actions.
        capacity: Allocatable devices now, by resource name; None when the inside of the cluster is not known.
        obstacle: Of a conflict that the user can resolve: "foreign" by --adopt if nobody owns the pool, "foreign-copy"
            by --adopt-from, "managed" by --adopt-managed, "not-ready" once the cloud has finished with it; None for
            other conflicts.
        replacement: Of a replace: how a second pool would take its place. `observed` is the old pool.
        upgrade: What an upgrade of the live nodes brings and costs; None where nothing is newer, or nobody knows.
        leaving: What a drain of the live nodes would meet; None where nothing leaves, or it is not known.
        resumes: Of a failed pool that its cloud repairs: how it is known that its nodes are half upgraded, and that the
            cloud would go on with that; "" where it would not.
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

    @property
    def where(self) -> Where:
        """The pool as a resource, "train-aks/a100mig"."""
        return Where(f"{self.cluster.key}/{self.pool}")

    @property
    def disruptive(self) -> tuple[ClassifiedChange, ...]:
        """The changes in place that running pods suffer from."""
        return tuple(c for c in self.changes if c.row.kind == "disruptive")

    @property
    def disturbs(self) -> bool:
        """Whether running pods suffer though their pool stays, so that it needs consent."""
        return bool(self.resumes) or (self.action == "update" and bool(self.disruptive))


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What the cloud says of a cluster.

    Attributes:
        location: Region or zone.
        kubernetes_version: Control plane version, "1.34.2".
        ready: Whether the control plane accepts work.
        status: The cloud's own word.
        endpoints: Service -> host that it was asked at; empty for an emulated cloud, whose ports change.
        channel: The release or upgrade channel by which the cloud upgrades nodes by itself, in its own words; "" for
            none.
    """

    location: str
    kubernetes_version: str
    ready: bool
    status: str
    endpoints: Mapping[str, str] = field(default_factory=dict)
    channel: str = ""


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
        handle: The cloud's own handle (an URL, an id); "" to follow the pool itself, as after a lost answer.
        warning: What the cloud refused of the call without harm to the change; "" for nothing.
    """

    pool: str
    verb: Literal["create", "update", "delete"]
    handle: str = ""
    warning: str = ""


@dataclass(frozen=True, slots=True)
class Progress:
    """One look at a running operation.

    Attributes:
        done: Whether it ended well.
        status: The cloud's own word, shown live.
        retry_after_s: Seconds the cloud asks us to wait; None when it does not say.
        error: Why it ended badly, as our class; None otherwise.
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
        sandbox: Only loopback is reached, with nothing but `secret`.
        secret: What the emulated clouds of this run ask for, in the place of real credentials; "" where none is known.
        request_timeout_s: For one HTTP exchange.
        connections: Size of each client's connection pool.
        kube_timeout_s: For one call of a Kubernetes API.
    """

    endpoints: Mapping[str, str] = field(default_factory=dict)
    sandbox: bool = False
    secret: str = field(default="", repr=False)
    request_timeout_s: float = 60.0
    connections: int = 16
    kube_timeout_s: float = 20.0
