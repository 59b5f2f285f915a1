"""Clusters, pools, nodes, and devices, with the pods that hold them or wait for them: values. Pure.

Which pod has which device is known only where something publishes it: the claims of Dynamic Resource Allocation name
devices. The device plugin's API names none (kubelet podresources is on the node only), so elsewhere a node has counts
per resource and the pods that request them, and no device has a holder.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from gpukube.core.prices import UNPRICED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.prices import NodePrice
    from gpukube.core.values import ClusterRef, PoolState
    from gpukube.errors import GpukubeError
    from gpukube.gpu.machine import Machine

DeviceKind = Literal["gpu", "instance", "share"]
DeviceState = Literal["held", "free", "unusable", "unhealthy", "notAdvertised"]
NodeState = Literal["ready", "starting", "cordoned", "leaving", "notReady"]


@dataclass(frozen=True, slots=True, order=True)
class Holder:
    """Who holds a device.

    Attributes:
        namespace: Namespace of pod and claim.
        pod: The pod; "" for a claim that no pod uses.
        claim: The ResourceClaim.
    """

    namespace: str
    pod: str
    claim: str


@dataclass(frozen=True, slots=True)
class Unit:
    """What one device of a resource is.

    Attributes:
        kind: A whole GPU, a MIG instance, or a share of either.
        profile: Profile of the instance, or of the instance that is shared; "" for GPUs.
        per_gpu: Devices per GPU; None if unknown, as for a mix of profiles.
        weight: Part of a GPU that it takes, to divide the price of a node.
    """

    kind: DeviceKind
    profile: str = ""
    per_gpu: int | None = 1
    weight: float = 1.0


WHOLE = Unit("gpu")


@dataclass(frozen=True, slots=True)
class Stock:
    """The devices of one resource on one node, each in one state.

    Attributes:
        resource: Name that pods request, or class that they claim.
        unit: What one device is.
        held: Requested by pods, or allocated to claims.
        free: A pod can get them now.
        unusable: Nobody holds them, but the node takes no pods.
        unhealthy: Advertised as unhealthy, or tainted, and not held.
        not_advertised: The machine has them, but nothing advertises them.
        held_unhealthy: Of those held, how many are unhealthy at least.
    """

    resource: str
    unit: Unit
    held: int = 0
    free: int = 0
    unusable: int = 0
    unhealthy: int = 0
    not_advertised: int = 0
    held_unhealthy: int = 0

    @property
    def total(self) -> int:
        """All devices."""
        return self.held + self.free + self.unusable + self.unhealthy + self.not_advertised


@dataclass(frozen=True, slots=True)
class Device:
    """A device that a driver publishes by name.

    Attributes:
        gpu: UUID of its GPU, or its own.
        name: Name in its pool of devices.
        resource: Class that pods claim.
        profile: MIG profile; "" for a GPU.
        state: Its state.
        reason: Why it is unhealthy or not advertised; "" otherwise.
        holders: Pods that hold it, or the claim; empty unless held.
    """

    gpu: str
    name: str
    resource: str
    profile: str
    state: DeviceState
    reason: str = ""
    holders: tuple[Holder, ...] = ()


@dataclass(frozen=True, slots=True)
class PodUse:
    """A pod that holds devices.

    Attributes:
        namespace, name: The pod; the name of a claim that no pod uses, with `claim_only`.
        devices: Resource or class -> devices.
        trouble: Why it does not use them: stuck or ended; "" if it runs or starts.
        claim_only: Whether it is a claim without a pod.
    """

    namespace: str
    name: str
    devices: Mapping[str, int]
    trouble: str = ""
    claim_only: bool = False


@dataclass(frozen=True, slots=True)
class Node:
    """A node with GPUs.

    Attributes:
        name: Its name.
        state: Its state.
        reason: Why it is not ready, or what removes it; "" otherwise.
        zone: Its zone; "" if unknown.
        machine: Its machine; None if the catalog lacks it.
        stocks: Devices by resource.
        devices: Devices by name, where a driver publishes them; empty elsewhere.
        pods: Pods that hold devices.
        price: Price of the node.
    """

    name: str
    state: NodeState
    reason: str
    zone: str
    machine: Machine | None
    stocks: tuple[Stock, ...]
    devices: tuple[Device, ...] = ()
    pods: tuple[PodUse, ...] = ()
    price: NodePrice = UNPRICED

    @property
    def size(self) -> float:
        """Sizes of all devices together, in GPUs."""
        return sum(stock.total * stock.unit.weight for stock in self.stocks)

    @property
    def held_share(self) -> float:
        """Part of the node that pods hold, from 0 to 1, by the sizes of devices."""
        return sum(stock.held * stock.unit.weight for stock in self.stocks) / self.size if self.size else 0.0


@dataclass(frozen=True, slots=True)
class Pool:
    """A pool with its nodes.

    Attributes:
        name: The cloud's name; "" for nodes of no pool.
        pool, owner: gpukube's marks; "" without.
        family: First pool of its family; "" for none.
        state: State of the live pool; "" for nodes of no pool.
        instance_type: The cloud's name of its machine.
        capacity: Capacity type, as in the spec; "" if unknown.
        machine: Its machine; None if the catalog lacks it.
        node_count: Nodes as the cloud counts them; None if it does not.
        nodes: Nodes in the cluster.
        starting: Nodes that the cloud counts and the cluster does not have yet.
        price: Price of one node.
    """

    name: str
    pool: str
    owner: str
    family: str
    state: PoolState | Literal[""]
    instance_type: str
    capacity: str
    machine: Machine | None
    node_count: int | None
    nodes: tuple[Node, ...]
    starting: int = 0
    price: NodePrice = UNPRICED

    @property
    def group(self) -> str:
        """Name under which people know it: its family, its name in the spec, or the cloud's."""
        return self.family or self.pool or self.name


@dataclass(frozen=True, slots=True)
class Waiting:
    """A pod that waits for devices.

    Attributes:
        namespace, name: The pod.
        devices: Resource or class -> devices.
        pool: Pool that its node selector names; "" for none.
        why: The scheduler's reason, or what holds it back.
    """

    namespace: str
    name: str
    devices: Mapping[str, int]
    pool: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster.

    Attributes:
        cluster: The cluster.
        region: Its region; "" if unknown.
        pools: Its GPU pools; nodes of no pool are the last one.
        waiting: Pods that wait for devices.
        error: Why its cloud could not be read; None if it was.
        unknown: Why its inside is unknown; "" if it is known.
    """

    cluster: ClusterRef
    region: str = ""
    pools: tuple[Pool, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    error: GpukubeError | None = None
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class World:
    """All clusters at one moment.

    Attributes:
        clusters: In the order of the spec.
        read_at: When they were read, seconds since the epoch.
        notes: What could not be read beside clusters, such as prices.
    """

    clusters: tuple[Cluster, ...]
    read_at: float
    notes: tuple[str, ...] = ()
