"""Everything the checks may look at, read once.

In scope: the values. Out of scope: I/O (gather) and conclusions (the checks).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from gpukube.cluster.kube.views import Placement
from gpukube.cluster.state.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.cluster.kube.releases import Release
    from gpukube.cluster.kube.views import NodeView, PodView, WorkloadView
    from gpukube.core.jsontree import Tree
    from gpukube.core.quotas import QuotaUse
    from gpukube.core.values import ClusterFacts, ClusterRef, Desired, Observed
    from gpukube.doctor.local_tools import Tools
    from gpukube.doctor.rights import Right
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
    "quotas",
    "policies",
    "dra",
    "runtime-classes",
    "events",
    "rights",
]
"""What is read by itself and can fail by itself: the rights of a viewer do not reach Secrets, for instance."""


@dataclass(frozen=True, slots=True)
class PodFacts:
    """A pod, with what a view of it leaves out.

    Attributes:
        reason, message: Of the pod's status: why a Failed pod failed.
        most: Resource -> the most devices that one of its containers asks for.
        created: metadata.creationTimestamp.
        placement: Which nodes it may go to.
        spec: As the API has it, of a pod that waits for devices; empty of others.
    """

    view: PodView
    reason: str = ""
    message: str = ""
    most: Mapping[str, int] = field(default_factory=dict)
    created: str = ""
    placement: Placement = field(default_factory=Placement)
    spec: Tree = field(default_factory=dict)

    def __str__(self) -> str:
        """Name it as kubectl does, with the namespace."""
        return f"{self.view.namespace}/{self.view.name}"


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
        """Name it."""
        return f"ResourceQuota {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One cluster as it was read.

    Attributes:
        cluster: Which.
        provider: Pure half of its cloud.
        facts: What the cloud reports of it.
        live: Live pools, of all owners.
        desired: Pools that the given specs declare here; empty without a spec.
        version: Of the API server.
        seen: What the Kubernetes API has. Its `pods` are those of our namespace; `objects` are not read.
        daemonsets: (namespace, name) -> the DaemonSets as the API has them, of all namespaces.
        pods: Of all namespaces, ended ones too.
        quotas: Of all namespaces.
        limits: Quotas of the cloud that the declared pools need to be made and to grow.
        refusals: (kind, namespace, name) -> the API server's last words, of DaemonSets whose pods are not created, and
            the kubelet's, of GPU pods that do not start.
        releases: Newest revision of every Helm release that one of NVIDIA's or NFD's workloads names, and of ours.
        roles_gone: (release, kind and name) of the roles and bindings that a release of ours made and that are gone.
        runtime_classes: Those that there are, where a DaemonSet of the stack names one; else None.
        config_maps: (namespace, name) -> entries, of the ConfigMaps that device plugins mount.
        denied: Rights that the declared pools need and that we lack.
        tools: What this machine has; None when it was not checked.
        troubles: What could not be read, and why. What it would have filled is empty then.
        now: When it was read; None where ages are not known.
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
    quotas: tuple[Quota, ...] = ()
    limits: tuple[QuotaUse, ...] = ()
    refusals: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
    releases: tuple[Release, ...] = ()
    roles_gone: tuple[tuple[str, str], ...] = ()
    runtime_classes: tuple[str, ...] | None = None
    config_maps: Mapping[tuple[str, str], Mapping[str, str]] = field(default_factory=dict)
    denied: tuple[Right, ...] = ()
    tools: Tools | None = None
    troubles: Mapping[Reading, GpukubeError] = field(default_factory=dict)
    now: datetime | None = None
    _owned: Mapping[tuple[str, str], Sequence[PodFacts]] = field(init=False, repr=False, compare=False)
    _placed: Mapping[str, Sequence[PodFacts]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Index the pods by their DaemonSets and by their nodes: checks look them up for each node."""
        owned: dict[tuple[str, str], list[PodFacts]] = {}
        placed: dict[str, list[PodFacts]] = {}
        for pod in self.pods:
            placed.setdefault(pod.view.node, []).append(pod)
            if pod.view.owner_kind == "DaemonSet" and not pod.view.terminating:
                owned.setdefault((pod.view.namespace, pod.view.owner), []).append(pod)
        object.__setattr__(self, "_owned", owned)
        object.__setattr__(self, "_placed", placed)

    @property
    def nodes(self) -> tuple[NodeView, ...]:
        """All nodes."""
        return self.seen.nodes

    def age_s(self, moment: str) -> float | None:
        """Return the seconds since a time as the API writes it; None where that is not known."""
        if not moment or self.now is None:
            return None
        return (self.now - datetime.fromisoformat(moment)).total_seconds()

    def manifest(self, daemonset: WorkloadView) -> Tree:
        """Return a DaemonSet as the API has it; empty when it was not read."""
        return self.daemonsets.get((daemonset.namespace, daemonset.name), {})

    def pods_of(self, daemonset: WorkloadView) -> tuple[PodFacts, ...]:
        """List the pods of a DaemonSet that are not terminating."""
        return tuple(self._owned.get((daemonset.namespace, daemonset.name), ()))

    def pods_on(self, node: str, daemonset: WorkloadView | None = None) -> tuple[PodFacts, ...]:
        """List the pods on a node or scheduled to it; of a DaemonSet, only those that are not terminating."""
        here = self._placed.get(node, ())
        if daemonset is None:
            return tuple(here)
        desired = ("DaemonSet", daemonset.namespace, daemonset.name)
        return tuple(
            pod
            for pod in here
            if (pod.view.owner_kind, pod.view.namespace, pod.view.owner) == desired and not pod.view.terminating
        )
