"""Numbers of nodes: totals of the pool in the spec, totals and numbers per zone on GKE.

In scope: the arithmetic and its errors. Out of scope: which zones (`translate`, `live.client`).

A size is per zone (google.container.v1 NodePool.initial_node_count, SetNodePoolSizeRequest.node_count). The bounds of
the autoscaler are either of the whole pool or per zone (NodePoolAutoscaling.total_max_node_count, max_node_count).
They are sent as the scope of the spec says: bounds per zone keep a pool from using its maximum where only one zone
has machines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.errors import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.core.values import Nodes, Target

MOST_PER_ZONE: Final = 1000
"""Nodes of a pool in one zone (docs: kubernetes-engine/quotas)."""
_WHY: Final = "GKE counts nodes per zone, the same number in each"


def initial_per_zone(nodes: Nodes, zones: int) -> int:
    """Return the nodes that each zone gets at creation.

    Where the zones do not divide the minimum of an autoscaled pool, it begins above the minimum rather than below it,
    because the autoscaler adds no nodes for a minimum alone; but never above the maximum.
    """
    low, rest = divmod(nodes.count, zones)
    return low + 1 if rest and (low + 1) * zones <= nodes.maximum else low


def autoscaling_bounds(nodes: Nodes, zones: int) -> dict[str, object]:
    """Return the bounds in the form of NodePoolAutoscaling; the pair that is not sent is cleared."""
    if nodes.scope == "zone":
        return {"minNodeCount": nodes.minimum // zones, "maxNodeCount": nodes.maximum // zones}
    return {"totalMinNodeCount": nodes.minimum, "totalMaxNodeCount": nodes.maximum}


def check_counts(target: Target) -> Iterator[Finding]:
    """Find sizes that the zones do not divide, and more nodes than a zone may have."""
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
    """Without `initial` a pool begins with its minimum, as nearly as its zones can have it."""
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
