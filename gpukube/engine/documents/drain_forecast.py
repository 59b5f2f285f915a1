"""What is foreseen of a drain -> its part of a document."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.core.drain_forecast import DrainForecast, KeptPod
    from gpukube.engine.documents.shapes.drain_forecast import KeptPodPart, LeavingPart
    from gpukube.engine.documents.shapes.plan import PoolPart


def leaving_part(found: DrainForecast | None) -> LeavingPart | None:
    """Describe what a drain would meet; None where nothing leaves, or it is not known."""
    if found is None:
        return None
    return {
        "pods": found.pods,
        "seconds": found.seconds,
        "blocked": _kept(found.blocked),
        "waiting": _kept(found.waiting),
        "needing": _kept(found.needing),
        "turns": [
            {"budget": turn.budget, "pods": turn.pods, "allowed": turn.allowed, "seconds": turn.seconds}
            for turn in found.turns
        ],
        "gangs": [{"name": gang.name, "pods": gang.pods, "note": gang.note} for gang in found.gangs],
        "queues": [{"name": queue.name, "hold": queue.hold, "resume": queue.resume} for queue in found.queues],
        "homeless": _kept(found.homeless),
        "pins": [{"object": pin.object, "field": pin.field, "label": pin.label} for pin in found.pins],
        "unread": list(found.unread),
    }


def has_no_end(pool: PoolPart) -> bool:
    """Return whether the drain of a pool that is replaced waits for what nothing brings about by itself."""
    leaving = pool["leaving"]
    return pool["action"] == "replace" and leaving is not None and bool(leaving["blocked"])


def _kept(pods: Sequence[KeptPod]) -> list[KeptPodPart]:
    return [
        {"pod": pod.pod, "node": pod.node, "why": pod.why, "fix": pod.fix, "budgets": list(pod.budgets)} for pod in pods
    ]
