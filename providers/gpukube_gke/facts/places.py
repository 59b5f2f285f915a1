"""Places and resource names of Google Cloud: regions and their zones, locations, projects, clusters, pools.

In scope: the list of regions, building and parsing names. Out of scope: choosing the zone of a pool (`pool.placement`).

The list follows the table of compute/docs/regions-zones at the time of writing, without AI zones. A region or zone that
is missing may be newer than the list, so it only causes a warning. Names:
google.container.v1, CreateNodePoolRequest.parent and GetOperationRequest.name.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gpukube.core.values import ClusterRef

_OTHER_LETTERS: Final = {"europe-west1": "bcd", "us-central1": "abcf", "us-east1": "bcd"}
REGIONS: Final = frozenset({
    "africa-south1", "asia-east1", "asia-east2", "asia-northeast1", "asia-northeast2", "asia-northeast3", "asia-south1",
    "asia-south2", "asia-southeast1", "asia-southeast2", "asia-southeast3", "australia-southeast1",
    "australia-southeast2", "europe-central2", "europe-north1", "europe-north2", "europe-southwest1", "europe-west1",
    "europe-west10", "europe-west12", "europe-west2", "europe-west3", "europe-west4", "europe-west6", "europe-west8",
    "europe-west9", "me-central1", "me-central2", "me-west1", "northamerica-northeast1", "northamerica-northeast2",
    "northamerica-south1", "southamerica-east1", "southamerica-west1", "us-central1", "us-east1", "us-east4",
    "us-east5", "us-south1", "us-west1", "us-west2", "us-west3", "us-west4",
})  # fmt: skip
_ZONE = re.compile(r"[a-z]+-[a-z]+\d+-(ai\d+)?[a-z]")
"""us-central1-a, and the AI zones us-central1-ai1a (docs: compute/docs/regions-zones/ai-zones)."""
_REGION = re.compile(r"[a-z]+-[a-z]+\d+")
_PROJECT = re.compile(r"(?:^|/)projects/(?P<project>[^/]+)/")


def cluster_name(cluster: ClusterRef) -> str:
    """Return the resource name of a cluster, the parent of its pools."""
    return f"{_location(cluster)}/clusters/{cluster.name}"


def pool_name(cluster: ClusterRef, pool: str) -> str:
    """Return the resource name of a pool."""
    return f"{cluster_name(cluster)}/nodePools/{pool}"


def operation_name(cluster: ClusterRef, operation: str) -> str:
    """Return the resource name of an operation; GKE's responses contain only its last part."""
    return f"{_location(cluster)}/operations/{operation}"


def is_zone(location: str) -> bool:
    """Return whether a location is a zone (us-central1-a) and not a region (us-central1)."""
    return _ZONE.fullmatch(location) is not None


def is_location(location: str) -> bool:
    """Return whether a text is the name of a zone or of a region."""
    return is_zone(location) or _REGION.fullmatch(location) is not None


def region_of(location: str) -> str:
    """Return the region of a zone; a region is returned as is."""
    return location.rpartition("-")[0] if is_zone(location) else location


def zones_in(region: str) -> tuple[str, ...]:
    """Return the zones of a listed region: a, b, and c nearly everywhere."""
    return tuple(f"{region}-{letter}" for letter in _OTHER_LETTERS.get(region, "abc"))


def project_of(link: str) -> str:
    """Return the project in a name or link; "" if there is none."""
    found = _PROJECT.search(link)
    return found["project"] if found else ""


def _location(cluster: ClusterRef) -> str:
    return f"projects/{cluster.identity['project']}/locations/{cluster.identity['location']}"
