"""Node counts: pool totals in the spec, totals and per-zone numbers on GKE.

In scope: the arithmetic and its errors. Out of scope: choosing zones (`translate`, `live.client`).

A size is per zone (google.container.v1 NodePool.initial_node_count, SetNodePoolSizeRequest.node_count). The
autoscaler's bounds apply to the whole pool or per zone (NodePoolAutoscaling.total_max_node_count, max_node_count).
The scope in the spec decides: with per-zone bounds a pool cannot reach its maximum if only one zone has machines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.errors import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.core.values import Nodes, Target

MOST_PER_ZONE: Final = 1000
"""Maximum nodes of a pool in one zone (docs: kubernetes-engine/quotas)."""
_WHY: Final = "GKE counts nodes per zone, the same number in each"


def initial_per_zone(nodes: Nodes, zones: int) -> int:
    """Return the number of nodes per zone at creation.

    If the minimum of an autoscaled pool is not divisible by the zones, the pool starts above it rather than below,
    because the autoscaler does not add nodes just to reach the minimum; but never above the maximum.
    """
    low, rest = divmod(nodes.count, zones)
    return low + 1 if rest and (low + 1) * zones <= nodes.maximum else low


def autoscaling_bounds(nodes: Nodes, zones: int) -> dict[str, object]:
    """Return the bounds as NodePoolAutoscaling; GKE clears the pair that is not sent."""
    if nodes.scope == "zone":
        return {"minNodeCount": nodes.minimum // zones, "maxNodeCount": nodes.maximum // zones}
    return {"totalMinNodeCount": nodes.minimum, "totalMaxNodeCount": nodes.maximum}


def check_counts(target: Target) -> Iterator[Finding]:
    """Find sizes that are not divisible by the zones, and more nodes than a zone may have."""
    zones = max(1, len(target.zones))
    yield from _uneven(target, zones)
    path = "nodes.autoscaling.max" if target.nodes.autoscaled else "nodes.count"
    if target.nodes.maximum > MOST_PER_ZONE * zones:
        fix = f"request at most {MOST_PER_ZONE} nodes per zone, or split the pool"
        shown = f"{zones} zones" if zones > 1 else "one zone"
        message = f"{path} is {target.nodes.maximum}, more nodes than a pool in {shown} can have"
        yield Finding("gke-node-count", target.locator.at(path), message, fix=fix)


def _uneven(target: Target, zones: int) -> Iterator[Finding]:
    nodes = target.nodes
    if nodes.count % zones == 0:
        return
    if nodes.autoscaled and nodes.count == nodes.minimum:
        yield _uneven_minimum(target, zones)
        return
    path = "nodes.autoscaling.initial" if nodes.autoscaled else "nodes.count"
    low = nodes.count - nodes.count % zones
    message = f"{path} is {nodes.count}, which is not divisible by {zones} zones"
    fix = f"write {f'{low} or ' if low else ''}{low + zones}, or other zones"
    yield Finding("gke-zones-divide", target.locator.at(path), message, fix=fix, why=_WHY)


def _uneven_minimum(target: Target, zones: int) -> Finding:
    """Without `initial` a pool starts with its minimum, rounded to what its zones allow."""
    nodes, path = target.nodes, "nodes.autoscaling.min"
    each = initial_per_zone(nodes, zones)
    first = each * zones
    begins = f"{first} nodes, {each} in each zone" if each else "no nodes"
    return Finding(
        "gke-zones-divide",
        target.locator.at(path),
        f"{path} is {nodes.minimum}, which is not divisible by {zones} zones: the pool starts with {begins}",
        fix=f"write initial: {first}, or other zones"
        if first >= nodes.minimum
        else "write another min, or other zones",
        why=f"{_WHY}, at creation; min and max apply to the whole pool",
        severity="warning",
    )
