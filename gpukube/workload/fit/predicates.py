"""Why a pod cannot run on a node: the default scheduler's filters for a single node, in its order.

Pure. In scope: taints, node selector and affinity, resources. Out of scope: filters that count pods on other nodes
(`neighbours`), which node is best (`packing`). Not modeled: host ports, volumes. A cordoned node is one with the taint
that Kubernetes adds. A pod that names its node bypasses the scheduler: NoSchedule taints do not keep it off, the
kubelet's admission does the rest.

Source: kubernetes/kubernetes pkg/scheduler/framework/plugins (tainttoleration, nodeaffinity, noderesources) and
plugin/pkg/admission/extendedresourcetoleration; kubernetes/api core/v1/toleration.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from gpukube.core.hugepages import HUGE
from gpukube.core.jsontree import text
from gpukube.workload.fit.nodes import CORDON
from gpukube.workload.quantity import cpu_text, memory_text
from gpukube.workload.selectors import matches_term

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpukube.core.jsontree import Tree
    from gpukube.core.values import Taint
    from gpukube.workload.fit.nodes import Node
    from gpukube.workload.fit.pods import Pod

Kind = Literal[
    "node-name",
    "taint",
    "selector",
    "affinity",
    "resource",
    "pods",
    "share",
    "claim",
    "claim-error",
    "claim-unknown",
    "spread",
    "pod-affinity",
    "pod-anti-affinity",
]


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a pod cannot run on a node.

    Attributes:
        kind: Filter that rejects it.
        text: Human-readable: "untolerated taint sku=gpu:NoSchedule".
        subject: Taint as key=value:Effect, key of the label, name of the resource, topology key.
        lasting: Whether the node would reject the pod even without other pods.
    """

    kind: Kind
    text: str
    subject: str = ""
    lasting: bool = True


def why_not(pod: Pod, node: Node) -> Obstacle | None:
    """Return the first reason why a pod cannot run on a node, regardless of other nodes' pods; None if it can.

    Args:
        pod: A pod that is not on the node yet.
        node: The node with its current pods.
    """
    return next(obstacles(pod, node), None)


def may_go(pod: Pod, node: Node) -> bool:
    """Return whether `why_not` finds no reason; the most common one, too few devices, is checked first."""
    shape, used = node.shape, node.devices
    for name, count in pod.request.devices.items():
        if not shape.published.devices and (has := shape.count(name)) is not None and has - used[name] < count:
            return False
    return why_not(pod, node) is None


def obstacles(pod: Pod, node: Node) -> Iterator[Obstacle]:
    """Yield all reasons why a pod cannot run on a node, in the order of the scheduler's filters."""
    if pod.node_name and pod.node_name != node.name:
        yield Obstacle("node-name", f"nodeName is {pod.node_name}", pod.node_name)
    for taint in node.shape.taints:
        if pod.node_name and taint.effect == "NoSchedule":
            continue
        if taint.effect != "PreferNoSchedule" and not tolerates(pod, node, taint):
            seen = "the node is cordoned" if taint.key == CORDON else f"untolerated taint {taint}"
            yield Obstacle("taint", seen, str(taint))
    yield from _selection(pod, node)
    yield from _room(pod, node)
    yield from _claims(pod, node)
    if pod.largest > 1 and node.offer is not None and node.offer.single:
        # The scheduler does not check this: such a pod fails on the node (UnexpectedAdmissionError).
        yield Obstacle("share", f"the device plugin rejects {pod.largest} shares for one container")


def tolerates(pod: Pod, node: Node, taint: Taint) -> bool:
    """Return whether a pod tolerates a taint, including tolerations that the cluster's admission adds."""
    if node.tolerates_resources and taint.effect == "NoSchedule" and taint.key in pod.names:
        return True
    if node.offer is not None and node.offer.class_key == taint.key and pod.selector.get(taint.key) == taint.value:
        return True
    return any(_matches(toleration, taint) for toleration in pod.tolerations)


def selects(pod: Pod, node: Node) -> bool:
    """Return whether a pod's nodeSelector and required node affinity match a node."""
    return next(_selection(pod, node), None) is None


def _matches(toleration: Tree, taint: Taint) -> bool:
    if text(toleration, "effect") not in {"", taint.effect}:
        return False
    key, operator = text(toleration, "key"), text(toleration, "operator") or "Equal"
    if key not in {"", taint.key}:
        return False
    # An empty key means every taint, but only with Exists.
    return operator == "Exists" or (operator == "Equal" and bool(key) and text(toleration, "value") == taint.value)


def _selection(pod: Pod, node: Node) -> Iterator[Obstacle]:
    for key, value in pod.selector.items():
        found = node.labels.get(key)
        if found != value:
            has = f"{key} is {found}" if found is not None else f"no label {key}"
            yield Obstacle("selector", f"{has}, the nodeSelector requires {value}", key)
    if pod.terms is not None and not any(matches_term(term, node.labels, node.name) for term in pod.terms):
        yield Obstacle("affinity", "the required node affinity does not match")


def _room(pod: Pod, node: Node) -> Iterator[Obstacle]:
    if node.shape.pods is not None and node.pods.total() + 1 > node.shape.pods:
        yield Obstacle("pods", f"too many pods: {node.shape.pods} at most", "pods", lasting=node.shape.pods < 1)
    request = pod.request
    if request.cpu and node.shape.cpu is not None:
        yield from _amount("cpu", request.cpu, (node.shape.cpu, node.cpu), cpu_text)
    if request.memory and node.shape.memory is not None:
        yield from _amount("memory", request.memory, (node.shape.memory, node.memory), memory_text)
    delegated = {claim.resource for claim in node.claimed_by(pod)}
    for name, count in request.devices.items():
        if name not in delegated and (has := node.shape.count(name)) is not None:
            yield from _amount(name, count, (has, node.devices[name]), str)
    for name, size in request.others.items():
        if name in node.shape.others or name.startswith(HUGE):
            yield from _amount(name, size, (node.shape.others.get(name, 0), node.others[name]), memory_text)


def _claims(pod: Pod, node: Node) -> Iterator[Obstacle]:
    if not node.claimed_by(pod):
        return
    verdict = node.verdict(pod)
    if verdict.unknown:
        yield Obstacle("claim-unknown", f"claims: unknown: {verdict.unknown}")
    elif verdict.devices is None:
        yield Obstacle("claim-error" if verdict.blocks else "claim", f"claims: {verdict.why}", lasting=not node.in_use)


def _amount(name: str, requested: int, room: tuple[int, int], write: Callable[[int], str]) -> Iterator[Obstacle]:
    has, used = room
    if requested <= has - used:
        return
    if not has:
        seen = f"the node has no {name}"
    elif requested > has:
        seen = f"{name}: {write(requested)} requested, a node has {write(has)}"
    else:
        seen = f"{name}: {write(requested)} requested, {write(max(has - used, 0))} of {write(has)} free"
    yield Obstacle("resource", seen, name, lasting=requested > has)
