"""A node as the scheduler counts: what it has, and what the pods on it leave.

Pure. In scope: taking pods. Out of scope: whether a pod may go there (`predicates`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING, Final, get_args

from gpukube.core.jsontree import at, number, text, texts, trees
from gpukube.core.values import Taint, TaintEffect
from gpukube.workload.offers import NodeShape
from gpukube.workload.quantity import parse_quantity
from gpukube.workload.requests import is_extended, is_other

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.jsontree import Tree
    from gpukube.workload.fit.pods import Pod
    from gpukube.workload.offers import PoolOffer

HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
CORDON: Final = "node.kubernetes.io/unschedulable"
"""Taint of a cordoned node (Kubernetes documentation, "Taints and Tolerations")."""
_NONE: Final = Fraction()
_EFFECTS: Final[dict[str, TaintEffect]] = {name: name for name in get_args(TaintEffect)}


@dataclass(slots=True, eq=False, kw_only=True)
class Node:
    """A node with pods on it.

    Attributes:
        name: As the cluster has it; made up for one that is not there.
        cluster: Key of its cluster.
        shape: What it has.
        labels: All of them, zone and host name too.
        tolerates_resources: Whether the cluster's admission adds a toleration for each extended resource that a pod
            names.
        offer: Its pool; None when the spec does not know it.
        new: Whether an autoscaler has to start it.
        pods: Those on it, and how many of each.
        cpu, memory, devices, others: What these request.
    """

    name: str
    cluster: str
    shape: NodeShape
    labels: Mapping[str, str]
    tolerates_resources: bool
    offer: PoolOffer | None = None
    new: bool = False
    pods: Counter[Pod] = field(default_factory=Counter)
    cpu: int = 0
    memory: int = 0
    devices: Counter[str] = field(default_factory=Counter)
    others: Counter[str] = field(default_factory=Counter)

    @property
    def zone(self) -> str:
        """Its zone; "" when not known."""
        return self.labels.get(ZONE, "")

    def take(self, pod: Pod, count: int = 1) -> None:
        """Count pods that go there; a negative count takes them away."""
        self.pods[pod] += count
        if not self.pods[pod]:
            del self.pods[pod]
        self.cpu += count * pod.request.cpu
        self.memory += count * pod.request.memory
        for name, requested in pod.request.devices.items():
            self.devices[name] += count * requested
        for name, requested in pod.request.others.items():
            self.others[name] += count * requested

    def free_cpu(self) -> int | None:
        """Return the millicores that are left; None when not known."""
        return None if self.shape.cpu is None else self.shape.cpu - self.cpu

    def free_memory(self) -> int | None:
        """Return the bytes that are left; None when not known."""
        return None if self.shape.memory is None else self.shape.memory - self.memory

    def free_pods(self) -> int | None:
        """Return how many more pods it takes; None when not known."""
        return None if self.shape.pods is None else self.shape.pods - self.pods.total()

    def free_devices(self) -> dict[str, int]:
        """Return the devices that are left."""
        return {name: count - self.devices[name] for name, count in self.shape.devices.items()}


def read_node(obj: Tree, cluster: str, *, tolerates_resources: bool, offer: PoolOffer | None = None) -> Node:
    """Read a live node, without pods; what it can give to pods is its allocatable.

    Args:
        obj: As the Kubernetes API has it.
        cluster: Key of its cluster.
        tolerates_resources: See Node.
        offer: Its pool; None when the spec does not know it.
    """
    allocatable = {name: _amount(value) for name, value in texts(obj, "status", "allocatable").items()}
    taints = tuple(
        Taint(text(item, "key"), text(item, "value"), effect)
        for item in trees(obj, "spec", "taints")
        if (effect := _EFFECTS.get(text(item, "effect")))
    )
    if at(obj, "spec", "unschedulable") is True and all(taint.key != CORDON for taint in taints):
        taints = (*taints, Taint(CORDON, "", "NoSchedule"))
    labels = texts(obj, "metadata", "labels")
    shape = NodeShape(
        devices={name: floor(amount) for name, amount in allocatable.items() if is_extended(name)},
        cpu=floor(allocatable.get("cpu", _NONE) * 1000),
        memory=floor(allocatable.get("memory", _NONE)),
        pods=number(obj, "status", "allocatable", "pods"),
        labels=labels,
        taints=taints,
        others={name: floor(amount) for name, amount in allocatable.items() if is_other(name)},
    )
    name = text(obj, "metadata", "name")
    return Node(
        name=name, cluster=cluster, shape=shape, labels=labels, tolerates_resources=tolerates_resources, offer=offer
    )


def _amount(written: str) -> Fraction:
    try:
        return parse_quantity(written)
    except ValueError:
        return _NONE
