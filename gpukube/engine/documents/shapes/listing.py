"""The shape of the live view: lists of pools, and one pool in full."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from gpukube.engine.documents.shapes.parts import (  # noqa: TC001 - schemas are made of these when that tool runs
    Diagnostic,
    GpuModel,
    MergedPart,
    ScopePart,
    ShardPart,
)


class LivePool(TypedDict):
    """A pool as it lives."""

    cluster: str
    """Key in the spec."""
    provider: str
    """Cloud."""
    name: str
    """The cloud's name."""
    pool: str
    """Name in its spec by its mark; empty when it has none."""
    owner: str
    """Owner by its mark; empty when it has none."""
    status: str
    """The cloud's own word."""
    state: Literal["ready", "busy", "failed", "deleting"]
    """The same in ours."""
    failure: str
    """The cloud's last failure message; empty when there is none."""
    instanceType: str
    """The cloud's name."""
    gpu: GpuModel | None
    """GPUs of each node; null when the machine is not in the catalog."""
    nodeCount: int | None
    """Present count; null when the cloud does not say."""
    autoscaling: list[int | None]
    """Fewest and most nodes; nulls when the size is fixed."""
    protected: bool
    """Whether the live mark refuses replace and delete."""
    gpus: float | None
    """Physical GPUs on all nodes; null when count or machine is not known."""
    allocatable: dict[str, int] | None
    """Devices by resource name; null when not known, as for pools without a mark."""
    used: dict[str, int] | None
    """Devices that pods on the nodes request; null when not known."""
    slicesPerGpu: float | None
    """Allocatable devices per physical GPU: MIG instances, replicas, or both; null when not known."""


class ListedCluster(TypedDict):
    """One cluster."""

    cluster: str
    """Key in the spec."""
    provider: str
    """Cloud."""
    error: list[Diagnostic] | None
    """Why it could not be looked at."""
    unknown: str
    """Why its inside is not known; empty when it is."""
    pools: list[LivePool]
    """Pools with GPUs, and pools that carry our marks."""


class ListDocument(TypedDict):
    """The live GPU pools of all owners."""

    schemaVersion: Literal[1]
    """The meaning of a key never changes within a version; new keys may come."""
    kind: Literal["PoolList"]
    """`pool list`."""
    clusters: list[ListedCluster]
    """In the order of the spec."""
    shard: NotRequired[ShardPart]
    """Which part of a fleet this is; only of a run with --shard."""
    merged: NotRequired[MergedPart]
    """Of which shards this was put together; only of what `report merge` writes."""
    scope: NotRequired[ScopePart]
    """What the run was of."""


class LiveNode(TypedDict):
    """A node of a pool."""

    name: str
    """Its name."""
    ready: bool
    """Whether the kubelet reports Ready."""
    devices: dict[str, int]
    """Allocatable devices by resource name."""
    taints: list[str]
    """key=value:Effect."""


class PoolDetail(LivePool):
    """A pool with all its fields and nodes."""

    fields: dict[str, object]
    """In the terms of the spec, flat."""
    nodes: list[LiveNode]
    """Its nodes; empty when the inside of the cluster is not known."""


class PoolDocument(TypedDict):
    """One pool on every cluster that has it."""

    schemaVersion: Literal[1]
    """The meaning of a key never changes within a version; new keys may come."""
    kind: Literal["Pool"]
    """`pool get`."""
    pools: list[PoolDetail]
    """One per cluster."""
    errors: list[list[Diagnostic]]
    """Of clusters that could not be looked at."""
