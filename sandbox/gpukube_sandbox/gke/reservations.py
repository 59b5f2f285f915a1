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
    from gpukube_sandbox.stock import Stock


_PLENTY = 1000


def reservations_of(
    project: str, things: Mapping[str, Known], clusters: Mapping[str, Cluster], stock: Stock
) -> dict[str, list[Json]]:
    """Return the reservations of a project by zone; the stock limits the machines that are assured.

    One that was declared without a zone is in every zone; one without a count has more machines than any test needs.
    """
    found: dict[str, list[Json]] = {}
    for name, given in declared(project, things, clusters).items():
        for zone in [str(given["zone"])] if "zone" in given else all_zones():
            used = in_use(project, name, zone, given, clusters)
            free = stock.free("gke", zone, str(given.get("machineType", "")), "reserved")
            assured = int(str(given.get("assuredCount", given.get("count", _PLENTY))))
            assured = assured if free is None else min(assured, used + free)
            found.setdefault(zone, []).append(_resource(project, zone, name, given, (used, assured)))
    return found


def declared(
    project: str, things: Mapping[str, Known], clusters: Mapping[str, Cluster]
) -> dict[str, dict[str, object]]:
    """Return the reservations that a project has, and those that its clusters were created with, by name."""
    known = dict(things[project].reservations) if project in things else {}
    for cluster in clusters.values():
        if cluster.place.project == project:
            known |= cluster.options.reservations
    return known


def in_use(project: str, name: str, zone: str, given: Mapping[str, object], clusters: Mapping[str, Cluster]) -> int:
    """Return how many machines of a reservation exist: those of pools, and those that it was declared with."""
    return sum(_taken(project, name, zone, clusters)) + int(str(given.get("inUseByOthers", 0)))


def _taken(project: str, name: str, zone: str, clusters: Mapping[str, Cluster]) -> Iterator[int]:
    """Yield the number of machines of each pool that uses a reservation."""
    for cluster in clusters.values():
        for pool in cluster.pools.values():
            if reservation_of(pool.wire) == name and owner_of(pool.wire, cluster.place.project) == project:
                yield len(pool.nodes.get(zone, ()))


def _resource(project: str, zone: str, name: str, given: Mapping[str, object], counts: tuple[int, int]) -> Json:
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
            "assuredCount": str(counts[1]),
            "inUseCount": str(counts[0]),
            "instanceProperties": machine,
        },
        **ends,
        "shareSettings": {"shareType": "LOCAL"},
        "zone": base,
        "selfLink": f"{base}/reservations/{name}",
    }
