"""The shape of what `gpukube workload fit` says."""

from __future__ import annotations

from typing import Literal, TypedDict

from gpukube.engine.documents.shapes.parts import Position  # noqa: TC001 - schemas are made of these when that tool runs
from gpukube.engine.documents.shapes.prices import FitPricePart, PriceSum  # noqa: TC001 - as above


class PodRequestPart(TypedDict):
    """What one pod requests, its containers, sidecars and init containers put together."""

    cpu: str
    """Processors, as a quantity."""
    memory: str
    """Main memory, as a quantity."""
    devices: dict[str, int]
    """Extended resources."""


class RoomPart(TypedDict):
    """What is left of a node; null is unknown, never zero."""

    cpu: str | None
    """Processors, as a quantity."""
    memory: str | None
    """Main memory, as a quantity."""
    pods: int | None
    """How many more pods it takes."""
    devices: dict[str, int]
    """Extended resources."""


class PoolReasonPart(TypedDict):
    """Why pods have no place in a pool."""

    pool: str
    """Key of the cluster and name of the pool."""
    why: list[str]
    """Each of them keeps the pods away."""


class EditPart(TypedDict):
    """The one change with which all pods have a place; it was tried."""

    where: str
    """What is changed: an object of the files, or a pool of the spec."""
    text: str
    """What to write."""


class RollOutPart(TypedDict):
    """What a roll-out, or the upgrade of a RayService, needs beside the pods that run."""

    pods: int
    """Further pods."""
    places: int
    """How many of them have a place."""
    blocked: bool
    """Whether it would never end."""
    fix: str
    """What lets it end; empty where it does."""


class PlacePart(TypedDict):
    """Pods of a workload on a node."""

    node: str
    """Its name, as among the nodes."""
    pods: int
    """How many."""


class FittedPart(TypedDict):
    """Equal pods of a workload: those of one template."""

    object: str
    """Kind and name: RayCluster/train."""
    group: str
    """Worker group, or replicated job; empty where there is none."""
    namespace: str
    """As written; empty for that of the context."""
    role: Literal["pod", "replica", "daemon", "job", "ray-head", "ray-worker", "ray-submitter", "embedded"]
    """What the pods are to the object."""
    position: Position | None
    """Where the template begins."""
    cluster: str
    """Key of the cluster that the object was placed on."""
    requests: PodRequestPart
    """Of each pod."""
    least: int
    """Pods that it always has."""
    most: int | None
    """Pods that an autoscaler may give it; null without a limit."""
    state: Literal["now", "after-scale-up", "never", "elsewhere"]
    """The worst that is said of one of its pods."""
    now: int
    """Pods that schedule on nodes that are up."""
    afterScaleUp: int
    """Pods that schedule on nodes which an autoscaler starts."""
    never: int
    """Pods for which there is no place."""
    elsewhere: int
    """Pods without devices that no known node takes: they need a CPU node that the spec does not know."""
    places: list[PlacePart]
    """Where its pods are."""
    reasons: list[PoolReasonPart]
    """Why pods have no place, the pool that suits them best first."""
    edit: EditPart | None
    """What would change that; null where nothing has to, or no single change was found."""
    rollOut: RollOutPart | None
    """Null where it needs no further pods, or its pods have no places themselves."""


class NotPlacedPart(TypedDict):
    """Pods that were not placed."""

    object: str
    """Kind and name."""
    group: str
    """Worker group, or replicated job; empty where there is none."""
    position: Position | None
    """Where the object begins."""
    why: str
    """There are none, or nobody here can say where they would go."""
    hasPods: bool
    """Whether there are, or may be, pods: then the workloads do not fit as far as is known."""


class OnNodePart(TypedDict):
    """Pods on a node."""

    object: str
    """Kind and name."""
    group: str
    """Worker group, or replicated job; empty where there is none."""
    pods: int
    """How many."""


class FilledNodePart(TypedDict):
    """A node that has pods of the workloads."""

    name: str
    """Made up for nodes that are not there: whole-1 is the first of pool whole."""
    cluster: str
    """Key of the cluster."""
    pool: str
    """Name of the pool in the spec; empty for a node that the spec does not know."""
    zone: str
    """Its zone; empty where it is not known."""
    new: bool
    """Whether an autoscaler has to start it."""
    pods: list[OnNodePart]
    """Those of the workloads."""
    others: int
    """Pods that were there before."""
    left: RoomPart
    """What is left."""
    binds: str
    """Resource that keeps one more of these pods away; empty when one more would fit."""
    stranded: dict[str, int]
    """Devices that are left and that no pod of the workloads can have."""
    usdPerHour: float | None
    """Price of the node; null where it is unknown."""


class FitDocument(TypedDict):
    """Where workloads go on the pools of a spec."""

    schemaVersion: Literal[1]
    """The meaning of a key never changes within a version; new keys may come."""
    kind: Literal["Fit"]
    """`workload fit`."""
    exitCode: int
    """Of the command."""
    live: bool
    """Whether live nodes and what runs there were read; otherwise pools have their smallest size and are empty."""
    fits: bool
    """Whether every pod has a place now or after a scale-up, as far as the spec knows."""
    workloads: list[FittedPart]
    """In the order of the files."""
    notPlaced: list[NotPlacedPart]
    """What was not placed at all."""
    nodes: list[FilledNodePart]
    """Those with pods of the workloads."""
    usdPerHour: float | None
    """Price of these nodes; null where that of one is unknown."""
    prices: list[FitPricePart]
    """Of the pools that have nodes now or afterwards, whether workloads go there or not."""
    price: PriceSum
    """Of these pools together."""
