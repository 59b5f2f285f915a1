"""The scheduler's snapshot of the cluster in one cycle.

In scope: nodes, their pods, and used resources. Out of scope: filters (`filters`), writing to the API.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpukube_sandbox.kube.matching import allocatable_of, is_terminal, pod_requests
from gpukube_sandbox.kube.scheduler.devices import DeviceState
from gpukube_sandbox.kube.store.objects import labels, name_of, spec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpukube_sandbox.kube.store.objects import JsonObject


@dataclass(slots=True)
class NodeView:
    """One node and its pods.

    Attributes:
        node: The Node object.
        pods: Active pods bound to it.
        room: Allocatable resources, in the units of `pod_requests`.
        used: Sum of its pods' requests.
    """

    node: JsonObject
    pods: list[JsonObject] = field(default_factory=list)
    room: Counter[str] = field(default_factory=Counter)
    used: Counter[str] = field(default_factory=Counter)

    @property
    def name(self) -> str:
        """Name of the node."""
        return name_of(self.node)

    @property
    def marks(self) -> dict[str, str]:
        """Labels of the node."""
        return labels(self.node)

    def take(self, pod: JsonObject) -> None:
        """Add a pod to the node."""
        self.pods.append(pod)
        self.used.update(pod_requests(pod))

    def without(self, gone: Iterable[JsonObject]) -> NodeView:
        """Return the node without some of its pods."""
        uids = {id(pod) for pod in gone}
        view = NodeView(self.node, room=self.room)
        for pod in self.pods:
            if id(pod) not in uids:
                view.take(pod)
        return view


@dataclass(slots=True)
class Snapshot:
    """All nodes.

    Attributes:
        nodes: Name -> node.
        namespaces: Name -> labels, for affinity terms that select namespaces.
        devices: Slices, classes and claims of dynamic resource allocation.
    """

    nodes: dict[str, NodeView]
    namespaces: dict[str, dict[str, str]]
    devices: DeviceState = field(default_factory=DeviceState)

    def replaced(self, view: NodeView) -> Snapshot:
        """Return the snapshot with one node replaced."""
        return Snapshot({**self.nodes, view.name: view}, self.namespaces, self.devices)

    def added(self, view: NodeView, slices: Iterable[JsonObject]) -> Snapshot:
        """Return the snapshot with a node and its devices, of which pods can take some without changing this one."""
        return Snapshot({**self.nodes, view.name: view}, self.namespaces, self.devices.with_slices(slices))


def take_snapshot(
    nodes: Iterable[JsonObject],
    pods: Iterable[JsonObject],
    namespaces: Iterable[JsonObject],
    devices: DeviceState | None = None,
) -> Snapshot:
    """Return a snapshot of nodes, pods and devices."""
    views = {name_of(node): NodeView(node, room=allocatable_of(node)) for node in nodes}
    for pod in pods:
        view = views.get(spec(pod).get("nodeName") or "")
        if view and not is_terminal(pod):
            view.take(pod)
    return Snapshot(views, {name_of(item): labels(item) for item in namespaces}, devices or DeviceState())
