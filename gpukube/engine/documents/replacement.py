"""Replacements -> their part of the plan's document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.engine.documents.parts import diagnostic_document, request_part

if TYPE_CHECKING:
    from gpukube.core.values import PoolPlan
    from gpukube.engine.documents.shapes.replacement import ReplacementPart


def replacement_part(plan: PoolPlan) -> ReplacementPart | None:
    """Describe how a second pool would take the place of the live one; None where none would."""
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
    """List the flag that a replace needs: the way that keeps GPUs, where it is open."""
    surge = plan.replacement is not None and not plan.replacement.obstacles
    return ["--replace surge" if surge else "--replace recreate"]
