"""A cloud's interface for the autoscaler: groups of nodes that can grow and shrink.

In scope: the protocol, its values, and the template node of an empty group.
Out of scope: scaling decisions (`scaler`), any specific cloud.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from gpukube_sandbox.kube.nodes.registration import NOT_READY_TAINT, node_object

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube_sandbox.kube.nodes.shapes import NodeShape
    from gpukube_sandbox.kube.store.objects import JsonObject

MINUTE_S = 60.0
_DURATION = re.compile(r"(\d+)([smh])")
_UNITS = {"s": 1.0, "m": MINUTE_S, "h": 60 * MINUTE_S}


@dataclass(frozen=True, slots=True)
class Profile:
    """The configuration of an autoscaler.

    Attributes:
        gpu_label: Label of GPU nodes; such a node counts as ready once it has allocatable `nvidia.com/gpu`.
        unneeded_s: Seconds a node must be unneeded before it is removed.
        after_add_s: Seconds after a scale-up during which no node is removed.
        unready_s: Seconds a node may be unready before it is removed.
        provision_s: Seconds a new node may take before it counts as unready. Scale-up stops if more than three nodes,
            and nearly half of all nodes, are unready.
        notifies_pods: Report a failed scale-up in events of the pods (GKE); otherwise in events of a ConfigMap.
        expanders: Names of the expanders that choose among several groups, in order.
        namespace: Its own namespace, in which it looks for the ConfigMap of its priorities.
        needs_priorities: With the priority expander, add nothing without a valid ConfigMap, as before version 1.26
            (kubernetes/autoscaler#5246); otherwise the next expander chooses.
    """

    gpu_label: str
    unneeded_s: float = 10 * MINUTE_S
    after_add_s: float = 10 * MINUTE_S
    unready_s: float = 20 * MINUTE_S
    provision_s: float = 15 * MINUTE_S
    notifies_pods: bool = False
    expanders: tuple[str, ...] = ("price",)
    namespace: str = "kube-system"
    needs_priorities: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """One group of identical nodes.

    Attributes:
        name: Name in the autoscaler's events.
        pool: Pool it belongs to; groups of one pool are filled evenly if `balanced`.
        zone: Zone of its nodes; "" for several zones.
        nodes: Names of its machines, including those that are booting.
        target: Desired number of machines.
        low: Minimum number of nodes.
        high: Maximum number of nodes.
        balanced: Add new nodes to the pool's smallest group.
        error: Why the cloud cannot create missing machines that somebody else requested; "" if it still may.
    """

    name: str
    pool: str
    nodes: tuple[str, ...]
    target: int
    low: int
    high: int
    zone: str = ""
    balanced: bool = False
    error: str = ""

    @property
    def size(self) -> int:
        """Number of machines that exist or are requested."""
        return max(len(self.nodes), self.target)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a group did not get all machines. Its target is then lowered again to the machines that it has.

    Attributes:
        message: The cloud's error; "" if nothing was seen until the time for new nodes was over.
        missing: Machines that did not come.
        seen: How the autoscaler learned of it: the cloud refused to resize the group; or the group showed machines that
            could not be created, which the next scan sees; or no node came in time.
    """

    message: str
    missing: int
    seen: Literal["refused", "machines", "time"]


class Groups(Protocol):
    """The groups of a cluster."""

    async def profile(self) -> Profile | None:
        """Return the autoscaler's configuration; None if it is not running."""
        ...

    def listed(self) -> list[Group]:
        """List the groups that the autoscaler may change."""
        ...

    def template_node(self, name: str) -> JsonObject:
        """Return the expected node of a group that has had no node yet."""
        ...

    def template_slices(self, name: str) -> list[JsonObject]:
        """Return the ResourceSlices that the autoscaler expects of a node of a group that has had no node yet."""
        ...

    async def grow(self, name: str, count: int) -> Failure | None:
        """Add machines and wait until they are nodes; return a failure once the autoscaler would see it."""
        ...

    def release(self, name: str) -> None:
        """Lower the target of a group whose machines cannot be created: to those that it has, or its minimum."""
        ...

    async def shrink(self, name: str, node: str) -> None:
        """Remove one machine."""
        ...


def make_template_node(shape: NodeShape, devices: Mapping[str, int]) -> JsonObject:
    """Return the template node of a group: a ready node of its shape with these devices.

    Args:
        shape: Labels, taints, and size.
        devices: Extended resources that the cloud's autoscaler expects.
    """
    node = node_object(shape, "", "")
    whole = {"cpu": str(shape.cpu), "memory": f"{int(shape.memory_gib * 1024 * 1024)}Ki", "pods": str(shape.max_pods)}
    room = {**node["status"]["allocatable"], **whole, **{name: str(count) for name, count in devices.items()}}
    node["status"] = {"capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}
    node["spec"]["taints"] = [taint for taint in node["spec"]["taints"] if taint["key"] != NOT_READY_TAINT]
    return node


def duration_s(text: str) -> float:
    """Return the seconds of a duration of Go in whole units, such as "1h30m"."""
    return sum(float(number) * _UNITS[unit] for number, unit in _DURATION.findall(text))
