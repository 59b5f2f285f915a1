"""What is newer for a live pool, as a part of the plan's document."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpukube.core.upgrades import UpgradeOutlook
    from gpukube.engine.documents.shapes.upgrades import Upgrades


def upgrades_part(outlook: UpgradeOutlook | None) -> Upgrades | None:
    """Describe what an upgrade brings and costs; None where nothing is newer, as far as is known."""
    if outlook is None:
        return None
    live, offer, terms = outlook.live, outlook.offer, outlook.terms
    return {
        "planned": outlook.is_planned,
        "kubernetes": {"live": live.kubernetes, "available": offer.kubernetes or None},
        "image": {"live": live.image, "available": offer.image},
        "unknown": offer.unknown,
        "automatic": terms.automatic,
        "obstacle": terms.obstacle,
        "extraNodes": terms.extra_nodes,
        "nodes": terms.nodes,
        "drainMinutes": terms.drain_minutes,
        "overdue": terms.overdue,
        "pods": terms.pods,
        "blocked": None if outlook.blocked is None else list(outlook.blocked),
    }
