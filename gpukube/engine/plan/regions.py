"""Regions of clusters, to which prices apply."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.provider import load_provider

if TYPE_CHECKING:
    from gpukube.core.values import ClusterRef


def region_of(cluster: ClusterRef, location: str = "") -> str:
    """Return the region whose prices apply to a cluster; "" if neither the cloud nor the spec names one.

    Args:
        cluster: Cluster of the spec.
        location: Location that the cloud reports; "" if it was not read.
    """
    catalog = load_provider(cluster.provider).extras.catalog
    if catalog is None:
        return location
    found = location or (cluster.identity.get(catalog.location, "") if catalog.location else "")
    return catalog.region_of(found)
