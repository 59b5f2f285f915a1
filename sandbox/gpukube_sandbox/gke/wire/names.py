"""Resource names of google.container.v1, the old form of separate fields included.

In scope: reading and writing them. Out of scope: looking anything up.
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
"""Region -> letters of its zones, where they are not a, b and c (docs: compute/docs/regions-zones)."""
_ALL = """
    africa-south1 asia-east1 asia-east2 asia-northeast1 asia-northeast2 asia-northeast3 asia-south1 asia-south2
    asia-southeast1 asia-southeast2 asia-southeast3 australia-southeast1 australia-southeast2 europe-central2
    europe-north1 europe-north2 europe-southwest1 europe-west1 europe-west10 europe-west12 europe-west2 europe-west3
    europe-west4 europe-west6 europe-west8 europe-west9 me-central1 me-central2 me-west1 northamerica-northeast1
    northamerica-northeast2 northamerica-south1 southamerica-east1 southamerica-west1 us-central1 us-central2 us-east1
    us-east4 us-east5 us-east7 us-south1 us-west1 us-west2 us-west3 us-west4 us-west8
"""
REGIONS = frozenset(_ALL.split())
"""Docs: about/locations; those with a repository of their own in gcloud's core/docker/constants.py."""
_AI_ZONES = frozenset({"us-central1-ai1a", "us-south1-ai1b"})
"""Docs: compute/docs/regions-zones/ai-zones."""


@dataclass(frozen=True, slots=True)
class Place:
    """The parts of a name; those that are not in it are empty."""

    project: str
    location: str
    cluster: str = ""
    pool: str = ""
    operation: str = ""

    @property
    def parent(self) -> str:
        """Name of the location."""
        return f"projects/{self.project}/locations/{self.location}"

    @property
    def cluster_name(self) -> str:
        """Name of the cluster."""
        return f"{self.parent}/clusters/{self.cluster}"

    @property
    def pool_name(self) -> str:
        """Name of the node pool."""
        return f"{self.cluster_name}/nodePools/{self.pool}"


def parse_name(name: str) -> Place:
    """Read a resource name.

    Raises:
        Refusal: 400, it is none (the sentence is unconfirmed).
    """
    found = _NAME.fullmatch(name)
    if found is None:
        raise bad(f"Invalid resource name {name!r}.")
    parts = {key: value or "" for key, value in found.groupdict().items()}
    return Place(**parts)


def is_zone(location: str) -> bool:
    """Whether a location is a zone, "us-central1-a" or "us-central1-ai1a", and not a region."""
    return _ZONE.fullmatch(location) is not None


def zones_of(region: str) -> list[str]:
    """The zones of a region, without its AI zones."""
    return [f"{region}-{letter}" for letter in _LETTERS.get(region, "abc")]


def exists(zone: str) -> bool:
    """Whether there is such a zone."""
    return (region_of(zone) in REGIONS and zone in zones_of(region_of(zone))) or zone in _AI_ZONES


def is_location(name: str) -> bool:
    """Whether there is such a zone or region."""
    return name in REGIONS or exists(name)


def region_of(location: str) -> str:
    """The region of a zone; a region is its own."""
    return location.rpartition("-")[0] if is_zone(location) else location
