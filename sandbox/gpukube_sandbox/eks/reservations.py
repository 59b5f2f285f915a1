"""Capacity reservations and Capacity Blocks: reserved machines, and whether a launch may use them.

In scope: their rules, their wire form. Out of scope: the XML itself (`query`), when groups launch
(`lifecycle`), the values themselves (`things`).

Sources: botocore ec2/2016-11-15 CapacityReservation; docs: eks/capacity-blocks-mng, AWSEC2 capacity-reservations-using.
A message without a source is unconfirmed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube_sandbox.eks.failures import Failure, launch_failure
from gpukube_sandbox.eks.instances import zone_id
from gpukube_sandbox.eks.placement import placement_arn, requested_placement
from gpukube_sandbox.eks.things import Reservation
from gpukube_sandbox.eks.wire.answers import AwsError, Json, bad_parameter, objects_in, strings_in, whole
from gpukube_sandbox.eks.wire.query import when

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube_sandbox.eks.clusters import EksCluster, Known
    from gpukube_sandbox.eks.groups import NodeGroup
    from gpukube_sandbox.eks.wire.identity import Caller
    from gpukube_sandbox.stock import Stock

_BLOCK = "capacity-block"
_KEYS = frozenset({"id", "type", "zone", "count", "block", "state", "groups", "placementGroup", "open", "start", "end"})


def read_reservations(option: object, now: float) -> list[Reservation]:
    """Read `[{"id", "type", "zone", "count"?, "block"?, "state"?, "groups"?, "placementGroup"?, "open"?, ...}]`.

    Args:
        option: The list; `start` and `end` are sandbox seconds from now.
        now: The sandbox's time.

    Raises:
        AwsError: An unknown key.
        KeyError: A key is missing.
    """
    given = objects_in(option)
    unknown = sorted({key for entry in given for key in entry} - _KEYS)
    if unknown:
        raise bad_parameter(
            f"unknown key {', '.join(unknown)} of a reservation; the keys are {', '.join(sorted(_KEYS))}"
        )
    return [
        Reservation(
            str(entry["id"]),
            str(entry["type"]),
            str(entry["zone"])[-1:],
            whole(entry["count"]) if "count" in entry else None,
            bool(entry.get("block", False)),
            str(entry.get("state", "active")),
            tuple(strings_in(entry.get("groups"))),
            str(entry.get("placementGroup", "")),
            is_open=bool(entry.get("open", False)),
            created=now,
            start=now + whole(entry.get("start", 0)),
            end=now + whole(entry["end"]) if "end" in entry else None,
        )
        for entry in given
    ]


def reservation_json(caller: Caller, known: Known, found: Reservation, stock: Stock, now: float) -> Json:
    """Return a reservation as DescribeCapacityReservations returns it; one of any size has room for one more."""
    arn = f"arn:aws:ec2:{caller.region}:{caller.account}"
    zone, state, used = f"{caller.region}{found.zone}", found.state_at(now), _used(known, found)
    total = used + 1 if found.count is None else found.count
    free = stock.free("eks", zone, found.type, "reserved")
    rooms = (total - used, total if free is None else free)
    return {
        "capacityReservationId": found.id,
        "ownerId": caller.account,
        "capacityReservationArn": f"{arn}:capacity-reservation/{found.id}",
        "availabilityZone": zone,
        "availabilityZoneId": zone_id(caller.region, found.zone),
        "instanceType": found.type,
        "instancePlatform": "Linux/UNIX",
        "tenancy": "default",
        "totalInstanceCount": total,
        "availableInstanceCount": max(0, min(rooms)) if state == "active" else 0,
        "ebsOptimized": True,
        "ephemeralStorage": False,
        "state": state,
        "createDate": when(found.created),
        "startDate": when(found.start),
        "endDate": None if found.end is None else when(found.end),
        "endDateType": "limited" if found.block or found.end is not None else "unlimited",
        "instanceMatchCriteria": "open" if found.is_open else "targeted",
        "reservationType": _BLOCK if found.block else "default",
        "placementGroupArn": placement_arn(caller.account, caller.region, found.placement) if found.placement else None,
    }


def check_block(data: Json, subnets: Sequence[str], cluster: EksCluster) -> None:
    """Reject subnets outside the zone of a Capacity Block, and instance types other than its own.

    Raises:
        AwsError: 400 (docs: eks/capacity-blocks-mng: only the subnet in the Availability Zone of the reservation).
    """
    (identity, _) = requested_reservation(data)
    found = cluster.known.reservations.get(identity)
    if found is None:
        raise AwsError("InvalidRequestException", f"The capacity reservation {identity} does not exist.")
    if any(cluster.zone(name) != found.zone for name in subnets):
        message = f"The subnets must be in the Availability Zone {cluster.region}{found.zone} of {identity}."
        raise bad_parameter(message)
    if data.get("InstanceType") != found.type:
        raise bad_parameter(f"The capacity reservation {identity} holds {found.type}.")


def launch_error(cluster: EksCluster, group: NodeGroup) -> Failure | None:
    """Return why the reservation of a group's template can never have its machines; None if it can.

    Args:
        cluster: Cluster of the group.
        group: Group whose template may name a reservation or a resource group of reservations.
    """
    identity, arn = requested_reservation(group.data or {})
    if not identity and not arn:
        return None
    fit, elsewhere = fitting_reservations(cluster, group), _in_other_placements(cluster, group)
    if elsewhere and not fit:  # eksctl-io/eksctl#7949, terraform-aws-modules/terraform-aws-eks#3730
        zone = f"{cluster.region}{elsewhere[0].zone}"
        return launch_failure("InsufficientInstanceCapacity", group.types[0].name, zone)
    if arn or identity in cluster.known.reservations:
        return None
    return launch_failure("InvalidCapacityReservationId.NotFound", group.types[0].name, "")


def fitting_reservations(cluster: EksCluster, group: NodeGroup) -> list[Reservation]:
    """Return the active reservations that a group's template targets and that its machines can use, full or not."""
    elsewhere = _in_other_placements(cluster, group)
    return [entry for entry in _targeted(cluster, group) if entry not in elsewhere]


def open_reservations(cluster: EksCluster, group: NodeGroup) -> list[Reservation]:
    """Return the active open reservations, which serve each launch of their type and zone that names none.

    Source:
        botocore ec2/2016-11-15 CapacityReservation.InstanceMatchCriteria, CapacityReservationPreference.
    """
    if _preference(group.data or {}) == "none":
        return []
    now = cluster.kube.clock.now()
    found = cluster.known.reservations.values()
    return [entry for entry in found if entry.is_open and not entry.placement and entry.state_at(now) == "active"]


def is_reserved_only(data: Json) -> bool:
    """Return whether machines start in capacity reservations only."""
    return _preference(data) == "capacity-reservations-only"


def room_in(known: Known, found: Reservation, stock: int | None) -> int | None:
    """Return how many more machines a reservation has; None without a limit.

    Args:
        known: Resources of its account.
        found: The reservation.
        stock: Limit of the stock of reserved machines, if any.
    """
    rooms = [stock, None if found.count is None else max(0, found.count - _used(known, found))]
    return min((room for room in rooms if room is not None), default=None)


def _targeted(cluster: EksCluster, group: NodeGroup) -> list[Reservation]:
    identity, arn = requested_reservation(group.data or {})
    zones = {cluster.zone(name) for name in strings_in(group.members.get("subnets"))}
    now = cluster.kube.clock.now()
    return [
        entry
        for entry in cluster.known.reservations.values()
        if (entry.id == identity or arn in entry.groups)
        and entry.state_at(now) == "active"
        and entry.type == group.types[0].name
        and entry.zone in zones
    ]


def _in_other_placements(cluster: EksCluster, group: NodeGroup) -> list[Reservation]:
    """Return the targeted reservations without the placement group that the template names."""
    placement = requested_placement(group.data, cluster.known)
    return [entry for entry in _targeted(cluster, group) if placement and entry.placement != placement.name]


def _preference(data: Json) -> str:
    specification = data.get("CapacityReservationSpecification")
    return str(specification.get("CapacityReservationPreference") or "") if isinstance(specification, dict) else ""


def is_block(data: Json) -> bool:
    """Return whether a template uses the market of Capacity Blocks."""
    market = data.get("InstanceMarketOptions")
    return isinstance(market, dict) and market.get("MarketType") == _BLOCK


def _used(known: Known, found: Reservation) -> int:
    """Count the machines of all clusters in a reservation."""
    groups = [group for cluster in known.clusters for group in cluster.groups.values()]
    return sum(group.instances[node].reservation == found.id for group in groups for node in group.nodes)


def requested_reservation(data: Json) -> tuple[str, str]:
    """Return the id and the resource group that a template targets; "" for none."""
    specification = data.get("CapacityReservationSpecification")
    target = specification.get("CapacityReservationTarget") if isinstance(specification, dict) else None
    given = target if isinstance(target, dict) else {}
    return (
        str(given.get("CapacityReservationId") or ""),
        str(given.get("CapacityReservationResourceGroupArn") or ""),
    )
