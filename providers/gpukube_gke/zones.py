"""Which zone a pool goes to when the spec names none.

Lives here: that choice, from a cluster as read. Must not live here: calls.

One zone, never all: GKE would make the pool's nodes in every zone of a regional cluster, also where the GPU is not
offered. A pool that is there keeps its zone; else the zone of another pool with the same GPUs, which proves that
it is offered there; else the first zone of the cluster, in the order that the cluster has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gpukube.errors import SpecError
from gpukube_gke.observe import observe_pool, zones_of

if TYPE_CHECKING:
    from gpukube.core.values import Desired

__all__ = ["choose_zone"]


def choose_zone(desired: Desired, cluster: Mapping[str, object]) -> tuple[str, ...]:
    """Choose the zone of a pool, as a tuple of one.

    Args:
        desired: The pool.
        cluster: The cluster in the JSON form of google.container.v1, its pools included.

    Raises:
        SpecError: The cluster names no zones.
    """
    target = desired.target
    found = cluster.get("nodePools")
    pools = [pool for pool in found if isinstance(pool, Mapping)] if isinstance(found, list) else []
    for pool in pools:
        if pool.get("name") == target.name and zones_of(pool):
            return zones_of(pool)[:1]
    for pool in pools:
        gpu = str(observe_pool(pool).fields.get("gpu", "")).rpartition(" ")[2]
        if gpu == target.machine.accelerator and zones_of(pool):
            return zones_of(pool)[:1]
    if zones := zones_of(cluster):
        return zones[:1]
    raise SpecError(
        "the cluster names no zone for the pool",
        where=target.locator.at("zones"),
        fix=f"write zones: [{target.cluster.identity['location']}-a]",
        code="no-zone",
    )
