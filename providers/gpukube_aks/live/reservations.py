"""Reads capacity reservation groups: what they hold, and the machines that use them.

In scope: the calls. Out of scope: parsing their responses (`facts.capacity`).
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from azure.core.rest import HttpRequest

from gpukube_aks.facts.capacity import read_reserved
from gpukube_aks.live.pages import answer_of, listed

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from gpukube.core.reservations import LiveReservation
    from gpukube_aks.live.pages import Sender

GROUPS_VERSION: Final = "2025-04-01"
"""First version with the type of a reservation, such as Block."""


def read_group(arm: Sender, base: str, group: str) -> tuple[Mapping[str, object], list[Mapping[str, object]]]:
    """Read a group with its use, and its reservations: only they have sizes and zones.

    Args:
        arm: Sends the requests.
        base: URL of ARM.
        group: Id of the group.
    """
    params = {"api-version": GROUPS_VERSION}
    viewed = answer_of(arm, HttpRequest("GET", f"{base}{group}", params={**params, "$expand": "instanceView"}))
    inside = HttpRequest("GET", f"{base}{group}/capacityReservations", params=params)
    return viewed, list(listed(arm, inside, base))


def find_reserved(arm: Sender, base: str, group: str, size: str, zones: Collection[str]) -> LiveReservation | None:
    """Read the reservations of a group that a pool uses; None if the group has none, or their use is unknown.

    Args:
        arm: Sends the requests.
        base: URL of ARM.
        group: Id of the group.
        size: VM size of the pool.
        zones: Zones of the pool; empty for a pool without zones.
    """
    viewed, inside = read_group(arm, base, group)
    return read_reserved(viewed, inside, size, zones, datetime.now(UTC).date().isoformat())
