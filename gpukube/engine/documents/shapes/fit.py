"""The shape of the document of `gpukube workload fit`."""

from __future__ import annotations

from typing import Literal, TypedDict

from gpukube.engine.documents.shapes.parts import Position  # noqa: TC001 - the schema generator reads these at run time
from gpukube.engine.documents.shapes.prices import FitPricePart, PriceSum  # noqa: TC001 - as above


class PodRequestPart(TypedDict):
    """What one pod requests: its containers, sidecars and init containers combined."""

    cpu: str
    """CPU, as a quantity."""
    memory: str
    """Memory, as a quantity."""
    devices: dict[str, int]
    """Extended resources."""
    claims: list[str]
    """Claims of devices, by their names in the pod."""


class RoomPart(TypedDict):
    """What is free on a node; null is unknown, never zero."""

    cpu: str | None
    """CPU, as a quantity."""
    memory: str | None
    """Memory, as a quantity."""
    pods: int | None
    """Number of further pods that it accepts."""
    devices: dict[str, int]
    """Extended resources, and devices that claims request."""


class PoolReasonPart(TypedDict):
    """Why pods do not fit in a pool."""

    pool: str
    """Key of the cluster and name of the pool."""
    why: list[str]
    """Reasons; each of them alone prevents scheduling."""


class EditPart(TypedDict):
    """The single change that would place every pod; gpukube tried it."""

    where: str
    """What to change: an object of the files, or a pool of the spec."""
    text: str
    """What to write."""


class RollOutPart(TypedDict):
    """What a rollout, or the upgrade of a RayService, needs in addition to the running pods."""

    pods: int
    """Additional pods."""
    places: int
    """Number of them that fit."""
    blocked: bool
    """Whether it would never finish."""
    fix: str
    """What would let it finish; empty if it does."""


class PlacePart(TypedDict):
    """Pods of a workload on a node."""

    node: str
    """Name of the node."""
    pods: int
    """Number of pods."""


class FittedPart(TypedDict):
    """Identical pods of a workload, from one template."""

    object: str
    """Kind and name: RayCluster/train."""
    group: str
    """Worker group, or replicated job; empty if there is none."""
    namespace: str
    """Namespace as written; empty for that of the context."""
    role: Literal["pod", "replica", "daemon", "job", "ray-head", "ray-worker", "ray-submitter", "embedded"]
    """Role of the pods in the object."""
    position: Position | None
    """Start of the template."""
    cluster: str
    """Key of the cluster that the object was placed on."""
    requests: PodRequestPart
    """Requests of each pod."""
    least: int
    """Minimum number of pods."""
    most: int | None
    """Maximum number of pods with autoscaling; null for no limit."""
    state: Literal["now", "after-scale-up", "never", "unknown", "elsewhere"]
    """The worst state of any of its pods."""
    now: int
    """Pods that fit on nodes that are up."""
    afterScaleUp: int
    """Pods that fit on nodes that an autoscaler would start."""
    never: int
    """Pods that never fit."""
    unknown: int
    """Pods of which it is unknown whether they fit: their claims ask what only nodes show."""
    elsewhere: int
    """Pods without devices that fit on no known node: they need a CPU node outside the spec."""
    places: list[PlacePart]
    """Nodes of its pods."""
    reasons: list[PoolReasonPart]
    """Why pods do not fit, best-matching pool first."""
    edit: EditPart | None
    """A change that would place them; null if none is needed, or no single change was found."""
    rollOut: RollOutPart | None
    """Null if it needs no additional pods, or if its own pods do not fit."""


class NotPlacedPart(TypedDict):
    """Pods that could not be placed."""

    object: str
    """Kind and name."""
    group: str
    """Worker group, or replicated job; empty if there is none."""
    position: Position | None
    """Start of the object."""
    why: str
    """There are no pods, or their placement is unknown."""
    hasPods: bool
    """Whether there are, or may be, pods: the workloads then do not fit, as far as is known."""


class OnNodePart(TypedDict):
    """Pods on a node."""

    object: str
    """Kind and name."""
    group: str
    """Worker group, or replicated job; empty if there is none."""
    pods: int
    """Number of pods."""


class FilledNodePart(TypedDict):
    """A node with pods of the workloads."""

    name: str
    """Name; invented for nodes that do not exist yet: whole-1 is the first of pool whole."""
    cluster: str
    """Key of the cluster."""
    pool: str
    """Name of the pool in the spec; empty for a node outside the spec."""
    zone: str
    """Zone of the node; empty if unknown."""
    new: bool
    """Whether an autoscaler has to start it."""
    pods: list[OnNodePart]
    """Pods of the workloads."""
    others: int
    """Other pods that already run there."""
    left: RoomPart
    """Free resources."""
    binds: str
    """Resource that prevents one more of these pods; empty if one more would fit."""
    stranded: dict[str, int]
    """Free devices that no pod of the workloads can use."""
    usdPerHour: float | None
    """Price of the node; null if unknown."""


class FitDocument(TypedDict):
    """Where workloads fit on the pools of a spec."""

    schemaVersion: Literal[1]
    """The meaning of a key never changes within a version; new keys may come."""
    kind: Literal["Fit"]
    """`workload fit`."""
    exitCode: int
    """Exit code of the command."""
    live: bool
    """Whether live nodes and their pods were read; otherwise pools have their minimum size and are empty."""
    fits: bool
    """Whether every pod fits now or after a scale-up, as far as the spec shows."""
    workloads: list[FittedPart]
    """Workloads in the order of the files."""
    notPlaced: list[NotPlacedPart]
    """Pods that could not be placed."""
    nodes: list[FilledNodePart]
    """Nodes with pods of the workloads."""
    usdPerHour: float | None
    """Price of these nodes; null if that of one is unknown."""
    prices: list[FitPricePart]
    """Prices of the pools that have nodes now or afterwards, whether or not workloads use them."""
    price: PriceSum
    """Total price of these pools."""
