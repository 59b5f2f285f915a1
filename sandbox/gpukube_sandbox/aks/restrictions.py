"""VM sizes that a subscription may not use, in a location or in some of its zones.

In scope: declared restrictions, their form in Resource SKUs, and AKS's errors. Out of scope: sizes that AKS itself
rejects (`rules`).

Sources: azure-mgmt-compute ResourceSkuRestrictions; Azure/AKS#1080 (the message for a location).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpukube_sandbox.aks.answers import aks_error
from gpukube_sandbox.aks.locations import check_subscription
from gpukube_sandbox.aks.sizes import find_size
from gpukube_sandbox.shapes import Keys, WrongEntry, check_entry, check_known

if TYPE_CHECKING:
    from gpukube_sandbox.aks.answers import Json
    from gpukube_sandbox.aks.clusters import Cluster

_REASONS = ("QuotaId", "NotAvailableForSubscription")
_THINGS = Keys(
    {"subscription": str, "location": str, "restrictions": [Keys({"size": str}, {"zones": [str], "reason": str})]}
)


@dataclass(frozen=True, slots=True)
class Restriction:
    """A restriction; without zones it is for the whole location."""

    zones: tuple[str, ...]
    reason: str


@dataclass(slots=True)
class Restrictions:
    """Restrictions of all subscriptions.

    Attributes:
        known: Subscription, location, and size in lowercase -> its restriction.
    """

    known: dict[tuple[str, str, str], Restriction] = field(default_factory=dict)

    def declare(self, entry: Json) -> list[str]:
        """Declare `{"subscription", "location", "restrictions": [{"size", "zones"?, "reason"?}]}`; return new ones.

        Raises:
            WrongEntry: An unknown or missing key, subscription, location, size, or reason.
        """
        check_entry(entry, _THINGS)
        check_subscription(entry)
        given, new = entry["restrictions"], []
        for at, one in enumerate(given if isinstance(given, list) else []):
            check_known(one.get("reason"), _REASONS, "restrictions", at, "reason")
            if find_size(one["size"]) is None:
                raise WrongEntry(f"there is no size {one['size']}", "restrictions", at, "size")
            key = (str(entry["subscription"]).lower(), str(entry["location"]).lower(), one["size"].lower())
            restriction = Restriction(tuple(one.get("zones", ())), one.get("reason", _REASONS[1]))
            if self.known.get(key) != restriction:
                new.append(f"restriction of {one['size']}")
            self.known[key] = restriction
        return new

    def bars(self, subscription: str, location: str, size: str, zone: str) -> bool:
        """Return whether a size cannot be used in a zone, "" for a location without naming one."""
        found = self._find(subscription, location, size)
        return found is not None and (not found.zones or zone in found.zones)

    def wire(self, subscription: str, location: str, size: str) -> list[Json]:
        """Return the restrictions of a size in the form of Resource SKUs."""
        found = self._find(subscription, location, size)
        if found is None:
            return []
        return [
            {
                "type": "Zone" if found.zones else "Location",
                "values": [location],
                "restrictionInfo": {"locations": [location], "zones": list(found.zones)},
                "reasonCode": found.reason,
            }
        ]

    def check(self, cluster: Cluster, pool: Json) -> None:
        """Reject a new pool with a restricted size.

        Raises:
            ArmError: 400 BadRequest for the location; 400 AvailabilityZoneNotSupported for a zone.
        """
        size, zones = str(pool["vmSize"]), pool.get("availabilityZones")
        found = self._find(cluster.subscription, cluster.location, size)
        if found is None:
            return
        if not found.zones:
            message = f"The VM size of {size} is not allowed in your subscription in location '{cluster.location}'."
            raise aks_error("BadRequest", message, target="agentPoolProfile.vmSize")
        barred = [zone for zone in zones if zone in found.zones] if isinstance(zones, list) else []
        if barred:
            message = (
                f"The zone(s) '{','.join(barred)}' for resource 'agentPoolProfile' is not supported for size '{size}' "
                f"in your subscription in location '{cluster.location}'."
            )
            raise aks_error("AvailabilityZoneNotSupported", message, target="agentPoolProfile.availabilityZones")

    def _find(self, subscription: str, location: str, size: str) -> Restriction | None:
        return self.known.get((subscription.lower(), location.lower(), size.lower()))
