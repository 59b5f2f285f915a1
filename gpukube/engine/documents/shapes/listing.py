"""The shape of the live view: lists of pools, and one pool in full."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from gpukube.engine.documents.shapes.parts import (  # noqa: TC001 - the schema generator reads these at run time
    Diagnostic,
    FamilyPart,
    GpuModel,
    MergedPart,
    ScopePart,
    ShardPart,
)


class LivePool(TypedDict):
    """A live pool."""

    cluster: str
    """Key in the spec."""
    provider: str
    """Cloud."""
    name: str
    """The cloud's name."""
    pool: str
    """Name in its spec according to its label; empty if it has none."""
    owner: str
    """Owner according to its label; empty if it has none."""
    status: str
    """Status as the cloud spells it."""
    state: Literal["ready", "busy", "failed", "deleting"]
    """The same in gpukube's terms."""
    failure: str
    """The cloud's last failure message; empty if there is none."""
    instanceType: str
    """Type as the cloud spells it."""
    gpu: GpuModel | None
    """GPUs of each node; null if the machine is not in the catalog."""
    nodeCount: int | None
    """Current number of nodes; null if the cloud does not report it."""
    autoscaling: list[int | None]
    """Minimum and maximum number of nodes; nulls if the size is fixed."""
    protected: bool
    """Whether the live label forbids replacing and deleting it."""
    gpus: float | None
    """Physical GPUs on all nodes; null if count or machine is unknown."""
    allocatable: dict[str, int] | None
    """Devices by resource name, or if pods claim them by class ("gpu.nvidia.com", "mig.nvidia.com/1g.5gb"); null if
    unknown, as for pools without a label."""
    used: dict[str, int] | None
    """Devices that pods on the nodes request, or that their claims hold; null if unknown."""
    slicesPerGpu: float | None
    """Allocatable devices per physical GPU: MIG instances, replicas, or both; null if unknown."""
    family: NotRequired[FamilyPart]
    """Its place in its family; absent for a pool without alternatives."""


class ListedFamily(TypedDict):
    """A pool and its alternatives on one cluster."""

    name: str
    """Name of the family: that of its first pool."""
    owner: str
    """Owner of its pools."""
    members: list[str]
    """Names of its pools in their order: declared ones, then live ones that the spec does not declare."""
    holder: str
    """Pool that has the nodes; empty if none has, and for an autoscaled family."""


class ListedCluster(TypedDict):
    """One cluster."""

    cluster: str
    """Key in the spec."""
    provider: str
    """Cloud."""
    error: list[Diagnostic] | None
    """Why it could not be read."""
    unknown: str
    """Why the inside of the cluster is unknown; empty if it is known."""
    pools: list[LivePool]
    """Pools with GPUs, and pools with gpukube's labels."""
    families: NotRequired[list[ListedFamily]]
    """Pools with alternatives; absent if there are none."""


class ListDocument(TypedDict):
    """The live GPU pools of all owners."""

    schemaVersion: Literal[1]
    """The meaning of a key never changes within a version; new keys may come."""
    kind: Literal["PoolList"]
    """`pool list`."""
    clusters: list[ListedCluster]
    """Clusters in the order of the spec."""
    shard: NotRequired[ShardPart]
    """Part of a fleet that this covers; only in a run with --shard."""
    merged: NotRequired[MergedPart]
    """Shards that this was merged from; only in output of `report merge`."""
    scope: NotRequired[ScopePart]
    """What the run covered."""


class LiveNode(TypedDict):
    """A node of a pool."""

    name: str
    """Name of the node."""
    ready: bool
    """Whether the kubelet reports Ready."""
    devices: dict[str, int]
    """Allocatable devices by resource name."""
    taints: list[str]
    """key=value:Effect."""


class PoolDetail(LivePool):
    """A pool with all its fields and nodes."""

    fields: dict[str, object]
    """Fields in the terms of the spec, flat."""
    nodes: list[LiveNode]
    """Nodes of the pool; empty if the inside of the cluster is unknown."""


class PoolDocument(TypedDict):
    """One pool on every cluster that has it."""

    schemaVersion: Literal[1]
    """The meaning of a key never changes within a version; new keys may come."""
    kind: Literal["Pool"]
    """`pool get`."""
    pools: list[PoolDetail]
    """One per cluster."""
    errors: list[list[Diagnostic]]
    """Errors of clusters that could not be read."""
