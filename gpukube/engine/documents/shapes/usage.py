"""The shape of usage: devices that are held, free, and waited for, and what that costs."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from gpukube.engine.documents.shapes.map import (
    MapStock,
    MapWaiting,
    NamespacePart,
)
from gpukube.engine.documents.shapes.parts import (  # noqa: TC001 - as above
    Diagnostic,
    MergedPart,
    ScopePart,
    ShardPart,
)
from gpukube.engine.documents.shapes.prices import CostPart, UsdPart  # noqa: TC001 - as above


class StockPrice(TypedDict):
    """The part of devices of the price of their nodes, in US dollars per hour; without nodes of unknown price."""

    held: UsdPart
    """Of those held."""
    idle: UsdPart
    """Of the others."""


class UsageStock(MapStock):
    """Devices of one resource, with their part of the price of the nodes."""

    price: StockPrice
    """What they cost."""


class UsagePool(TypedDict):
    """A live pool of one cluster."""

    name: str
    """The cloud's name; empty for the nodes of no pool."""
    pool: str
    """Name in its spec according to its label; empty if it has none."""
    group: str
    """Name of its family, else in its spec, else the cloud's: pools of one family are one."""
    owner: str
    """Owner according to its label; empty if it has none."""
    instanceType: str
    """Type as the cloud spells it; empty for the nodes of no pool."""
    capacity: str
    """How it is bought: on-demand, spot, reserved; empty for the nodes of no pool."""
    nodes: int
    """Nodes in the cluster."""
    starting: int
    """Nodes that the cloud counts and that are not in the cluster yet."""
    gpus: float
    """Physical GPUs of the nodes whose machine is known."""
    stocks: list[UsageStock]
    """Devices by resource."""
    cost: CostPart
    """What its nodes cost."""
    rough: bool
    """Whether the price of another region is used."""
    asOf: str
    """Date on which the price was read, YYYY-MM-DD; empty if unknown."""
    noPrice: str
    """Why the price of its nodes is unknown; empty if it is known."""


class UsageStuck(TypedDict):
    """A pod that holds devices and does not use them."""

    namespace: str
    """Its namespace."""
    name: str
    """Its name; that of a claim with `claimOnly`."""
    claimOnly: bool
    """Whether it is a claim that no pod uses."""
    pool: str
    """Pool of its node, by the cloud's name."""
    node: str
    """Its node."""
    devices: dict[str, int]
    """Resource or class -> devices that it holds."""
    trouble: str
    """What it is: CrashLoopBackOff, ImagePullBackOff, completed, failed, terminating."""


class UsageLayout(TypedDict):
    """A MIG layout and how many GPUs get it."""

    instances: list[str]
    """Profiles of one GPU."""
    gpus: int
    """Number of GPUs."""


class UsageRoom(TypedDict):
    """GPUs of a pool that nobody holds."""

    pool: str
    """Pool, by the cloud's name; empty for the nodes of no pool."""
    gpus: int
    """GPUs that could get another layout without stopping a pod."""


class UsageAdvice(TypedDict):
    """The MIG layout that would let waiting pods run; nothing is changed."""

    model: str
    """GPU model."""
    instances: dict[str, int]
    """Profile -> instances that are missing for the waiting pods."""
    layouts: list[UsageLayout]
    """The fewest GPUs that provide them, with the layout of each."""
    gpus: int
    """Number of these GPUs."""
    rooms: list[UsageRoom]
    """Where GPUs of the model are that nobody holds."""
    enough: bool
    """Whether there are that many."""


class UsageCluster(TypedDict):
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
    pools: list[UsagePool]
    """Pools with GPUs, and pools with gpukube's labels; the nodes of no pool are the last one."""
    namespaces: list[NamespacePart]
    """Namespaces whose pods hold devices or wait for them, by name."""
    waiting: list[MapWaiting]
    """Pods that wait for devices, by namespace and name."""
    stuck: list[UsageStuck]
    """Pods that hold devices and do not use them, by namespace and name."""
    advice: list[UsageAdvice]
    """Layouts for waiting pods, by model."""


class UsageGroup(TypedDict):
    """Pools of one name and owner, or of one owner, over all clusters."""

    owner: str
    """Owner; empty for pools without one."""
    group: str
    """Name of the pools, families as one; empty in sums of owners."""
    clusters: list[str]
    """Clusters that have them."""
    nodes: int
    """Nodes in the clusters."""
    gpus: float
    """Physical GPUs of the nodes whose machine is known."""
    stocks: list[UsageStock]
    """Devices by resource."""
    waiting: dict[str, int]
    """Devices that pods wait for whose node selector names one of the pools."""
    cost: CostPart
    """What the nodes cost."""


class UsageSum(TypedDict):
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
    stocks: list[UsageStock]
    """Devices by resource."""
    waiting: dict[str, int]
    """Resource or class -> devices that pods wait for."""
    stuck: int
    """Pods that hold devices and do not use them."""
    cost: CostPart
    """What the nodes cost."""


class UsageDocument(TypedDict):
    """Devices that are held, free, and waited for, and what that costs."""

    schemaVersion: Literal[0]
    """The meaning of a key may still change."""
    kind: Literal["Usage"]
    """`pool usage`."""
    readAt: str
    """Time of the reading, 2026-11-28T09:30:00Z; of merged shards the latest."""
    summary: UsageSum
    """Sums over all clusters."""
    groups: list[UsageGroup]
    """By pool over all clusters, families as one, by owner and name."""
    owners: list[UsageGroup]
    """By owner over all clusters."""
    namespaces: list[NamespacePart]
    """By namespace over all clusters."""
    clusters: list[UsageCluster]
    """Clusters in the order of the spec."""
    notes: list[str]
    """What else could not be read, such as prices."""
    shard: NotRequired[ShardPart]
    """Part of a fleet that this covers; only in a run with --shard."""
    merged: NotRequired[MergedPart]
    """Shards that this was merged from; only in output of `report merge`."""
    scope: NotRequired[ScopePart]
    """What the run covered."""
