"""Where machines of a node group start: which type, in which zone, bought in which way, from the sandbox's stock.

In scope: choosing and taking a place for one machine, giving it back, what Auto Scaling records. Out of scope: when
groups launch and what their states become (`lifecycle`), the stock itself (`gpukube_sandbox.stock`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from gpukube_sandbox.eks.failures import Failure, launch_failure
from gpukube_sandbox.eks.placement import requested_placement
from gpukube_sandbox.eks.prices import price_of
from gpukube_sandbox.eks.reservations import (
    fitting_reservations,
    is_reserved_only,
    open_reservations,
    requested_reservation,
    room_in,
)
from gpukube_sandbox.eks.wire.answers import strings_in, whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube_sandbox.eks.clusters import EksCluster
    from gpukube_sandbox.eks.groups import Instance, NodeGroup
    from gpukube_sandbox.eks.instances import InstanceType
    from gpukube_sandbox.eks.wire.answers import Json

PROVIDER = "eks"
"""The cloud's name in the stock."""


class Slot(NamedTuple):
    """A place for one machine.

    Attributes:
        kind: Its type.
        zone: Letter of its Availability Zone.
        market: How it is bought: one of `stock.MARKETS`.
        reservation: Id of the capacity reservation that it runs in; "" for none.
    """

    kind: InstanceType
    zone: str
    market: str
    reservation: str = ""


def zones_of(cluster: EksCluster, group: NodeGroup) -> list[str]:
    """Return the letters of the zones of a group's subnets."""
    names = strings_in(group.members["subnets"])
    return sorted({cluster.zone(name) for name in names} - {""}) or ["a"]


def offers_of(cluster: EksCluster, group: NodeGroup) -> list[tuple[InstanceType, str]]:
    """List where the Auto Scaling group can launch: (type, zone), in the order in which it tries them.

    On demand, the types are in order of priority; on Spot the cheapest is first, whatever their order (docs:
    eks/managed-node-groups, `prioritized` and `price-capacity-optimized`). The machines of one type are spread over the
    zones, those of a cluster placement group are in one.
    """
    placement = requested_placement(group.data, cluster.known)
    is_near = placement is not None and placement.strategy == "cluster"
    kinds = group.types
    if group.members["capacityType"] == "SPOT":
        kinds = sorted(kinds, key=lambda kind: price_of(kind, cluster.region))
    found = []
    for kind in kinds:
        zones = [zone for zone in zones_of(cluster, group) if zone in kind.zones]
        first = group.next_index % len(zones) if zones and not is_near else 0
        zones = zones[:1] if is_near else zones[first:] + zones[:first]
        found += [(kind, zone) for zone in zones]
    return found


def take_slot(cluster: EksCluster, group: NodeGroup) -> Slot | None:
    """Take a machine for a group from the stock; None if there is none anywhere."""
    return next((slot for slot in _slots(cluster, group) if cluster.stock.take(*_place(cluster, slot), 1)), None)


def claim_slot(cluster: EksCluster, group: NodeGroup) -> Slot:
    """Return a place for a machine that exists from the start, whatever the stock is."""
    elsewhere = Slot(group.types[0], zones_of(cluster, group)[0], _market(group))
    slot = next(_slots(cluster, group), elsewhere)
    cluster.stock.add(*_place(cluster, slot), 1)
    return slot


def free_slots(cluster: EksCluster, group: NodeGroup) -> int | None:
    """Return for how many machines of a group there is stock; None without a limit."""
    total = 0
    for slot in _slots(cluster, group):
        free = cluster.stock.free(*_place(cluster, slot))
        if slot.reservation:
            free = room_in(cluster.known, cluster.known.reservations[slot.reservation], free)
        if free is None:
            return None
        total += free
    return total


def return_machine(cluster: EksCluster, machine: Instance) -> None:
    """Give a terminated machine back to the stock."""
    cluster.stock.give_back(PROVIDER, machine.zone, machine.type, machine.market)


def shortage(cluster: EksCluster, group: NodeGroup) -> Failure:
    """Return the failure of a launch without machines, which Auto Scaling tries again."""
    kind, zone = (offers_of(cluster, group) or [(group.types[0], zones_of(cluster, group)[0])])[0]
    market = _market(group)
    if market == "reserved":
        failure = launch_failure("ReservationCapacityExceeded", kind.name, "")
    else:
        zones = [f"{cluster.region}{letter}" for letter in kind.zones]
        others = [name for name in zones if cluster.stock.free(PROVIDER, name, kind.name, market) != 0]
        spot = market == "spot"
        code, place = "InsufficientInstanceCapacity", f"{cluster.region}{zone}"
        failure = launch_failure(code, kind.name, place, spot=spot, others=", ".join(others))
    return replace(failure, is_retried=True)


def record_activity(group: NodeGroup, now: float, message: str, *, count: int = 0) -> None:
    """Record an activity of the Auto Scaling group for DescribeScalingActivities.

    Args:
        group: The node group.
        now: When it happened.
        message: Why it failed; "" if it did not.
        count: Number of machines that were launched.
    """
    entry: Json = {
        "ActivityId": f"{whole(len(group.activities)):08d}-{group.asg[-12:]}",
        "Description": f"Launching {count or 'a new'} EC2 instance{'s' if count > 1 else ''}",
        "Cause": "an instance was started in response to a difference between desired and actual capacity",
        "StartTime": now,
        "StatusCode": "Failed" if message else "Successful",
        "StatusMessage": message,
        "Progress": "100",
    }
    group.activities.insert(0, entry)


def _slots(cluster: EksCluster, group: NodeGroup) -> Iterator[Slot]:
    """Yield where the group's next machine can start, in the order in which EC2 tries it."""
    known = cluster.known
    for kind, zone in offers_of(cluster, group):
        if any(requested_reservation(group.data or {})):
            entries = fitting_reservations(cluster, group)
        elif _market(group) == "spot":
            entries = []
        else:
            entries = open_reservations(cluster, group)
        for entry in entries:
            if (entry.type, entry.zone) == (kind.name, zone) and room_in(known, entry, None) != 0:
                yield Slot(kind, zone, "reserved", entry.id)
        if _market(group) != "reserved":
            yield Slot(kind, zone, _market(group))


def _market(group: NodeGroup) -> str:
    """Return how a group buys machines, if no open reservation has one."""
    if any(requested_reservation(group.data or {})) or is_reserved_only(group.data or {}):
        return "reserved"
    return "spot" if group.members["capacityType"] == "SPOT" else "on-demand"


def _place(cluster: EksCluster, slot: Slot) -> tuple[str, str, str, str]:
    return PROVIDER, f"{cluster.region}{slot.zone}", slot.kind.name, slot.market
