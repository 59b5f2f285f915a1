"""Where the machines of agent pools come from: the stock of a location, or a capacity reservation group.

In scope: taking a machine, giving it back, and Azure's error if there is none. Out of scope: when machines are created
(`lifecycle`), how many there are (`stock`, `capacitygroups`).

Sources: Azure/karpenter-provider-azure pkg/providers/instance/offerings/commonerrorhandlers.go (which code is for
which machines), docs: virtual-machines/capacity-reservation-overallocate, Azure/AKS#4404 and redhat-developer/mapt#548
(a maximum price below the current one).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpukube_sandbox.aks.failures import failure_detail, price_detail
from gpukube_sandbox.aks.market import spot_usd
from gpukube_sandbox.aks.pools import Lot
from gpukube_sandbox.aks.sizes import find_size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpukube_sandbox.aks.answers import Json
    from gpukube_sandbox.aks.capacitygroups import CapacityGroups
    from gpukube_sandbox.aks.pools import Pool
    from gpukube_sandbox.stock import Stock


@dataclass(slots=True)
class Supply:
    """The source of all machines; implements `pools.Source`."""

    stock: Stock
    groups: CapacityGroups

    def take(self, location: str, pool: Pool) -> Lot | None:
        """Take a machine, from the zone whose turn it is or from another of the pool's; None if there is none.

        A pool with a group uses its reservations first, then other machines unless the group is a block; what a group
        that was declared without reservations has is unlimited.
        """
        if self._is_priced_out(location, pool):
            return None
        zones, size, kind = list(zones_in_turn(pool)), str(pool.properties["vmSize"]), _kind(pool)
        identity = str(pool.properties.get("capacityReservationGroupID") or "").lower()
        if identity:
            group = self.groups.groups.get(identity)
            reserved = [zone for zone in zones if group is None or self.groups.has_room(group, size, zone)]
            if found := self._take_one(location, reserved, size, "reserved"):
                return found
            if group is not None and group.kind == "Block":
                return None
        return self._take_one(location, zones, size, kind)

    def _take_one(self, location: str, zones: Iterable[str], size: str, kind: str) -> Lot | None:
        taken = (zone for zone in zones if self.stock.take("aks", _place(location, zone), size, kind, 1))
        zone = next(taken, None)
        return None if zone is None else Lot(zone, kind)

    def add(self, location: str, pool: Pool) -> Lot:
        """Count a machine that exists whatever the stock is."""
        lot = Lot(next(zones_in_turn(pool)), _kind(pool))
        self.stock.add("aks", _place(location, lot.zone), str(pool.properties["vmSize"]), lot.kind, 1)
        return lot

    def give_back(self, location: str, pool: Pool, lot: Lot) -> None:
        """Return a machine that is gone; its reservation has it back as soon as the pool does not have it."""
        self.stock.give_back("aks", _place(location, lot.zone), str(pool.properties["vmSize"]), lot.kind)

    def shortage(self, location: str, pool: Pool) -> Json:
        """Return the error of an operation whose machines are not available."""
        properties, zones = pool.properties, list(zones_in_turn(pool))
        size = str(properties["vmSize"])
        if self._is_priced_out(location, pool):
            return price_detail(size, float(str(properties["spotMaxPrice"])), self._usd(location, pool))
        is_zonal, is_tied = zones[0] != "", bool(properties.get("proximityPlacementGroupID"))
        if _kind(pool) == "spot":
            code = "SkuNotAvailable"
        elif is_tied:
            code = "OverconstrainedZonalAllocationRequest" if is_zonal else "OverconstrainedAllocationRequest"
        else:
            code = "ZonalAllocationFailed" if is_zonal and len(zones) == 1 else "AllocationFailed"
        return failure_detail(code, location, size, zones[0])

    def _is_priced_out(self, location: str, pool: Pool) -> bool:
        maximum = pool.properties.get("spotMaxPrice")
        is_capped = isinstance(maximum, int | float) and maximum > 0
        return is_capped and float(str(maximum)) < self._usd(location, pool)

    @staticmethod
    def _usd(location: str, pool: Pool) -> float:
        size = find_size(str(pool.properties["vmSize"]))
        return spot_usd(size, location) if size else 0.0


def zones_in_turn(pool: Pool) -> Iterator[str]:
    """Yield the zones of a pool, the one whose turn it is first; "" for a pool without zones."""
    given = pool.properties.get("availabilityZones")
    zones = [str(zone) for zone in given] if isinstance(given, list) and given else [""]
    turn = pool.next_index % len(zones)
    yield from zones[turn:]
    yield from zones[:turn]


def _kind(pool: Pool) -> str:
    return "spot" if pool.properties.get("scaleSetPriority") == "Spot" else "on-demand"


def _place(location: str, zone: str) -> str:
    """Return the stock's name of a zone, that of the node label; the location for machines without a zone."""
    return f"{location}-{zone}" if zone else location
