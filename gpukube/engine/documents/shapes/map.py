"""The shape of the map: clusters, pools, nodes, and devices, with the pods that hold them or wait for them."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from gpukube.engine.documents.shapes.parts import (  # noqa: TC001 - the schema generator reads these at run time
    Diagnostic,
    GpuModel,
    MergedPart,
    ScopePart,
    ShardPart,
)
from gpukube.engine.documents.shapes.prices import CostPart, UsdPart  # noqa: TC001 - as above


class MapStock(TypedDict):
    """Devices of one resource, each in one state: the states add up to the total."""

    resource: str
    """Name that pods request, or class that they claim: nvidia.com/gpu, mig.nvidia.com/1g.5gb."""
    kind: Literal["gpu", "instance", "share"]
    """What one device is: a GPU, a MIG instance, or a share of either."""
    profile: str
    """MIG profile; empty for GPUs."""
    perGpu: int | None
    """Devices per GPU; null if unknown, as for a mix of profiles."""
    total: int
    """All devices, with those that nothing advertises."""
    held: int
    """Requested by pods that are bound to the node, or allocated to claims."""
    free: int
    """A pod can get them now."""
    unusable: int
    """Nobody holds them, but the node takes no pods."""
    unhealthy: int
    """Advertised and unhealthy, or tainted, and not held."""
    notAdvertised: int
    """The machine has them, and nothing advertises them."""
    heldUnhealthy: int
    """Part of `held` that is unhealthy, at least."""


class MapHolder(TypedDict):
    """Who holds a device, as its claim publishes it."""

    namespace: str
    """Namespace of pod and claim."""
    pod: str
    """Name of the pod; empty if no pod uses the claim."""
    claim: str
    """Name of the ResourceClaim."""


class MapDevice(TypedDict):
    """A device that a driver publishes by name."""

    gpu: str
    """UUID of its GPU: devices of one GPU have the same."""
    name: str
    """Name in its pool of devices."""
    resource: str
    """Class that pods claim."""
    profile: str
    """MIG profile; empty for a GPU."""
    state: Literal["held", "free", "unusable", "unhealthy", "notAdvertised"]
    """As in the counts of the node."""
    reason: str
    """Why it is unhealthy or not advertised; empty otherwise."""
    holders: list[MapHolder]
    """Who holds it; empty if nobody does."""


class MapPod(TypedDict):
    """A pod that holds devices of a node."""

    namespace: str
    """Its namespace."""
    name: str
    """Its name; that of a claim with `claimOnly`."""
    devices: dict[str, int]
    """Resource or class -> devices."""
    trouble: str
    """Why it does not use them: CrashLoopBackOff, completed; empty if it runs or starts."""
    claimOnly: bool
    """Whether it is a claim that no pod uses."""


class MapNode(TypedDict):
    """A node."""

    name: str
    """Its name."""
    state: Literal["ready", "starting", "cordoned", "leaving", "notReady"]
    """Only ready nodes take pods."""
    reason: str
    """Why it is not ready, or what removes it; empty otherwise."""
    zone: str
    """Its zone; empty if unknown."""
    gpus: float | None
    """GPUs of its machine; null if the machine is not in the catalog."""
    attribution: Literal["devices", "counts"]
    """devices: `devices` lists them, and who holds each. counts: nothing publishes which pod has which device."""
    why: str
    """Where the attribution comes from, or why there is none."""
    stocks: list[MapStock]
    """Devices by resource."""
    devices: list[MapDevice]
    """Devices by name; empty with attribution counts."""
    pods: list[MapPod]
    """Pods that hold devices of the node, by namespace and name."""
    heldBy: dict[str, dict[str, int]]
    """Namespace -> resource or class -> devices that its pods and claims hold; one that several share counts once."""


class MapPool(TypedDict):
    """A pool."""

    name: str
    """The cloud's name; empty for the nodes of no pool."""
    pool: str
    """Name in its spec according to its label; empty if it has none."""
    family: str
    """First pool of its family; empty if it has none."""
    owner: str
    """Owner according to its label; empty if it has none."""
    state: Literal["ready", "busy", "failed", "deleting", ""]
    """State of the pool in gpukube's terms; empty for the nodes of no pool."""
    instanceType: str
    """Type as the cloud spells it; empty for the nodes of no pool."""
    gpu: GpuModel | None
    """GPUs of each node; null if the machine is not in the catalog."""
    nodeCount: int | None
    """Nodes as the cloud counts them; null if it does not."""
    starting: int
    """Nodes that the cloud counts and that are not in the cluster yet."""
    stocks: list[MapStock]
    """Devices of all nodes by resource."""
    nodes: list[MapNode]
    """Nodes in the cluster, by name; empty if the inside of the cluster is unknown."""
    cost: CostPart
    """What its nodes cost."""
    rough: bool
    """Whether the price of another region is used."""
    asOf: str
    """Date on which the price was read, YYYY-MM-DD; empty if unknown."""
    noPrice: str
    """Why the price of its nodes is unknown; empty if it is known."""


class MapWaiting(TypedDict):
    """A pod that waits for devices."""

    namespace: str
    """Its namespace."""
    name: str
    """Its name."""
    devices: dict[str, int]
    """Resource or class -> devices."""
    pool: str
    """Pool that its node selector names; empty if it names none."""
    why: str
    """The scheduler's reason; empty if it has not tried yet."""


class HeldPart(TypedDict):
    """Devices of one kind that are held."""

    resource: str
    """Name that pods request, or class that they claim."""
    kind: Literal["gpu", "instance", "share"]
    """What one device is: a GPU, a MIG instance, or a share of either."""
    profile: str
    """MIG profile; empty for GPUs."""
    count: int
    """Number of devices."""


class NamespacePart(TypedDict):
    """A namespace of one cluster, or of all."""

    namespace: str
    """Its name."""
    held: list[HeldPart]
    """Devices that its pods and claims hold; one that several of its pods share counts once."""
    unpriced: list[HeldPart]
    """Those of `held` on nodes whose price is unknown, or that are reserved."""
    waiting: dict[str, int]
    """Resource or class -> devices that its pods wait for."""
    pods: int
    """Pods, and claims without a pod, that hold devices."""
    heldUsdPerHour: UsdPart
    """Price of what it holds, without `unpriced`."""


class MapCluster(TypedDict):
    """A cluster."""

    cluster: str
    """Key in the spec."""
    provider: str
    """Cloud."""
    region: str
    """Region; empty if unknown."""
    error: list[Diagnostic] | None
    """Why it could not be read."""
    unknown: str
    """Why the inside of the cluster is unknown; empty if it is known."""
    pools: list[MapPool]
    """Pools with GPUs, and pools with gpukube's labels; the nodes of no pool are the last one."""
    namespaces: list[NamespacePart]
    """Namespaces whose pods hold devices or wait for them, by name."""
    waiting: list[MapWaiting]
    """Pods that wait for devices, by namespace and name."""


class MapSum(TypedDict):
    """Sums over all clusters that could be read."""

    clusters: int
    """Clusters."""
    unread: int
    """Clusters whose cloud or inside could not be read."""
    nodes: int
    """Nodes in the clusters."""
    starting: int
    """Nodes that clouds count and that are in no cluster yet."""
    gpus: float
    """Physical GPUs of the nodes whose machine is known."""
    stocks: list[MapStock]
    """Devices of all nodes by resource; `perGpu` is null where nodes differ."""
    waiting: dict[str, int]
    """Resource or class -> devices that pods wait for."""
    cost: CostPart
    """What the nodes cost."""


class MapView(TypedDict):
    """How the map was requested; the data are the same."""

    by: Literal["pool", "namespace"]
    """What the picture is ordered by."""
    free: bool
    """Whether the picture has only nodes with free devices."""


class MapDocument(TypedDict):
    """Every GPU, who holds it, and what it costs."""

    schemaVersion: Literal[0]
    """The meaning of a key may still change."""
    kind: Literal["Map"]
    """`pool map`."""
    readAt: str
    """Time of the reading, 2026-11-28T09:30:00Z."""
    view: MapView
    """How to draw it."""
    summary: MapSum
    """Sums."""
    namespaces: list[NamespacePart]
    """By namespace over all clusters."""
    clusters: list[MapCluster]
    """Clusters in the order of the spec."""
    shard: NotRequired[ShardPart]
    """Part of a fleet that this covers; only in a run with --shard."""
    merged: NotRequired[MergedPart]
    """Shards that this was merged from; only in output of `report merge`."""
    scope: NotRequired[ScopePart]
    """What the run covered."""
