"""What a cloud offers an autoscaler: groups of nodes that can grow and shrink.

In scope: the port, its values, and the node that an autoscaler imagines for a group without one.
Out of scope: deciding (`scaler`), any one cloud.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from gpukube_sandbox.kube.nodes.registration import NOT_READY_TAINT, node_object

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube_sandbox.kube.nodes.shapes import NodeShape
    from gpukube_sandbox.kube.store.objects import JsonObject

MINUTE_S = 60.0


@dataclass(frozen=True, slots=True)
class Profile:
    """How an autoscaler is set up.

    Attributes:
        gpu_label: Label of nodes with GPUs: such a node counts as ready once it has `nvidia.com/gpu` to give.
        unneeded_s: How long a node must be idle before it goes.
        after_add_s: How long after a scale-up none goes.
        unready_s: How long a node may stay unready before it goes.
        provision_s: How long new nodes may take until they count as unready. With more than three such nodes, and those
            nearly half of all, nothing grows.
        tells_pods: Pods are told of a scale-up that failed (GKE); else a ConfigMap's events say so.
    """

    gpu_label: str
    unneeded_s: float = 10 * MINUTE_S
    after_add_s: float = 10 * MINUTE_S
    unready_s: float = 20 * MINUTE_S
    provision_s: float = 15 * MINUTE_S
    tells_pods: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """One group of equal nodes.

    Attributes:
        name: As the autoscaler's events name it.
        pool: What it belongs to; groups of one pool are filled alike where `balanced`.
        zone: Where its nodes are; "" for several zones.
        nodes: Names of its machines, those that boot too.
        target: Machines it is to have.
        low: Fewest nodes it may have.
        high: Most nodes it may have.
        balanced: New nodes go to the group of the pool with the fewest.
    """

    name: str
    pool: str
    nodes: tuple[str, ...]
    target: int
    low: int
    high: int
    zone: str = ""
    balanced: bool = False

    @property
    def size(self) -> int:
        """Machines that are there or have been asked for."""
        return max(len(self.nodes), self.target)


class Groups(Protocol):
    """The groups of a cluster."""

    async def profile(self) -> Profile | None:
        """Describe how the autoscaler is set up; None while none runs."""
        ...

    def listed(self) -> list[Group]:
        """List the groups that it may change."""
        ...

    def imagined(self, name: str) -> JsonObject:
        """Return the node that it expects of a group of which it has not seen one."""
        ...

    async def grow(self, name: str, count: int) -> str:
        """Add machines and wait until they are nodes; gives why they did not come, "" when they did."""
        ...

    async def shrink(self, name: str, node: str) -> None:
        """Take one machine away."""
        ...


def imagine(shape: NodeShape, devices: Mapping[str, int]) -> JsonObject:
    """Make the template node of a group: what its shape says, with these devices, ready.

    Args:
        shape: Labels, taints and size.
        devices: Extended resources that the cloud's autoscaler foresees.
    """
    node = node_object(shape, "", "")
    whole = {"cpu": str(shape.cpu), "memory": f"{int(shape.memory_gib * 1024 * 1024)}Ki", "pods": str(shape.max_pods)}
    room = {**node["status"]["allocatable"], **whole, **{name: str(count) for name, count in devices.items()}}
    node["status"] = {"capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}
    node["spec"]["taints"] = [taint for taint in node["spec"]["taints"] if taint["key"] != NOT_READY_TAINT]
    return node
