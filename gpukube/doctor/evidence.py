"""Everything that the checks may use, read once.

In scope: the values. Out of scope: I/O (gather) and conclusions (the checks).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from gpukube.cluster.kube.views import Placement
from gpukube.cluster.state.published import NOTHING, published
from gpukube.cluster.state.snapshot import Snapshot
from gpukube.core.values import OWNER_LABEL, POOL_LABEL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.cluster.kube.releases import Release
    from gpukube.cluster.kube.views import NodeView, PodView, WorkloadView
    from gpukube.cluster.state.published import Published
    from gpukube.core.jsontree import Tree
    from gpukube.core.quotas import QuotaUse
    from gpukube.core.reservations import LiveReservation
    from gpukube.core.values import ClusterFacts, ClusterRef, Desired, Observed
    from gpukube.doctor.local_tools import Tools
    from gpukube.doctor.rights import Right
    from gpukube.engine.change.family_record import Record
    from gpukube.errors import GpukubeError
    from gpukube.provider import Provider

Reading = Literal[
    "cloud",
    "pools",
    "version",
    "nodes",
    "daemonsets",
    "deployments",
    "pods",
    "releases",
    "roles",
    "config-maps",
    "order",
    "quotas",
    "policies",
    "dra",
    "claims",
    "runtime-classes",
    "events",
    "rights",
]
"""Readings that can fail independently: a viewer may not read Secrets, for instance."""


@dataclass(frozen=True, slots=True)
class PodFacts:
    """A pod, with details that its view lacks.

    Attributes:
        reason, message: Reason and message of the pod's status, which explain a Failed pod.
        most: Resource -> maximum number of devices that one of its containers requests.
        created: metadata.creationTimestamp.
        placement: Constraints on the nodes it may run on.
        spec: The API's spec for a pod that waits for devices; empty for others.
        claims: Names of the ResourceClaims that it uses, in its namespace; those of templates only once they exist.
        templates: Names of the ResourceClaimTemplates that it names.
    """

    view: PodView
    reason: str = ""
    message: str = ""
    most: Mapping[str, int] = field(default_factory=dict)
    created: str = ""
    placement: Placement = field(default_factory=Placement)
    spec: Tree = field(default_factory=dict)
    claims: tuple[str, ...] = ()
    templates: tuple[str, ...] = ()

    @property
    def claiming(self) -> bool:
        """Whether it claims devices of DRA."""
        return bool(self.claims or self.templates)

    def __str__(self) -> str:
        """Return namespace/name."""
        return f"{self.view.namespace}/{self.view.name}"


@dataclass(frozen=True, slots=True)
class ClaimFacts:
    """A ResourceClaim, or a ResourceClaimTemplate, which is never allocated.

    Attributes:
        classes: DeviceClasses that its requests name.
        devices: (driver, pool, device) that it holds; without those that it only observes (adminAccess).
        pods: Names of the pods in reservedFor.
        deleted: metadata.deletionTimestamp; "" if it is not being deleted.
        spec: The spec of the claim.
    """

    namespace: str
    name: str
    classes: tuple[str, ...] = ()
    devices: tuple[tuple[str, str, str], ...] = ()
    pods: tuple[str, ...] = ()
    allocated: bool = False
    deleted: str = ""
    spec: Tree = field(default_factory=dict)

    def __str__(self) -> str:
        """Return namespace/name."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class ClassFacts:
    """A DeviceClass.

    Attributes:
        extended: Extended resource whose pods get its devices too; "" if none, or if the cluster drops the field.
        release: (namespace, name) of the Helm release that installed it; empty names if none did.
        created: metadata.creationTimestamp.
    """

    name: str
    extended: str = ""
    release: tuple[str, str] = ("", "")
    created: str = ""


@dataclass(frozen=True, slots=True)
class Quota:
    """A ResourceQuota.

    Attributes:
        hard, used: Limits and use, "requests.nvidia.com/gpu" -> quantity.
    """

    namespace: str
    name: str
    hard: Mapping[str, str]
    used: Mapping[str, str]

    def __str__(self) -> str:
        """Return kind, namespace and name."""
        return f"ResourceQuota {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One cluster as it was read.

    Attributes:
        cluster: The cluster.
        provider: Pure half of its cloud's provider.
        facts: What the cloud reports about the cluster.
        live: Live pools, of all owners.
        desired: Pools that the given specs declare here; empty without a spec.
        version: Version of the API server.
        seen: Snapshot of the Kubernetes API. Its `pods` are those of gpukube's namespace; `objects` are not read.
        daemonsets: (namespace, name) -> DaemonSet as the API returns it, in all namespaces.
        pods: Pods of all namespaces, including ended ones.
        classes: DeviceClasses.
        slices: ResourceSlices of the current API version as the API returns them; selectors need all of a device.
        claims: ResourceClaims of all namespaces.
        templates: ResourceClaimTemplates of all namespaces.
        quotas: ResourceQuotas of all namespaces.
        limits: Cloud quotas that the declared pools need in order to be created and to grow.
        refusals: (kind, namespace, name) -> latest message: the API server's for DaemonSets whose pods are not created,
            the kubelet's for GPU pods that do not start.
        releases: Newest revision of gpukube's release, and of each Helm release named by NVIDIA or NFD workloads.
        roles_gone: (release, kind and name) of roles and bindings that gpukube's release created and that are missing.
        runtime_classes: Existing classes, if a DaemonSet of the stack names one; else None.
        config_maps: (namespace, name) -> entries of the ConfigMaps that device plugins mount.
        orders: Objects with the order of families for the autoscaler, of all owners: the ConfigMap of its priority
            expander, or classes; empty if no live family needs one.
        denied: Rights that the declared pools need and that gpukube lacks.
        tools: Tools of this machine; None if they were not checked.
        troubles: Readings that failed, and why. Their fields are empty.
        reserved: The reservations of live pools, by the pools' cloud names; without those that cannot be read.
        records: (owner, family) -> what runs have left in the Lease of a family that has live pools here.
        now: Time of the reading; None if ages are unknown.
    """

    cluster: ClusterRef
    provider: Provider
    facts: ClusterFacts | None = None
    live: tuple[Observed, ...] = ()
    desired: tuple[Desired, ...] = ()
    version: str = ""
    seen: Snapshot = field(default_factory=Snapshot)
    daemonsets: Mapping[tuple[str, str], Tree] = field(default_factory=dict)
    pods: tuple[PodFacts, ...] = ()
    classes: tuple[ClassFacts, ...] = ()
    slices: tuple[Tree, ...] = ()
    claims: tuple[ClaimFacts, ...] = ()
    templates: tuple[ClaimFacts, ...] = ()
    quotas: tuple[Quota, ...] = ()
    limits: tuple[QuotaUse, ...] = ()
    refusals: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
    releases: tuple[Release, ...] = ()
    roles_gone: tuple[tuple[str, str], ...] = ()
    runtime_classes: tuple[str, ...] | None = None
    config_maps: Mapping[tuple[str, str], Mapping[str, str]] = field(default_factory=dict)
    orders: tuple[Tree, ...] = ()
    denied: tuple[Right, ...] = ()
    tools: Tools | None = None
    troubles: Mapping[Reading, GpukubeError] = field(default_factory=dict)
    reserved: Mapping[str, LiveReservation] = field(default_factory=dict)
    records: Mapping[tuple[str, str], Record] = field(default_factory=dict)
    now: datetime | None = None
    _owned: Mapping[tuple[str, str], Sequence[PodFacts]] = field(init=False, repr=False, compare=False)
    _placed: Mapping[str, Sequence[PodFacts]] = field(init=False, repr=False, compare=False)
    _published: Mapping[str, Published] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Index the pods by DaemonSet and by node, and slices by node: checks look them up for each node."""
        owned: dict[tuple[str, str], list[PodFacts]] = {}
        placed: dict[str, list[PodFacts]] = {}
        for pod in self.pods:
            placed.setdefault(pod.view.node, []).append(pod)
            if pod.view.owner_kind == "DaemonSet" and not pod.view.terminating:
                owned.setdefault((pod.view.namespace, pod.view.owner), []).append(pod)
        object.__setattr__(self, "_owned", owned)
        object.__setattr__(self, "_placed", placed)
        object.__setattr__(self, "_published", published(self.seen.slices))

    @property
    def nodes(self) -> tuple[NodeView, ...]:
        """All nodes."""
        return self.seen.nodes

    def pool_of(self, node: NodeView) -> Desired | None:
        """Return the declared pool of a node; None for nodes of others."""
        marks = (node.labels.get(OWNER_LABEL), node.labels.get(POOL_LABEL))
        return next((pool for pool in self.desired if (pool.target.owner, pool.target.pool) == marks), None)

    def published_on(self, node: str) -> Published:
        """Return what NVIDIA's DRA driver publishes on a node."""
        return self._published.get(node, NOTHING)

    def age_s(self, moment: str) -> float | None:
        """Return the seconds since a time in the API's format; None if unknown."""
        if not moment or self.now is None:
            return None
        return (self.now - datetime.fromisoformat(moment)).total_seconds()

    def manifest(self, daemonset: WorkloadView) -> Tree:
        """Return a DaemonSet as the API returns it; empty if it was not read."""
        return self.daemonsets.get((daemonset.namespace, daemonset.name), {})

    def pods_of(self, daemonset: WorkloadView) -> tuple[PodFacts, ...]:
        """Return the pods of a DaemonSet that are not terminating."""
        return tuple(self._owned.get((daemonset.namespace, daemonset.name), ()))

    def pods_on(self, node: str, daemonset: WorkloadView | None = None) -> tuple[PodFacts, ...]:
        """Return the pods on a node or scheduled to it; for a DaemonSet, only those that are not terminating."""
        here = self._placed.get(node, ())
        if daemonset is None:
            return tuple(here)
        desired = ("DaemonSet", daemonset.namespace, daemonset.name)
        return tuple(
            pod
            for pod in here
            if (pod.view.owner_kind, pod.view.namespace, pod.view.owner) == desired and not pod.view.terminating
        )
