"""Machines from a capacity reservation group: what Azure refuses beside one.

In scope: rules over the properties of one pool, pure. Out of scope: other rules (`rules`), whether the group
exists (`references`). What is in the groups is not emulated: every group has what it is asked for.

Source: docs: virtual-machines/capacity-reservation-overview (of 2026-02-17), limitations and restrictions. Codes and
sentences are unconfirmed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpukube_sandbox.aks.answers import bad_parameter, refuse

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


def check_reservation(pool: Json, identity: str) -> None:
    """Refuse a reservation that is none, for machines that have none, and beside what excludes it.

    Args:
        pool: Wire properties.
        identity: Of the cluster; a system-assigned one cannot use a group (docs: aks/use-capacity-reservation-groups).

    Raises:
        Refusal: 400.
    """
    group = pool.get("capacityReservationGroupID")
    if not group:
        return
    if not _GROUP.fullmatch(str(group)):
        raise bad_parameter(f"'{group}' is not the ID of a capacity reservation group.", _TARGET)
    if identity == "SystemAssigned":
        message = "A capacity reservation group can only be used by clusters with a user-assigned managed identity."
        raise refuse("BadRequest", message, target=_TARGET)
    if pool["scaleSetPriority"] == "Spot":
        raise refuse("BadRequest", "Spot VMs cannot use a capacity reservation group.", target=_TARGET)
    for key in _EXCLUDED:
        if pool.get(key):
            raise refuse("BadRequest", f"A capacity reservation group cannot be used with {key}.", target=_TARGET)
    size = str(pool["vmSize"])
    if size.lower().startswith(_UNRESERVABLE):
        message = f"The capacity reservation group has no reservation that matches the VM size '{size}'."
        raise refuse("BadRequest", message, target=_TARGET)
