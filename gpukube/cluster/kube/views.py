"""The parts of Kubernetes objects that gpukube reads, as frozen values.

In scope: the views and how to read them from the API's JSON. Out of scope: I/O, and what a value means.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Final, get_args

from gpukube.core.jsontree import Tree, at, items, number, text, texts, tree
from gpukube.core.owners import MIG_STATE_LABEL
from gpukube.core.values import Taint, TaintEffect

if TYPE_CHECKING:
    from collections.abc import Mapping

CORDON: Final = "node.kubernetes.io/unschedulable"
"""Taint on a cordoned node (Kubernetes documentation, "Taints and Tolerations")."""
DEVICE_PREFIX: Final = "nvidia.com/"
"""Domain of all extended resources of the NVIDIA stack (NVIDIA/k8s-device-plugin internal/rm, v0.20.0)."""
GENERATION: Final = "pod-template-generation"
"""Label on a DaemonSet's pod: generation of the template it was created from (kubernetes
pkg/controller/daemon/util)."""
_GENERATION_NOW: Final = "deprecated.daemonset.template.generation"
"""Annotation on a DaemonSet: its current template generation, raised together with the template (apps/v1
DeprecatedTemplateGeneration). Rolling back to an earlier template keeps the pods created from it, whose generation is
then lower: the status reports them as up to date."""
NO_IMAGE: Final = ("ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull")
NO_MOUNT: Final = ("CreateContainerConfigError", "CreateContainerError")
"""Reasons of containers that wait for an image, or for what they mount (kubernetes pkg/kubelet/images/types.go and
kuberuntime/kuberuntime_container.go)."""
_MIRROR: Final = "kubernetes.io/config.mirror"
"""Annotation of a pod that the kubelet runs from a file (k8s.io/api core/v1 MirrorPodAnnotationKey)."""
_EFFECTS: Final[dict[str, TaintEffect]] = {name: name for name in get_args(TaintEffect)}


@dataclass(frozen=True, slots=True, order=True)
class Toleration:
    """A toleration as in the API; an empty key or effect matches any."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True)
class Placement:
    """The three fields of a pod spec that choose nodes."""

    node_selector: Mapping[str, str] = field(default_factory=dict)
    affinity: Tree = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()


@dataclass(frozen=True, slots=True)
class ConditionView:
    """Details of a node condition.

    Attributes:
        reason, message: As written by the kubelet or a controller; "" if missing.
        since: lastTransitionTime as in the API; "" if missing.
    """

    reason: str = ""
    message: str = ""
    since: str = ""

    def __str__(self) -> str:
        """Render reason and message in one line; "" if both are missing."""
        return ": ".join(part for part in (self.reason, " ".join(self.message.split())) if part)


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node.

    Attributes:
        conditions: Type -> "True", "False" or "Unknown".
        created: metadata.creationTimestamp as in the API.
        layout_changed: When the MIG manager's state label was last written, as the API records it; "" if unknown.
        kubelet: Version of its kubelet, "v1.34.2".
        unschedulable: Whether its spec marks it as unschedulable.
        condition_views: Condition type -> details.
    """

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    capacity: Mapping[str, str]
    allocatable: Mapping[str, str]
    conditions: Mapping[str, str]
    os_image: str
    created: str
    layout_changed: str = ""
    kubelet: str = ""
    unschedulable: bool = False
    condition_views: Mapping[str, ConditionView] = field(default_factory=dict)

    @property
    def ready(self) -> bool:
        """Whether the kubelet reports Ready."""
        return self.conditions.get("Ready") == "True"

    @property
    def cordoned(self) -> bool:
        """Whether it accepts no new pods: cordoned by hand, by a drain, or by an upgrade.

        The taint follows the spec once the node lifecycle controller has processed it.
        """
        return self.unschedulable or any(taint.key == CORDON for taint in self.taints)

    @property
    def devices(self) -> dict[str, int]:
        """Allocatable nvidia.com/* resources -> devices."""
        return devices_of(self.allocatable)


@dataclass(frozen=True, slots=True)
class ContainerView:
    """A container of a pod template.

    Attributes:
        env: Environment variables with plain values.
    """

    name: str
    image: str
    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WorkloadView:
    """A DaemonSet or a Deployment.

    Attributes:
        desired, ready: Pod counts from the status.
        replicas: Declared replicas of a Deployment; 1 for a DaemonSet, which declares none.
        generation: Template generation of a DaemonSet, as its pods have it (GENERATION); "" if unknown.
        rolled_out: Whether all pods are of the newest template.
    """

    kind: str
    name: str
    namespace: str
    labels: Mapping[str, str]
    pod_labels: Mapping[str, str]
    placement: Placement
    containers: tuple[ContainerView, ...]
    desired: int
    ready: int
    replicas: int = 1
    generation: str = ""
    rolled_out: bool = True

    @property
    def images(self) -> tuple[str, ...]:
        """Images of the containers, in order."""
        return tuple(container.image for container in self.containers)

    def __str__(self) -> str:
        """Render the workload as kubectl does, with the namespace."""
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class ContainerState:
    """Status of one container of a pod.

    Attributes:
        waiting: Reason why it does not run ("CrashLoopBackOff", ...); "" if it runs or has ended.
        message: The kubelet's message.
        exit_code: Exit code of the last run; None if it never ended.
    """

    name: str
    init: bool
    ready: bool
    waiting: str
    message: str
    restarts: int
    exit_code: int | None


@dataclass(frozen=True, slots=True)
class PodView:
    """A pod.

    Attributes:
        node: Node it runs on; for an unscheduled pod of a DaemonSet, the node it is meant for.
        scheduled: Whether the scheduler has placed it.
        unschedulable: The scheduler's reason why not.
        owner_kind, owner: The controller's kind and name.
        devices: Requested nvidia.com/* resources -> count, summed over containers.
        others: The same for extended resources of other vendors.
        terminating: Whether it is being deleted.
    """

    name: str
    namespace: str
    labels: Mapping[str, str]
    node: str
    scheduled: bool
    phase: str
    ready: bool
    unschedulable: str
    containers: tuple[ContainerState, ...]
    owner_kind: str
    owner: str
    devices: Mapping[str, int]
    terminating: bool = False
    others: Mapping[str, int] = field(default_factory=dict)


def devices_of(resources: Mapping[str, str]) -> dict[str, int]:
    """Return the nvidia.com/* resources as integers."""
    return {name: number(resources, name) for name in sorted(resources) if name.startswith(DEVICE_PREFIX)}


def node_view(obj: Tree) -> NodeView:
    """Read a Node."""
    taints = (_taint(item) for item in items(obj, "spec", "taints"))
    return NodeView(
        name=text(obj, "metadata", "name"),
        labels=texts(obj, "metadata", "labels"),
        taints=tuple(taint for taint in taints if taint),
        capacity=texts(obj, "status", "capacity"),
        allocatable=texts(obj, "status", "allocatable"),
        conditions={text(item, "type"): text(item, "status") for item in items(obj, "status", "conditions")},
        os_image=text(obj, "status", "nodeInfo", "osImage"),
        created=text(obj, "metadata", "creationTimestamp"),
        layout_changed=_layout_changed(obj),
        kubelet=text(obj, "status", "nodeInfo", "kubeletVersion"),
        unschedulable=at(obj, "spec", "unschedulable") is True,
        condition_views={text(item, "type"): _condition(item) for item in items(obj, "status", "conditions")},
    )


def _condition(item: object) -> ConditionView:
    return ConditionView(text(item, "reason"), text(item, "message"), text(item, "lastTransitionTime"))


def _layout_changed(node: Tree) -> str:
    """Return when the MIG manager's state label was last written, from metadata.managedFields."""
    path = ("fieldsV1", "f:metadata", "f:labels", f"f:{MIG_STATE_LABEL}")
    times = [text(item, "time") for item in items(node, "metadata", "managedFields") if at(item, *path) is not None]
    return max(times, default="")


def _taint(item: object) -> Taint | None:
    effect = _EFFECTS.get(text(item, "effect"))
    return Taint(text(item, "key"), text(item, "value"), effect) if effect else None


def placement_of(pod_spec: object) -> Placement:
    """Read nodeSelector, affinity, and tolerations of a pod spec (or of chart values, which use the same names)."""
    return Placement(
        node_selector=texts(pod_spec, "nodeSelector"),
        affinity=tree(pod_spec, "affinity"),
        tolerations=tuple(_toleration(item) for item in items(pod_spec, "tolerations")),
    )


def _toleration(item: object) -> Toleration:
    operator = text(item, "operator") or "Equal"
    return Toleration(text(item, "key"), operator, text(item, "value"), text(item, "effect"))


def workload_view(obj: Tree, kind: str) -> WorkloadView:
    """Read a DaemonSet or a Deployment."""
    daemon = kind == "DaemonSet"
    return WorkloadView(
        kind=kind,
        name=text(obj, "metadata", "name"),
        namespace=text(obj, "metadata", "namespace"),
        labels=texts(obj, "metadata", "labels"),
        pod_labels=texts(obj, "spec", "template", "metadata", "labels"),
        placement=placement_of(tree(obj, "spec", "template", "spec")),
        containers=tuple(_container(item) for item in items(obj, "spec", "template", "spec", "containers")),
        desired=number(obj, "status", "desiredNumberScheduled" if daemon else "replicas"),
        ready=number(obj, "status", "numberReady" if daemon else "readyReplicas"),
        replicas=number(obj, "spec", "replicas") if at(obj, "spec", "replicas") is not None else 1,
        generation=text(obj, "metadata", "annotations", _GENERATION_NOW) if daemon else "",
        rolled_out=not daemon or _is_rolled_out(obj),
    )


def _is_rolled_out(daemonset: Tree) -> bool:
    if text(daemonset, "spec", "updateStrategy", "type") == "OnDelete":
        return True
    seen = number(daemonset, "status", "observedGeneration") >= number(daemonset, "metadata", "generation")
    desired = number(daemonset, "status", "desiredNumberScheduled")
    return seen and number(daemonset, "status", "updatedNumberScheduled") >= desired


def _container(item: object) -> ContainerView:
    words = (*items(item, "command"), *items(item, "args"))
    env = {text(entry, "name"): text(entry, "value") for entry in items(item, "env")}
    return ContainerView(text(item, "name"), text(item, "image"), tuple(text(word) for word in words), env)


def pod_view(obj: Tree) -> PodView:
    """Read a Pod."""
    conditions = {text(item, "type"): item for item in items(obj, "status", "conditions")}
    owner = next((ref for ref in items(obj, "metadata", "ownerReferences") if text(ref, "controller") == "true"), {})
    placed = text(obj, "spec", "nodeName")
    unplaced = text(conditions.get("PodScheduled"), "status") == "False"
    total: dict[str, int] = {}
    for container in items(obj, "spec", "containers"):
        requested = texts(container, "resources", "limits") | texts(container, "resources", "requests")
        for name in requested:
            if "/" in name:
                total[name] = total.get(name, 0) + number(requested, name)
    return PodView(
        name=text(obj, "metadata", "name"),
        namespace=text(obj, "metadata", "namespace"),
        labels=texts(obj, "metadata", "labels"),
        node=placed or _target_node(obj),
        scheduled=bool(placed),
        phase=text(obj, "status", "phase"),
        ready=text(conditions.get("Ready"), "status") == "True",
        unschedulable=text(conditions.get("PodScheduled"), "message") if unplaced else "",
        containers=(*_states(obj, "initContainerStatuses"), *_states(obj, "containerStatuses")),
        owner_kind=text(owner, "kind"),
        owner=text(owner, "name"),
        devices={name: total[name] for name in sorted(total) if name.startswith(DEVICE_PREFIX)},
        terminating=bool(text(obj, "metadata", "deletionTimestamp")),
        others={name: total[name] for name in sorted(total) if not name.startswith(DEVICE_PREFIX)},
    )


def is_drained(obj: Tree) -> bool:
    """Return whether a drain would evict a pod: it has not ended, and is neither a DaemonSet's nor a mirror pod."""
    owners = [
        text(ref, "kind") for ref in items(obj, "metadata", "ownerReferences") if text(ref, "controller") == "true"
    ]
    ended = text(obj, "status", "phase") in ("Succeeded", "Failed")
    return not ended and "DaemonSet" not in owners and not text(obj, "metadata", "annotations", _MIRROR)


def _target_node(obj: Tree) -> str:
    """Return the target node of a DaemonSet pod: its controller writes a matchFields term on metadata.name."""
    required = tree(obj, "spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    for term in items(required, "nodeSelectorTerms"):
        for match in items(term, "matchFields"):
            if text(match, "key") == "metadata.name" and len(names := items(match, "values")) == 1:
                return text(names[0])
    return ""


def _states(obj: Tree, field_name: str) -> list[ContainerState]:
    return [_state(item, init=field_name.startswith("init")) for item in items(obj, "status", field_name)]


def _state(item: object, *, init: bool) -> ContainerState:
    ended = tree(item, "lastState", "terminated") or tree(item, "state", "terminated")
    waiting = tree(item, "state", "waiting")
    return ContainerState(
        name=text(item, "name"),
        init=init,
        ready=text(item, "ready") == "true",
        waiting=text(waiting, "reason"),
        message=text(waiting, "message") or text(ended, "message"),
        restarts=number(item, "restartCount"),
        exit_code=number(ended, "exitCode") if ended else None,
    )


def timestamp(written: str) -> float | None:
    """Parse a time as the API writes it, in seconds since the epoch; return None for anything else."""
    try:
        return datetime.fromisoformat(written).timestamp()
    except ValueError:
        return None
