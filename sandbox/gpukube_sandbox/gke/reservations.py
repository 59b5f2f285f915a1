"""Declared reservations in the form of Compute Engine's lists.

In scope: their resources. Out of scope: whether a pool may use one (`provisioning`).

Source: docs: compute/docs/reference/rest/v1/reservations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube_sandbox.gke.market import all_zones
from gpukube_sandbox.gke.references import owner_of, reservation_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpukube_sandbox.gke.clusters import Cluster
    from gpukube_sandbox.gke.references import Known
    from gpukube_sandbox.gke.wire.answers import Json


_PLENTY = 1000


def reservations_of(
    project: str, things: Mapping[str, Known], clusters: Mapping[str, Cluster]
) -> dict[str, list[Json]]:
    """Return the reservations of a project by zone.

    One that was declared without a zone is in every zone; one without a count has more machines than any test needs.
    """
    known = dict(things[project].reservations) if project in things else {}
    for cluster in clusters.values():
        if cluster.place.project == project:
            known |= cluster.options.reservations
    found: dict[str, list[Json]] = {}
    for name, given in known.items():
        for zone in [str(given["zone"])] if "zone" in given else all_zones():
            taken = sum(_taken(project, name, zone, clusters))
            found.setdefault(zone, []).append(_resource(project, zone, name, given, taken))
    return found


def _taken(project: str, name: str, zone: str, clusters: Mapping[str, Cluster]) -> Iterator[int]:
    """Yield the number of machines of each pool that uses a reservation."""
    for cluster in clusters.values():
        for pool in cluster.pools.values():
            if reservation_of(pool.wire) == name and owner_of(pool.wire, cluster.place.project) == project:
                yield len(pool.nodes.get(zone, ()))


def _resource(project: str, zone: str, name: str, given: Mapping[str, object], taken: int) -> Json:
    base = f"https://www.googleapis.com/compute/v1/projects/{project}/zones/{zone}"
    machine = {"machineType": given["machineType"]} if "machineType" in given else {}
    count = str(given.get("count", _PLENTY))
    ends = {"deleteAtTime": given["deleteAtTime"]} if "deleteAtTime" in given else {}
    return {
        "kind": "compute#reservation",
        "name": name,
        "status": given.get("status", "READY"),
        "specificReservationRequired": True,
        "specificReservation": {  # int64, therefore strings
            "count": count,
            "assuredCount": str(given.get("assuredCount", count)),
            "inUseCount": str(taken + int(str(given.get("inUseByOthers", 0)))),
            "instanceProperties": machine,
        },
        **ends,
        "shareSettings": {"shareType": "LOCAL"},
        "zone": base,
        "selfLink": f"{base}/reservations/{name}",
    }
