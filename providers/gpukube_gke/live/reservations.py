"""Finds the reservation that a pool names, which GKE's own API does not show.

In scope: the call of Compute Engine. Out of scope: parsing its response (`facts.capacity`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.core.fields import ZONES
from gpukube_gke.facts.capacity import list_filter, read_reserved
from gpukube_gke.facts.places import region_of
from gpukube_gke.live.market import COMPUTE_URL, all_pages
from gpukube_gke.pool.purchase import reserved_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.fields import FieldPath
    from gpukube.core.reservations import LiveReservation
    from gpukube_gke.live.market import Session


def find_reserved(
    session: Session, base: str, timeout_s: float, place: Mapping[str, str], fields: Mapping[FieldPath, object]
) -> LiveReservation | None:
    """Read a reservation by its name, in the project that has it; None if there is none.

    Args:
        session: Sends the token with each request.
        base: URL that replaces Google's; "" for Google's own.
        timeout_s: Timeout of one request.
        place: Project and location of the cluster.
        fields: Fields of a pool that names a reservation.
    """
    project, name = reserved_name(fields)
    url = f"{base or COMPUTE_URL}/compute/v1/projects/{project or place['project']}/aggregated/reservations"
    params = {"filter": list_filter([name]), "returnPartialSuccess": "true"}
    zones = fields.get(ZONES)
    return read_reserved(
        all_pages(session, url, params, timeout_s),
        name,
        region_of(place["location"]),
        zones if isinstance(zones, tuple) else (),
    )
