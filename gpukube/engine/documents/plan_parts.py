"""Quotas, drains, replacements and upgrades as parts of a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from gpukube.engine.documents.parts import diagnostic_document, part_of, request_part

if TYPE_CHECKING:
    from gpukube.core.drain_forecast import DrainForecast
    from gpukube.core.quotas import QuotaUse
    from gpukube.core.upgrades import UpgradeOutlook
    from gpukube.core.values import PoolPlan
    from gpukube.engine.documents.shapes.plan import PoolPart
    from gpukube.engine.documents.shapes.plan_parts import LeavingPart, Quota, ReplacementPart, Upgrades


def quota_part(use: QuotaUse) -> Quota:
    """Return one quota as a document part."""
    quota, reading = use.quota, use.reading
    return {
        "name": quota.name,
        "title": quota.title,
        "place": quota.place,
        "unit": quota.unit,
        "needed": use.needed,
        "pools": list(use.pools),
        "used": reading.used,
        "limit": reading.limit,
        "short": use.is_short,
        "unknown": reading.unknown,
        "fix": use.fix if use.is_short else "",
        "raiseBy": quota.raise_by,
        "source": quota.source,
    }


def leaving_part(found: DrainForecast | None) -> LeavingPart | None:
    """Return what a drain would encounter; None if nothing leaves, or if it is unknown."""
    if found is None:
        return None
    return cast("LeavingPart", {"pods": found.pods, "seconds": found.seconds, **part_of(found)})


def has_no_end(pool: PoolPart) -> bool:
    """Return whether the drain of a replaced pool waits for something that never happens on its own."""
    leaving = pool["leaving"]
    return pool["action"] == "replace" and leaving is not None and bool(leaving["blocked"])


def replacement_part(plan: PoolPlan) -> ReplacementPart | None:
    """Return how a second pool would replace the live one; None if none would."""
    found = plan.replacement
    if found is None:
        return None
    return {
        "surge": not found.obstacles,
        "obstacles": [diagnostic_document(one) for one in found.obstacles],
        "unknown": list(found.unknown),
        "oldPool": plan.name,
        "newPool": found.name,
        "underWay": found.beside is not None,
        "step": found.step,
        "requests": [request_part(one) for one in found.requests],
    }


def replacement_needs(plan: PoolPlan) -> list[str]:
    """Return the flag that a replacement needs: the way that keeps GPUs, if possible."""
    surge = plan.replacement is not None and not plan.replacement.obstacles
    return ["--replace surge" if surge else "--replace recreate"]


def upgrades_part(outlook: UpgradeOutlook | None) -> Upgrades | None:
    """Return what an upgrade changes and costs; None if nothing newer is known."""
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
