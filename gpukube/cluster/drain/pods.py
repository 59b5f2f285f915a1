"""Pods that must leave their nodes, and disruption budgets, as frozen values.

In scope: the values and how to read them from the API's JSON. Out of scope: I/O (reading), and what happens to a pod
(judge).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from gpukube.cluster.kube.views import CORDON, timestamp
from gpukube.core.jsontree import at, integer, number, text, texts, tree, trees
from gpukube.workload.selectors import Selector, read_selector

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.jsontree import Tree

MIRROR: Final = "kubernetes.io/config.mirror"
"""Annotation of a pod that the kubelet runs from a file (k8s.io/api core/v1 MirrorPodAnnotationKey)."""
SAFE_TO_EVICT: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict"
"""Annotation that the Cluster Autoscaler respects (kubernetes/autoscaler cluster-autoscaler/FAQ.md)."""
SCALE_DOWN_DISABLED: Final = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
"""The same for a node: the Cluster Autoscaler does not remove it (same page)."""
DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
"""Annotation that Karpenter respects: "true", or a duration from the pod's start (karpenter.sh docs, Disruption)."""
CAPI_DRAIN: Final = "cluster.x-k8s.io/drain"
"""Label that Cluster API respects: "skip" or "wait-completed" (kubernetes-sigs/cluster-api api/core/v1beta2)."""
_SCHEDULER: Final = "default-scheduler"
"""The scheduler that keeps pods off cordoned nodes (kubernetes pkg/scheduler/framework/plugins/nodeunschedulable)."""
_JOBSET: Final = "jobset.sigs.k8s.io/jobset-name"
_RAY_CLUSTER: Final = "ray.io/cluster"
_RAY_NODE: Final = "ray.io/node-type"
_QUEUE: Final = "kueue.x-k8s.io/queue-name"
_GRACE_S: Final = 30
"""Default of a pod that sets none (core/v1 PodSpec.terminationGracePeriodSeconds)."""
_DURATION: Final = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?:h|m|s|ms))+", re.ASCII)
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|h|m|s)", re.ASCII)
_SECONDS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}

GangKind = Literal["JobSet", "RayCluster", "Job"]


@dataclass(frozen=True, slots=True, order=True)
class Owner:
    """The controller of a pod; ("", "") if nothing recreates the pod."""

    kind: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True, order=True)
class Gang:
    """Pods that only work together."""

    kind: GangKind
    namespace: str
    name: str

    def __str__(self) -> str:
        """Render as kubectl names it, with the namespace."""
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePod:
    """A pod on a node.

    Attributes:
        stays: Why a drain skips it: owned by a DaemonSet, a mirror pod, or finished; "" if it must leave.
        gang: The pods it works with; for a Job, only if it has several.
        head: Whether it is the head of a RayCluster.
        queue: Kueue queue that its workload came from.
        empty_dirs: Volumes whose data is lost with the pod.
        started: When the kubelet accepted it, in seconds since the epoch; None if it has not.
        startup_s: Seconds until it was ready; None if it never was.
        bound: When it was bound to its node, in seconds since the epoch by the cluster's clock; None if unknown.
        workload: The workload that recreates it, as users know it: "Deployment ml/web"; "" if nothing does.
        ignores: The line of its template that lets its replacement onto a cordoned node; "" if a cordon keeps it off,
            or nothing recreates it.
    """

    namespace: str
    name: str
    uid: str
    node: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str] = field(default_factory=dict)
    phase: str = "Running"
    ready: bool = True
    terminating: bool = False
    stays: Literal["", "daemonset", "mirror", "finished"] = ""
    owner: Owner = Owner()
    gang: Gang | None = None
    head: bool = False
    queue: str = ""
    empty_dirs: tuple[str, ...] = ()
    grace_s: int = _GRACE_S
    started: float | None = None
    startup_s: float | None = None
    bound: float | None = None
    workload: str = ""
    ignores: str = ""

    def __str__(self) -> str:
        """Render as "namespace/name"."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DisruptionBudget:
    """A PodDisruptionBudget.

    Attributes:
        selector: None selects no pod; an empty one selects all pods of the namespace.
        allowed: Number of pods that may be evicted now.
        current: Whether the status is up to date with the spec (observedGeneration).
        failed: Why its controller cannot compute the numbers; "" if it can.
        max_unavailable, min_available: As written in the spec; "" if not set.
        evicts_unhealthy: Whether unready pods may always be evicted (unhealthyPodEvictionPolicy: AlwaysAllow).
    """

    namespace: str
    name: str
    selector: Selector | None
    allowed: int = 0
    expected: int = 0
    healthy: int = 0
    needed: int = 0
    current: bool = True
    failed: str = ""
    max_unavailable: str = ""
    min_available: str = ""
    evicts_unhealthy: bool = False

    def __str__(self) -> str:
        """Render as "namespace/name"."""
        return f"{self.namespace}/{self.name}"

    def covers(self, pod: NodePod) -> bool:
        """Return whether the budget covers a pod."""
        return self.namespace == pod.namespace and self.selector is not None and self.selector.matches(pod.labels)


def node_pod(obj: Tree, controller: Tree | None = None) -> NodePod:
    """Read a Pod.

    Args:
        obj: The Pod.
        controller: The object that created it, if it was read; provides its own owner and the pod template.
    """
    meta, spec, status = tree(obj, "metadata"), tree(obj, "spec"), tree(obj, "status")
    labels = texts(meta, "labels")
    owner = next((ref for ref in trees(meta, "ownerReferences") if at(ref, "controller") is True), {})
    started = timestamp(text(status, "startTime"))
    ready = next((item for item in trees(status, "conditions") if text(item, "type") == "Ready"), {})
    since = timestamp(text(ready, "lastTransitionTime")) if text(ready, "status") == "True" else None
    return NodePod(
        namespace=text(meta, "namespace"),
        name=text(meta, "name"),
        uid=text(meta, "uid"),
        node=text(spec, "nodeName"),
        labels=labels,
        annotations=texts(meta, "annotations"),
        phase=text(status, "phase"),
        ready=text(ready, "status") == "True",
        terminating=bool(text(meta, "deletionTimestamp")),
        stays=_stays(meta, text(owner, "kind"), text(status, "phase")),
        owner=Owner(text(owner, "kind"), text(owner, "name")),
        gang=_gang(labels, owner, text(meta, "namespace")),
        head=labels.get(_RAY_NODE) == "head" and _RAY_CLUSTER in labels,
        queue=labels.get(_QUEUE, ""),
        empty_dirs=tuple(
            text(volume, "name") for volume in trees(spec, "volumes") if at(volume, "emptyDir") is not None
        ),
        grace_s=_GRACE_S if (grace := integer(spec, "terminationGracePeriodSeconds")) is None else grace,
        started=started,
        # Both times are from the kubelet's clock.
        startup_s=max(0.0, since - started) if since is not None and started is not None else None,
        bound=_bound(meta, status, named=bool(_named_node(controller))),
        workload=_workload(owner, text(meta, "namespace"), controller),
        ignores=_ignored(spec, controller) if owner else "",
    )


def _named_node(controller: Tree | None) -> str:
    return text(controller, "spec", "template", "spec", "nodeName")


def _bound(meta: Tree, status: Tree, *, named: bool) -> float | None:
    """Return when a pod was bound, by its condition; a pod that names its node is bound when created.

    Source: kubernetes pkg/registry/core/pod/storage (BindingREST.setPodHostAndAnnotations; the API server writes the
    condition).
    """
    if named:
        return timestamp(text(meta, "creationTimestamp"))
    placed = next((item for item in trees(status, "conditions") if text(item, "type") == "PodScheduled"), {})
    since = timestamp(text(placed, "lastTransitionTime")) if text(placed, "status") == "True" else None
    made = timestamp(text(meta, "creationTimestamp"))
    return max((moment for moment in (since, made) if moment is not None), default=None)


def _workload(owner: Tree, namespace: str, controller: Tree | None) -> str:
    above = next((ref for ref in trees(controller, "metadata", "ownerReferences") if at(ref, "controller") is True), {})
    top = above or owner
    return f"{text(top, 'kind')} {namespace}/{text(top, 'name')}" if top else ""


def _ignored(spec: Tree, controller: Tree | None) -> str:
    """Return the line of a pod template that lets its pods onto cordoned nodes.

    Source: kubernetes pkg/scheduler/framework/plugins/nodeunschedulable. A cordon is a taint, which can be tolerated;
    it does not apply to pods that name their node or another scheduler.
    """
    if node := _named_node(controller):
        return f"nodeName: {node}"
    scheduler = text(spec, "schedulerName")
    if scheduler not in ("", _SCHEDULER):
        return f"schedulerName: {scheduler}"
    tolerated = next((item for item in trees(spec, "tolerations") if _tolerates_cordon(item)), None)
    if tolerated is None:
        return ""
    return f"tolerations: [{{{', '.join(f'{key}: {value}' for key, value in tolerated.items())}}}]"


def _tolerates_cordon(toleration: Tree) -> bool:
    """Return whether a toleration covers node.kubernetes.io/unschedulable:NoSchedule (core/v1 ToleratesTaint)."""
    if text(toleration, "effect") not in ("", "NoSchedule"):
        return False
    key, exists = text(toleration, "key"), text(toleration, "operator") == "Exists"
    return key in ("", CORDON) and (exists or (key == CORDON and not text(toleration, "value")))


def _stays(meta: Tree, owner: str, phase: str) -> Literal["", "daemonset", "mirror", "finished"]:
    """Return why kubectl drain skips the pod, too (k8s.io/kubectl pkg/drain/filters.go)."""
    if phase in ("Succeeded", "Failed"):
        return "finished"
    if owner == "DaemonSet":
        return "daemonset"
    return "mirror" if MIRROR in texts(meta, "annotations") else ""


def _gang(labels: Mapping[str, str], owner: Tree, namespace: str) -> Gang | None:
    """Return the gang that a pod belongs to; for a Job's pod the Job, even if it is the only pod."""
    if labels.get(_JOBSET):
        return Gang("JobSet", namespace, labels[_JOBSET])
    if labels.get(_RAY_CLUSTER):
        return Gang("RayCluster", namespace, labels[_RAY_CLUSTER])
    return Gang("Job", namespace, text(owner, "name")) if text(owner, "kind") == "Job" else None


def disruption_budget(obj: Tree) -> DisruptionBudget:
    """Read a PodDisruptionBudget of policy/v1."""
    spec, status = tree(obj, "spec"), tree(obj, "status")
    allowed = next((item for item in trees(status, "conditions") if text(item, "type") == "DisruptionAllowed"), {})
    failed = text(allowed, "reason") == "SyncFailed"
    return DisruptionBudget(
        namespace=text(obj, "metadata", "namespace"),
        name=text(obj, "metadata", "name"),
        selector=read_selector(at(spec, "selector")),
        allowed=number(status, "disruptionsAllowed"),
        expected=number(status, "expectedPods"),
        healthy=number(status, "currentHealthy"),
        needed=number(status, "desiredHealthy"),
        current=number(status, "observedGeneration") >= number(obj, "metadata", "generation"),
        failed=(text(allowed, "message") or "its status cannot be computed") if failed else "",
        max_unavailable=text(spec, "maxUnavailable"),
        min_available=text(spec, "minAvailable"),
        evicts_unhealthy=text(spec, "unhealthyPodEvictionPolicy") == "AlwaysAllow",
    )


def go_duration(written: str) -> float | None:
    """Parse a duration as Go writes it ("4h", "1h30m"), in seconds; return None for anything else."""
    if not _DURATION.fullmatch(written):
        return None
    return sum(float(amount) * _SECONDS[unit] for amount, unit in _PART.findall(written))
