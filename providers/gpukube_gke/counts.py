"""Pool totals and numbers per zone: the spec counts the one, GKE the other.

Lives here: the arithmetic and its error. Must not live here: which zones (`translate`, `client`).

Source: google.container.v1 NodePool.initial_node_count and NodePoolAutoscaling (per zone); SetNodePoolSize too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpukube.errors import Diagnostic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.core.values import Nodes, Target

__all__ = ["PerZone", "check_counts", "per_zone"]

_MOST_PER_ZONE = 1000  # docs: kubernetes-engine/quotas


@dataclass(frozen=True, slots=True)
class PerZone:
    """Numbers for each zone; minimum and maximum are those of the autoscaler."""

    count: int
    minimum: int
    maximum: int


def per_zone(nodes: Nodes, zones: int) -> PerZone:
    """Share out totals that the zones divide; with no zones given the pool is in one."""
    parts = max(1, zones)
    return PerZone(nodes.count // parts, nodes.minimum // parts, nodes.maximum // parts)


def check_counts(target: Target) -> Iterator[Diagnostic]:
    """Find totals that the zones do not divide, and more nodes than a zone may have."""
    zones = max(1, len(target.zones))
    for path, count in _totals(target).items():
        where = target.locator.at(path)
        if count % zones:
            low = count - count % zones
            yield Diagnostic(
                "gke-zones-divide",
                where,
                f"{path} is {count}, which {zones} zones do not divide",
                fix=f"write {f'{low} or ' if low else ''}{low + zones}, or other zones",
                why="GKE counts nodes per zone, the same number in each",
            )
        elif count > _MOST_PER_ZONE * zones:
            fix = f"ask for at most {_MOST_PER_ZONE} nodes in each zone, or split the pool"
            says = f"{path} comes to {count} nodes, more than a pool of {_zones(zones)} can have"
            yield Diagnostic("gke-node-count", where, says, fix=fix)


def _zones(count: int) -> str:
    return f"{count} zones" if count > 1 else "one zone"


def _totals(target: Target) -> dict[str, int]:
    nodes = target.nodes
    if not nodes.autoscaled:
        return {"nodes.count": nodes.count}
    bounds = {"nodes.autoscaling.min": nodes.minimum, "nodes.autoscaling.max": nodes.maximum}
    return bounds if nodes.count == nodes.minimum else {**bounds, "nodes.autoscaling.initial": nodes.count}
