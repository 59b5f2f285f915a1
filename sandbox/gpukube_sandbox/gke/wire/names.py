"""Resource names of google.container.v1, including the old form of separate fields.

In scope: parsing and formatting them. Out of scope: finding resources.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from gpukube_sandbox.gke.wire.answers import bad

_NAME = re.compile(
    r"projects/(?P<project>[^/]+)/(?:locations|zones)/(?P<location>[^/]+)"
    r"(?:/clusters/(?P<cluster>[^/]+)(?:/nodePools/(?P<pool>[^/]+))?|/operations/(?P<operation>[^/]+))?"
)
_ZONE = re.compile(r"[a-z]+-[a-z]+\d+-(ai\d+)?[a-z]")
_LETTERS = {"us-central1": "abcf", "us-east1": "bcd", "europe-west1": "bcd"}
"""Region -> letters of its zones, if they are not a, b, and c (docs: compute/docs/regions-zones)."""
_ALL = """
    africa-south1 asia-east1 asia-east2 asia-northeast1 asia-northeast2 asia-northeast3 asia-south1 asia-south2
    asia-southeast1 asia-southeast2 asia-southeast3 australia-southeast1 australia-southeast2 europe-central2
    europe-north1 europe-north2 europe-southwest1 europe-west1 europe-west10 europe-west12 europe-west2 europe-west3
    europe-west4 europe-west6 europe-west8 europe-west9 me-central1 me-central2 me-west1 northamerica-northeast1
    northamerica-northeast2 northamerica-south1 southamerica-east1 southamerica-west1 us-central1 us-central2 us-east1
    us-east4 us-east5 us-east7 us-south1 us-west1 us-west2 us-west3 us-west4 us-west8
"""
REGIONS = frozenset(_ALL.split())
"""Source: docs: about/locations; those with their own repository in gcloud's core/docker/constants.py."""
_AI_ZONES = frozenset({"us-central1-ai1a", "us-south1-ai1b"})
"""Source: docs: compute/docs/regions-zones/ai-zones."""


@dataclass(frozen=True, slots=True)
class Place:
    """The parts of a name; missing parts are empty."""

    project: str
    location: str
    cluster: str = ""
    pool: str = ""
    operation: str = ""

    @property
    def parent(self) -> str:
        """Return the name of the location."""
        return f"projects/{self.project}/locations/{self.location}"

    @property
    def cluster_name(self) -> str:
        """Return the name of the cluster."""
        return f"{self.parent}/clusters/{self.cluster}"

    @property
    def pool_name(self) -> str:
        """Return the name of the node pool."""
        return f"{self.cluster_name}/nodePools/{self.pool}"


def parse_name(name: str) -> Place:
    """Parse a resource name.

    Raises:
        GoogleError: 400 for an invalid name (the message is unconfirmed).
    """
    found = _NAME.fullmatch(name)
    if found is None:
        raise bad(f"Invalid resource name {name!r}.")
    parts = {key: value or "" for key, value in found.groupdict().items()}
    return Place(**parts)


def is_zone(location: str) -> bool:
    """Return whether a location is a zone, "us-central1-a" or "us-central1-ai1a", not a region."""
    return _ZONE.fullmatch(location) is not None


def zones_of(region: str) -> list[str]:
    """Return the zones of a region, without its AI zones."""
    return [f"{region}-{letter}" for letter in _LETTERS.get(region, "abc")]


def exists(zone: str) -> bool:
    """Return whether a zone exists."""
    return (region_of(zone) in REGIONS and zone in zones_of(region_of(zone))) or zone in _AI_ZONES


def is_location(name: str) -> bool:
    """Return whether a zone or region exists."""
    return name in REGIONS or exists(name)


def region_of(location: str) -> str:
    """Return the region of a zone; a region is returned unchanged."""
    return location.rpartition("-")[0] if is_zone(location) else location
