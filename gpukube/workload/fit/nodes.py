"""A node as the scheduler counts: its capacity, and what the pods on it leave.

Pure. In scope: adding pods. Out of scope: whether a pod can run there (`predicates`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING, Final, get_args

from gpukube.core.jsontree import at, number, text, texts, trees
from gpukube.core.values import Taint, TaintEffect
from gpukube.workload.devices import NOTHING, Published
from gpukube.workload.fit.claiming import Board
from gpukube.workload.offers import NodeShape
from gpukube.workload.quantity import parse_quantity
from gpukube.workload.requests import is_extended, is_other

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.jsontree import Tree
    from gpukube.workload.claims import PodClaim
    from gpukube.workload.fit.allocation import DeviceKey, Verdict
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
        name: Name in the cluster; made up for a node that does not exist.
        cluster: Key of its cluster.
        shape: Its capacity.
        labels: All labels, including zone and host name.
        tolerates_resources: Whether the cluster's admission adds a toleration for each extended resource that a pod
            names.
        offer: Its pool; None if it is not in the spec.
        new: Whether an autoscaler must start it.
        pods: Pods on it -> count.
        cpu, memory, devices, others: Total requests of these pods.
        board: The claims of its cluster.
        in_use: Published devices that claims have.
        granted: Pod -> the devices that each of the equal pods has by its own claims.
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
    board: Board = field(default_factory=Board)
    in_use: set[DeviceKey] = field(default_factory=set)
    granted: dict[Pod, list[tuple[DeviceKey, ...]]] = field(default_factory=dict)

    @property
    def zone(self) -> str:
        """Its zone; "" if unknown."""
        return self.labels.get(ZONE, "")

    def take(self, pod: Pod, count: int = 1) -> None:
        """Add pods to the node; a negative count removes them."""
        self.pods[pod] += count
        if not self.pods[pod]:
            del self.pods[pod]
        self.cpu += count * pod.request.cpu
        self.memory += count * pod.request.memory
        for name, requested in pod.request.devices.items():
            self.devices[name] += count * requested
        for name, requested in pod.request.others.items():
            self.others[name] += count * requested
        for _ in range(abs(count) if self.claimed_by(pod) or pod in self.granted else 0):
            if count > 0:
                self._grant(pod)
            else:
                self._release(pod)

    def claimed_by(self, pod: Pod) -> tuple[PodClaim, ...]:
        """Return the claims of a pod here, with one for extended resources that a class serves on this node."""
        return self.board.claims_of(pod, self.shape) if pod.claims or pod.request.devices else ()

    def verdict(self, pod: Pod) -> Verdict:
        """Return which devices the claims of one more pod would get."""
        return self.board.verdict(self.claimed_by(pod), self.shape.published, self.in_use, self.name, self.labels)

    def _grant(self, pod: Pod) -> None:
        claims = self.claimed_by(pod)
        found = self.verdict(pod).devices or ()
        own: list[DeviceKey] = []
        for claim, devices in zip(self.board.open(claims), found, strict=False):
            if claim.shared:
                self.board.hold(claim, self.name, devices)
            else:
                own += devices
            self.in_use |= set(devices)
        self.board.use(claims)
        self.granted.setdefault(pod, []).append(tuple(own))

    def _release(self, pod: Pod) -> None:
        if not self.granted.get(pod):
            return
        self.in_use -= set(self.granted[pod].pop())
        if not self.granted[pod]:
            del self.granted[pod]
        for devices in self.board.leave(self.claimed_by(pod)):
            self.in_use -= set(devices)

    def free_cpu(self) -> int | None:
        """Return the free millicores; None if unknown."""
        return None if self.shape.cpu is None else self.shape.cpu - self.cpu

    def free_memory(self) -> int | None:
        """Return the free bytes; None if unknown."""
        return None if self.shape.memory is None else self.shape.memory - self.memory

    def free_pods(self) -> int | None:
        """Return how many more pods it can have; None if unknown."""
        return None if self.shape.pods is None else self.shape.pods - self.pods.total()

    def free_devices(self) -> dict[str, int]:
        """Return the free devices, including those that claims request."""
        free = {name: count - self.devices[name] for name, count in self.shape.devices.items()}
        return free | self.shape.published.free(self.in_use)


def read_node(
    obj: Tree,
    cluster: str,
    *,
    tolerates_resources: bool,
    offer: PoolOffer | None = None,
    published: Published = NOTHING,
) -> Node:
    """Read a live node, without pods; its capacity for pods is its allocatable.

    Args:
        obj: Object from the Kubernetes API.
        cluster: Key of its cluster.
        tolerates_resources: See Node.
        offer: Its pool; None if it is not in the spec.
        published: Devices that claims request.
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
        published=published,
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
