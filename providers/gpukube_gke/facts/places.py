"""Resource names and places of Google Cloud: projects, locations, zones and regions, as text.

Lives here: making and reading names. Must not live here: which zone a pool goes to (`pool.placement`).

Source: google.container.v1, CreateNodePoolRequest.parent and GetOperationRequest.name.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpukube.core.values import ClusterRef

_ZONE = re.compile(r"[a-z]+-[a-z]+\d+-(ai\d+)?[a-z]")
"""us-central1-a, and the AI zones us-central1-ai1a (docs: compute/docs/regions-zones/ai-zones)."""
_REGION = re.compile(r"[a-z]+-[a-z]+\d+")
_PROJECT = re.compile(r"(?:^|/)projects/(?P<project>[^/]+)/")


def cluster_name(cluster: ClusterRef) -> str:
    """Name a cluster; the parent of its pools."""
    return f"{_location(cluster)}/clusters/{cluster.name}"


def pool_name(cluster: ClusterRef, pool: str) -> str:
    """Name a pool."""
    return f"{cluster_name(cluster)}/nodePools/{pool}"


def operation_name(cluster: ClusterRef, operation: str) -> str:
    """Name an operation; the answers of GKE hold its last part only."""
    return f"{_location(cluster)}/operations/{operation}"


def is_zone(location: str) -> bool:
    """Return whether a location is a zone (us-central1-a) and not a region (us-central1)."""
    return _ZONE.fullmatch(location) is not None


def is_location(location: str) -> bool:
    """Return whether a text is the name of a zone or of a region."""
    return is_zone(location) or _REGION.fullmatch(location) is not None


def region_of(location: str) -> str:
    """Return the region of a zone; a region is its own."""
    return location.rpartition("-")[0] if is_zone(location) else location


def project_of(link: str) -> str:
    """Find the project in a name or link; "" when there is none."""
    found = _PROJECT.search(link)
    return found["project"] if found else ""


def _location(cluster: ClusterRef) -> str:
    return f"projects/{cluster.identity['project']}/locations/{cluster.identity['location']}"
