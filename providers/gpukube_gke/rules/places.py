"""Checks whether a pool's cluster and zones are possible: names and places in Google's format.

In scope: checks of the spec's `clusters` and `zones`. Out of scope: names of pools (`checks`), the zone of a
reservation (`capacity`), building names (`facts.places`).

Each pool of a cluster has the same findings about the cluster, which count once.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from gpukube.errors import Finding
from gpukube.visible import spell_out_lookalikes
from gpukube_gke.facts.places import REGIONS, is_location, is_zone, region_of, zones_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.core.values import Target
    from gpukube.errors import Where

_CLUSTER: Final = re.compile(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?")
"""Cluster name, up to 40 characters (google.container.v1 Cluster.name)."""
_PROJECT: Final = re.compile(r"([a-z0-9.-]+:)?[a-z][-a-z0-9]{4,28}[a-z0-9]|\d+")
"""Project id, for an old organization with its domain and a colon (docs:
resource-manager/docs/creating-managing-projects); or a project number."""


def check_places(target: Target) -> Iterator[Finding]:
    """Report an impossible cluster, and zones that are elsewhere."""
    cluster, location = target.cluster, target.cluster.identity["location"]
    project = cluster.identity["project"]
    if not _PROJECT.fullmatch(project):
        message = f'clusters.{cluster.key}.project is "{spell_out_lookalikes(project)}", which is not a project id'
        fix = "write the id (gcloud projects list), which has 6 to 30 lower-case letters, digits and -, not the name"
        yield Finding("gke-project", cluster.at("project"), message, fix=fix)
    if not _CLUSTER.fullmatch(cluster.name):
        name = spell_out_lookalikes(cluster.name)
        message = f'clusters.{cluster.key}.name is "{name}", which is not a valid GKE cluster name'
        fix = "write 1 to 40 lower-case letters, digits and -, starting with a letter and not ending with -"
        yield Finding("gke-cluster", cluster.at("name"), message, fix=fix)
    if is_location(location):
        yield from _unknown(f"clusters.{cluster.key}.location is", location, cluster.at("location"))
        yield from _zones(target, region_of(location))
    else:
        written = spell_out_lookalikes(location)
        message = f'clusters.{cluster.key}.location is "{written}", neither a region nor a zone of Google Cloud'
        fix = "write a region such as us-central1, or a zone such as us-central1-a"
        yield Finding("gke-location", cluster.at("location"), message, fix=fix)


def _zones(target: Target, region: str) -> Iterator[Finding]:
    for index, zone in enumerate(target.zones):
        where = target.locator.at(f"zones[{index}]")
        if not is_zone(zone) or region_of(zone) != region:
            fix = f"write zones such as {region}-a, or remove zones"
            message = f'"{spell_out_lookalikes(zone)}" is not a zone of {region}, where the cluster is'
            yield Finding("gke-zone", where, message, fix=fix)
        elif region in REGIONS:
            yield from _unknown(f"zones[{index}] is", zone, where, code="gke-zone")


def _unknown(what: str, place: str, where: Where, *, code: str = "gke-location") -> Iterator[Finding]:
    """Report places in the right format that are not known; AI zones are not in the list."""
    region = region_of(place)
    if region not in REGIONS:
        places = [name + place.removeprefix(region) for name in get_close_matches(region, sorted(REGIONS), 2)]
        near = " or ".join(places) or "a region such as us-central1"
    elif place == region or "-ai" in place or place in zones_in(region):
        return
    else:
        near = f"one of {', '.join(zones_in(region))}"
    yield Finding(
        code,
        where,
        f'{what} "{place}", which is not a known place of Google Cloud',
        fix=f"write {near}",
        why="places newer than this version of gpukube are not in its list (docs: compute/docs/regions-zones)",
        severity="warning",
    )
