"""Capacity reservations and Capacity Blocks: reserved machines, and whether a launch may use them.

In scope: their rules, their wire form. Out of scope: the XML itself (`query`), when groups launch
(`lifecycle`), the values themselves (`things`).

Sources: botocore ec2/2016-11-15 CapacityReservation; docs: eks/capacity-blocks-mng, AWSEC2 capacity-reservations-using.
A message without a source is unconfirmed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube_sandbox.eks.failures import Failure, launch_failure
from gpukube_sandbox.eks.placement import placement_arn, requested_placement
from gpukube_sandbox.eks.things import Reservation
from gpukube_sandbox.eks.wire.answers import AwsError, Json, bad_parameter, objects_in, strings_in, whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube_sandbox.eks.clusters import EksCluster, Known
    from gpukube_sandbox.eks.groups import NodeGroup

_BLOCK = "capacity-block"
_KEYS = frozenset({"id", "type", "zone", "count", "block", "state", "groups", "placementGroup"})


def read_reservations(option: object) -> list[Reservation]:
    """Read `[{"id", "type", "zone", "count"?, "block"?, "state"?, "groups"?, "placementGroup"?}]`.

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
        )
        for entry in given
    ]


def reservation_json(account: str, region: str, known: Known, found: Reservation) -> Json:
    """Return a reservation as DescribeCapacityReservations returns it; one of any size has room for one more."""
    used = _used(known, found)
    total = used + 1 if found.count is None else found.count
    return {
        "capacityReservationId": found.id,
        "ownerId": account,
        "capacityReservationArn": f"arn:aws:ec2:{region}:{account}:capacity-reservation/{found.id}",
        "availabilityZone": f"{region}{found.zone}",
        "instanceType": found.type,
        "instancePlatform": "Linux/UNIX",
        "tenancy": "default",
        "totalInstanceCount": total,
        "availableInstanceCount": max(0, total - used),
        "ebsOptimized": True,
        "ephemeralStorage": False,
        "state": found.state,
        "endDateType": "limited" if found.block else "unlimited",
        "instanceMatchCriteria": "targeted",
        "reservationType": _BLOCK if found.block else "default",
        "placementGroupArn": placement_arn(account, region, found.placement) if found.placement else None,
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


def launch_error(cluster: EksCluster, group: NodeGroup, count: int) -> Failure | None:
    """Return why machines cannot be launched into the reservation of a group's template; None if they can.

    Args:
        cluster: Cluster of the group.
        group: Group whose template may name a reservation or a resource group of reservations.
        count: Number of machines to launch.
    """
    identity, arn = requested_reservation(group.data or {})
    if not identity and not arn:
        return None
    zones = {cluster.zone(name) for name in strings_in(group.members.get("subnets"))}
    usable = [
        entry
        for entry in cluster.known.reservations.values()
        if (entry.id == identity or arn in entry.groups)
        and entry.state == "active"
        and entry.type == group.types[0].name
        and entry.zone in zones
    ]
    placement = requested_placement(group.data, cluster.known)
    elsewhere = [entry for entry in usable if placement and entry.placement != placement.name]
    fit = [entry for entry in usable if entry not in elsewhere]
    rooms = [None if entry.count is None else entry.count - _used(cluster.known, entry) for entry in fit]
    if fit and (None in rooms or sum(filter(None, rooms)) >= count):
        return None
    known = bool(arn) or identity in cluster.known.reservations
    if elsewhere and not fit:  # eksctl-io/eksctl#7949, terraform-aws-modules/terraform-aws-eks#3730
        zone = f"{cluster.region}{elsewhere[0].zone}"
        return launch_failure("InsufficientInstanceCapacity", group.types[0].name, zone)
    code = "ReservationCapacityExceeded" if known else "InvalidCapacityReservationId.NotFound"
    return launch_failure(code, group.types[0].name, "")


def is_block(data: Json) -> bool:
    """Return whether a template uses the market of Capacity Blocks."""
    market = data.get("InstanceMarketOptions")
    return isinstance(market, dict) and market.get("MarketType") == _BLOCK


def _used(known: Known, found: Reservation) -> int:
    """Count the machines of all clusters in a reservation."""
    names = {found.id, *found.groups}
    groups = [group for cluster in known.clusters for group in cluster.groups.values()]
    return sum(len(group.nodes) for group in groups if names & {*requested_reservation(group.data or {})})


def requested_reservation(data: Json) -> tuple[str, str]:
    """Return the id and the resource group that a template targets; "" for none."""
    specification = data.get("CapacityReservationSpecification")
    target = specification.get("CapacityReservationTarget") if isinstance(specification, dict) else None
    given = target if isinstance(target, dict) else {}
    return (
        str(given.get("CapacityReservationId") or ""),
        str(given.get("CapacityReservationResourceGroupArn") or ""),
    )
