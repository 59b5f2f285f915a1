"""Chooses the zone of a pool if the spec names none.

In scope: that choice, from a cluster as read. Out of scope: calls.

One zone, never all: GKE would create nodes in every zone of a regional cluster, even where the GPU is not offered. An
existing pool keeps its zone while it keeps its GPU; else the zone of another pool with the same GPUs, which proves that
they are offered there; else the first zone with the GPU according to Compute Engine, the pool's own zone before the
cluster's others; if Compute Engine does not answer, the first of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.core.fields import GPU
from gpukube.core.jsontree import trees
from gpukube.errors import SpecError
from gpukube_gke.facts.places import region_of
from gpukube_gke.pool.fields import zones_of
from gpukube_gke.pool.observe import observe_pool

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gpukube.core.values import Desired


def choose_zone(
    desired: Desired, cluster: Mapping[str, object], offers: Callable[[str], frozenset[str]]
) -> tuple[str, ...]:
    """Choose the zone of a pool, as a tuple of one.

    Args:
        desired: The pool.
        cluster: The cluster in the JSON form of google.container.v1, its pools included.
        offers: Returns the zones with an accelerator type; empty if unknown. Called only if no pool has the GPU.

    Raises:
        SpecError: The cluster has no zone with the GPU.
    """
    target = desired.target
    pools = trees(cluster, "nodePools")
    own = next((pool for pool in pools if pool.get("name") == target.name), {})
    if zones_of(own) and _accelerator(own) in ("", target.machine.accelerator):
        return zones_of(own)[:1]
    for pool in pools:
        if _accelerator(pool) == target.machine.accelerator and zones_of(pool):
            return zones_of(pool)[:1]
    offered = offers(target.machine.accelerator)
    zones = tuple(dict.fromkeys([*zones_of(own), *zones_of(cluster)]))
    if fitting := [zone for zone in zones if zone in offered or not offered]:
        return (fitting[0],)
    region = region_of(target.cluster.identity["location"])
    near = sorted(zone for zone in offered if region_of(zone) == region)
    raise SpecError(
        f"no zone of the cluster ({', '.join(zones) or 'none given'}) has {target.machine.accelerator}",
        where=target.locator.at("zones"),
        fix=f"write zones: [{', '.join(near)}]" if near else "write zones:, or choose another GPU",
        code="no-zone",
    )


def _accelerator(pool: Mapping[str, object]) -> str:
    return str(observe_pool(pool).fields.get(GPU, "")).rpartition(" ")[2] if pool else ""
