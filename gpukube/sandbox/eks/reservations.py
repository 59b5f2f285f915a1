"""Capacity reservations and Capacity Blocks: machines that were set aside, and whether a launch may take them.

Lives here: their state, their rules, their wire form. Must not live here: the XML itself (`query`), when groups launch
(`lifecycle`).

Sources: botocore ec2/2016-11-15 CapacityReservation; docs: eks/capacity-blocks-mng, AWSEC2 capacity-reservations-using.
A sentence without a source is unconfirmed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpukube.sandbox.eks.failures import Failure, launch_failure
from gpukube.sandbox.eks.wire.answers import Json, Refusal, bad_parameter, objects_in, strings_in, whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.sandbox.eks.clusters import EksCluster
    from gpukube.sandbox.eks.groups import NodeGroup

_BLOCK = "capacity-block"
_USUAL: list[Json] = [
    {"id": "cr-0123456789abcdef0", "type": "p5.48xlarge", "zone": "a", "count": 2, "block": True},
    {"id": "cr-0fedcba9876543210", "type": "p4d.24xlarge", "zone": "b", "count": 4},
]
_KEYS = frozenset({"id", "type", "zone", "count", "block", "state", "groups"})


@dataclass(frozen=True, slots=True)
class Reservation:
    """One reservation.

    Attributes:
        type: Instance type.
        zone: Letter of its Availability Zone.
        count: Machines that it holds.
        block: It is a Capacity Block.
        state: As EC2 calls it: active, scheduled, expired ...
        groups: ARNs of resource groups that it is in.
    """

    id: str
    type: str
    zone: str
    count: int = 1
    block: bool = False
    state: str = "active"
    groups: tuple[str, ...] = ()


def read_reservations(option: list[Json] | None) -> list[Reservation]:
    """Read the option of a cluster.

    Args:
        option: None for the usual ones.

    Raises:
        Refusal: An unknown key.
    """
    given = _USUAL if option is None else objects_in(option)
    unknown = sorted({key for entry in given for key in entry} - _KEYS)
    if unknown:
        raise bad_parameter(f"no key {', '.join(unknown)} of a reservation; there are {', '.join(sorted(_KEYS))}")
    return [
        Reservation(
            str(entry["id"]),
            str(entry["type"]),
            str(entry["zone"])[-1:],
            whole(entry.get("count", 1)),
            bool(entry.get("block", False)),
            str(entry.get("state", "active")),
            tuple(strings_in(entry.get("groups"))),
        )
        for entry in given
    ]


def reservation_json(cluster: EksCluster, found: Reservation) -> Json:
    """As DescribeCapacityReservations gives it."""
    return {
        "capacityReservationId": found.id,
        "ownerId": cluster.account,
        "capacityReservationArn": f"arn:aws:ec2:{cluster.region}:{cluster.account}:capacity-reservation/{found.id}",
        "availabilityZone": f"{cluster.region}{found.zone}",
        "instanceType": found.type,
        "instancePlatform": "Linux/UNIX",
        "tenancy": "default",
        "totalInstanceCount": found.count,
        "availableInstanceCount": max(0, found.count - _used(cluster, found)),
        "ebsOptimized": True,
        "ephemeralStorage": False,
        "state": found.state,
        "endDateType": "limited" if found.block else "unlimited",
        "instanceMatchCriteria": "targeted",
        "reservationType": _BLOCK if found.block else "default",
    }


def check_block(data: Json, subnets: Sequence[str], cluster: EksCluster) -> None:
    """Refuse subnets outside the zone of a Capacity Block, and a type that it does not hold.

    Raises:
        Refusal: 400 (docs: eks/capacity-blocks-mng: only the subnet in the Availability Zone of the reservation).
    """
    (identity, _) = _asked(data)
    found = next((entry for entry in cluster.reservations if entry.id == identity), None)
    if found is None:
        raise Refusal("InvalidRequestException", f"The capacity reservation {identity} does not exist.")
    if any(cluster.zone(name) != found.zone for name in subnets):
        message = f"The subnets must be in the Availability Zone {cluster.region}{found.zone} of {identity}."
        raise bad_parameter(message)
    if data.get("InstanceType") != found.type:
        raise bad_parameter(f"The capacity reservation {identity} holds {found.type}.")


def refused_launch(cluster: EksCluster, group: NodeGroup, wanted: int) -> Failure | None:
    """Why machines cannot be launched into the reservation of a group's template; None when they can.

    Args:
        cluster: Where.
        group: Whose template may name a reservation, or a resource group of some.
        wanted: Machines that shall come.
    """
    identity, arn = _asked(group.data or {})
    if not identity and not arn:
        return None
    zones = {cluster.zone(name) for name in strings_in(group.members.get("subnets"))}
    fit = [
        entry
        for entry in cluster.reservations
        if (entry.id == identity or arn in entry.groups)
        and entry.state == "active"
        and entry.type == group.types[0].name
        and entry.zone in zones
    ]
    if fit and sum(entry.count - _used(cluster, entry) for entry in fit) >= wanted:
        return None
    known = bool(arn) or any(entry.id == identity for entry in cluster.reservations)
    code = "ReservationCapacityExceeded" if known else "InvalidCapacityReservationId.NotFound"
    return launch_failure(code, group.types[0].name, "")


def _used(cluster: EksCluster, found: Reservation) -> int:
    return sum(
        len(group.nodes)
        for group in cluster.groups.values()
        if found.id in _asked(group.data or {}) or set(_asked(group.data or {})) & set(found.groups)
    )


def _asked(data: Json) -> tuple[str, str]:
    """Id and resource group that a template targets; "" for none."""
    specification = data.get("CapacityReservationSpecification")
    target = specification.get("CapacityReservationTarget") if isinstance(specification, dict) else None
    given = target if isinstance(target, dict) else {}
    return (
        str(given.get("CapacityReservationId") or ""),
        str(given.get("CapacityReservationResourceGroupArn") or ""),
    )
