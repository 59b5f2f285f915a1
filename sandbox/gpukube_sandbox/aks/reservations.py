"""Machines from a capacity reservation group: what Azure rejects in combination with one.

In scope: rules over the properties of one pool, pure. Out of scope: other rules (`rules`), whether the group
exists (`references`), its contents (`capacitygroups`).
Source: docs: virtual-machines/capacity-reservation-overview (of 2026-02-17), limitations and restrictions. Codes and
messages are unconfirmed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpukube_sandbox.aks.answers import aks_error, bad_parameter

if TYPE_CHECKING:
    from gpukube_sandbox.aks.answers import Json

_TARGET = "agentPoolProfile.capacityReservationGroupID"
_GROUP = re.compile(
    r"/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.Compute/capacityReservationGroups/[^/]+",
    re.IGNORECASE,
)
_UNRESERVABLE = ("standard_nd", "standard_nc40ads_h100", "standard_nc80adis_h100")
"""ND-series and NCads H100 v5-series."""

_EXCLUDED = ("proximityPlacementGroupID", "hostGroupID", "enableUltraSSD")


def is_reservable(size: str) -> bool:
    """Return whether machines of a size can be reserved on demand; others only in blocks."""
    return not size.lower().startswith(_UNRESERVABLE)


def check_reservation(pool: Json, identity: str) -> None:
    """Reject an invalid group id, machines without reservations, and properties that a reservation excludes.

    Args:
        pool: Wire properties.
        identity: Kind of the cluster's identity; a system-assigned one cannot use a group (docs:
            aks/use-capacity-reservation-groups).

    Raises:
        ArmError: 400.
    """
    group = pool.get("capacityReservationGroupID")
    if not group:
        return
    if not _GROUP.fullmatch(str(group)):
        raise bad_parameter(f"'{group}' is not the ID of a capacity reservation group.", _TARGET)
    if identity == "SystemAssigned":
        message = "A capacity reservation group can only be used by clusters with a user-assigned managed identity."
        raise aks_error("BadRequest", message, target=_TARGET)
    if pool["scaleSetPriority"] == "Spot":
        raise aks_error("BadRequest", "Spot VMs cannot use a capacity reservation group.", target=_TARGET)
    for key in _EXCLUDED:
        if pool.get(key):
            raise aks_error("BadRequest", f"A capacity reservation group cannot be used with {key}.", target=_TARGET)
    size = str(pool["vmSize"])
    if not is_reservable(size):
        message = f"The capacity reservation group has no reservation that matches the VM size '{size}'."
        raise aks_error("BadRequest", message, target=_TARGET)
