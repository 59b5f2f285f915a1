"""Capacity reservation groups with their reservations, as Microsoft.Compute returns them.

In scope: declared groups, the machines that are allocated to them, their resources. Out of scope: HTTP (`routes`), what
Azure rejects in a pool with a group (`reservations`).

Sources: azure-mgmt-compute CapacityReservationGroup, CapacityReservation, CapacityReservationUtilization,
ReservationType and ScheduleProfile; docs: virtual-machines/capacity-reservation-overallocate (a full group does not
refuse).
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpukube_sandbox.aks.answers import arm_error
from gpukube_sandbox.aks.locations import LOCATIONS
from gpukube_sandbox.aks.machines import Place, index_of, machine_id
from gpukube_sandbox.aks.sizes import find_size
from gpukube_sandbox.shapes import Keys, WrongEntry, check_entry, check_known

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube_sandbox.aks.answers import Json
    from gpukube_sandbox.aks.clusters import Cluster
    from gpukube_sandbox.stock import Stock

TYPE = "Microsoft.Compute/capacityReservationGroups"
_ID = re.compile(
    rf"/subscriptions/[^/]+/resourceGroups/(?P<group>[^/]+)/providers/{re.escape(TYPE)}/(?P<name>[^/]+)", re.IGNORECASE
)
_KINDS = ("Targeted", "Block", "Open")
_BLOCK_COUNTS = (1, 2, 4, 8, 16, 32, 64)
_BLOCKS_FROM = "2025-04-01"
"""API version with Block reservations."""
_PLENTY = 1000
_RESERVATION = Keys(
    {"name": str, "size": str, "count": int}, {"zone": str, "usedByOthers": int, "start": str, "end": str}
)
_THINGS = Keys(
    {"capacityReservationGroups": [Keys({"id": str}, {"location": str, "type": str, "reservations": [_RESERVATION]})]}
)


@dataclass(frozen=True, slots=True)
class Reservation:
    """A reservation of machines of one size.

    Attributes:
        zone: Logical zone; "" for none.
        others: Machines outside this sandbox's clusters that are allocated to it.
        start: First day of a block, "2026-06-27"; likewise `end`.
    """

    name: str
    size: str
    count: int
    zone: str = ""
    others: int = 0
    start: str = ""
    end: str = ""


@dataclass(slots=True)
class Group:
    """A capacity reservation group.

    Attributes:
        id: ARM id as declared.
        kind: One of `_KINDS`.
        reservations: By name in lowercase.
    """

    id: str
    location: str = "eastus"
    kind: str = "Targeted"
    reservations: dict[str, Reservation] = field(default_factory=dict)

    @property
    def zones(self) -> list[str]:
        """Return the zones of its reservations."""
        return sorted({one.zone for one in self.reservations.values() if one.zone})


@dataclass(slots=True)
class CapacityGroups:
    """The groups of all subscriptions.

    Attributes:
        clusters: The service's clusters, whose machines are allocated to groups.
        stock: Limits the machines of reservations.
        groups: Id in lowercase -> group.
    """

    clusters: dict[str, Cluster]
    stock: Stock
    groups: dict[str, Group] = field(default_factory=dict)

    def declare(self, entry: Json) -> list[str]:
        """Declare groups; return the ids of new ones.

        Args:
            entry: `{"capacityReservationGroups": [{"id", "location"?, "type"?, "reservations"?: [{"name", "size",
                "count", "zone"?, "usedByOthers"?, "start"?, "end"?}]}]}`.

        Raises:
            WrongEntry: An unknown or missing key, an id of another type, or an unknown location, type, or size.
        """
        check_entry(entry, _THINGS)
        given = entry["capacityReservationGroups"]
        found = [_parsed(one, at) for at, one in enumerate(given if isinstance(given, list) else [])]
        new = [group for group in found if group.id.lower() not in self.groups]
        self.groups |= {group.id.lower(): group for group in new}
        return [group.id for group in new]

    def declare_for(self, pool: Json, location: str) -> None:
        """Declare the group that a pool names, with plenty of its machines in each of its zones."""
        identity = str(pool.get("capacityReservationGroupID") or "")
        if not _ID.fullmatch(identity):
            return
        group = self.groups.setdefault(identity.lower(), Group(identity, location))
        size, zones = str(pool.get("vmSize", "")), pool.get("availabilityZones")
        for zone in map(str, zones) if isinstance(zones, list) and zones else [""]:
            name = "-".join(filter(None, ("reserved", size.removeprefix("Standard_"), zone))).lower()
            group.reservations.setdefault(name, Reservation(name, size, _PLENTY, zone))

    def allocated(self, group: Group, size: str, zone: str) -> list[str]:
        """Return the ids of the machines of a size in a zone that are allocated to a group."""
        return [
            machine_id(
                Place(cluster.id, cluster.subscription, cluster.node_group, cluster.location), pool.name, index_of(node)
            )
            for cluster in self.clusters.values()
            for pool in cluster.pools.values()
            if str(pool.properties.get("capacityReservationGroupID") or "").lower() == group.id.lower()
            and str(pool.properties["vmSize"]).lower() == size.lower()
            for node in pool.nodes
            if pool.lots[node].zone == zone
        ]

    def has_room(self, group: Group, size: str, zone: str) -> bool:
        """Return whether a group has a reserved machine of a size in a zone that is not allocated."""
        reserved = sum(
            one.count - one.others
            for one in group.reservations.values()
            if one.size.lower() == size.lower() and one.zone == zone
        )
        return reserved > len(self.allocated(group, size, zone))

    # Responses

    def require(self, identity: str) -> Group:
        """Find a group by its id.

        Raises:
            ArmError: 404 ResourceNotFound.
        """
        found = self.groups.get(identity.lower())
        if found is None:
            parts = _ID.fullmatch(identity)
            name, place = (parts["name"], parts["group"]) if parts else (identity, "")
            message = (
                f"The Resource '{TYPE}/{name}' under resource group '{place}' was not found. For more details please "
                "go to https://aka.ms/ARMResourceNotFoundFix"
            )
            raise arm_error(404, "ResourceNotFound", message)
        return found

    def list_below(self, prefix: str, version: str) -> Json:
        """Return the groups whose ids start with a subscription's or a resource group's id."""
        start = f"{prefix.lower()}/"
        return {"value": [self.group(g, version) for key, g in self.groups.items() if key.startswith(start)]}

    def group(self, group: Group, version: str, expand: str = "") -> Json:
        """Return the resource of a group, with its instance view if requested."""
        properties: Json = {
            "capacityReservations": [{"id": _below(group, one)} for one in group.reservations.values()],
            "virtualMachinesAssociated": [{"id": each} for each in self._all_allocated(group)],
        }
        if version >= _BLOCKS_FROM:
            properties["reservationType"] = group.kind
        if _is_expanded(expand):
            views = [{"name": one.name, **self._view(group, one)} for one in group.reservations.values()]
            properties["instanceView"] = {"capacityReservations": views}
        name = group.id.rpartition("/")[2]
        found: Json = {"id": group.id, "name": name, "type": TYPE, "location": group.location}
        return {**found, **({"zones": group.zones} if group.zones else {}), "properties": properties}

    def reservations(self, group: Group, version: str) -> Json:
        """Return the reservations of a group."""
        return {"value": [self.reservation(group, one.name, version) for one in group.reservations.values()]}

    def reservation(self, group: Group, name: str, version: str, expand: str = "") -> Json:
        """Return the resource of a reservation, with its instance view if requested.

        Raises:
            ArmError: 404 ResourceNotFound.
        """
        one = group.reservations.get(name.lower())
        if one is None:
            message = f"The Resource '{TYPE}/{group.id.rpartition('/')[2]}/capacityReservations/{name}' was not found."
            raise arm_error(404, "ResourceNotFound", message)
        properties: Json = {
            "reservationId": str(uuid.uuid5(uuid.NAMESPACE_URL, _below(group, one))),
            "platformFaultDomainCount": 1,
            "virtualMachinesAssociated": [{"id": each} for each in self.allocated(group, one.size, one.zone)],
            "provisioningState": "Succeeded",
        }
        if one.start and version >= _BLOCKS_FROM:
            properties["scheduleProfile"] = {"start": one.start, **({"end": one.end} if one.end else {})}
        if _is_expanded(expand):
            properties["instanceView"] = self._view(group, one)
        return {
            "id": _below(group, one),
            "name": one.name,
            "type": f"{TYPE}/capacityReservations",
            "location": group.location,
            "sku": {"name": one.size, "capacity": one.count},
            **({"zones": [one.zone]} if one.zone else {}),
            "properties": properties,
        }

    def _all_allocated(self, group: Group) -> Iterator[str]:
        for one in group.reservations.values():
            yield from self.allocated(group, one.size, one.zone)

    def _view(self, group: Group, one: Reservation) -> Json:
        """Return an instance view; more machines may be allocated than are reserved."""
        other = f"{group.id.rpartition('/')[0].replace('capacityReservationGroups', 'virtualMachines')}/other"
        machines = [*self.allocated(group, one.size, one.zone), *(f"{other}{at}" for at in range(one.others))]
        status = {"code": "ProvisioningState/succeeded", "level": "Info", "displayStatus": "Provisioning succeeded"}
        place = f"{group.location}-{one.zone}" if one.zone else group.location
        free = self.stock.free("aks", place, one.size, "reserved")
        capacity = one.count if free is None else min(one.count, len(machines) + free)
        used = {"currentCapacity": capacity, "virtualMachinesAllocated": [{"id": each} for each in machines]}
        return {"utilizationInfo": used, "statuses": [status]}


def _below(group: Group, one: Reservation) -> str:
    return f"{group.id}/capacityReservations/{one.name}"


def _is_expanded(expand: str) -> bool:
    if expand and expand != "instanceView":  # the message is unconfirmed
        raise arm_error(400, "InvalidParameter", f"The value '{expand}' of parameter $expand is invalid.")
    return bool(expand)


def _parsed(one: Json, at: int) -> Group:
    path = ("capacityReservationGroups", at)
    identity, kind = str(one["id"]), str(one.get("type") or "Targeted")
    if not _ID.fullmatch(identity):
        raise WrongEntry(f"{identity} is not the id of a capacity reservation group", *path, "id")
    check_known(kind, _KINDS, *path, "type")
    check_known(one.get("location"), LOCATIONS, *path, "location")
    group = Group(identity, str(one.get("location") or "eastus"), kind)
    given = one.get("reservations")
    for index, each in enumerate(given if isinstance(given, list) else []):
        size = find_size(each["size"])
        if size is None:
            raise WrongEntry(f"there is no size {each['size']}", *path, "reservations", index, "size")
        if kind == "Block" and each["count"] not in _BLOCK_COUNTS:
            known = ", ".join(map(str, _BLOCK_COUNTS))
            raise WrongEntry(f"a block has {known} machines", *path, "reservations", index, "count")
        group.reservations[each["name"].lower()] = Reservation(
            each["name"], size.name, each["count"], each.get("zone", ""), each.get("usedByOthers", 0),
            each.get("start", ""), each.get("end", ""),
        )  # fmt: skip
    return group
