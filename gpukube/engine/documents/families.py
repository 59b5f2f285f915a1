"""The places of pools in their families, as parts of plans and lists."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from gpukube.engine.plan.families import family_key
from gpukube.provider import load_provider

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpukube.core.values import PoolPlan
    from gpukube.engine.documents.shapes.parts import FamilyPart
    from gpukube.engine.plan.families import FamilyKey
    from gpukube.engine.plan.planning import ClusterPlan


def family_part(plan: PoolPlan, waits: dict[FamilyKey, float | None]) -> FamilyPart | None:
    """Return the place of a pool in its family; None for a pool of no family, or of an autoscaled one.

    Args:
        plan: The pool.
        waits: From `longest_waits`.
    """
    place, key = plan.family, family_key(plan.desired) if plan.desired else None
    if place is None or key is None:
        return None
    return {
        "name": place.name,
        "rank": place.turn + 1,
        "of": place.of,
        "role": place.role,
        "differs": list(place.differs),
        "mostWaitSeconds": waits.get(key) if place.role == "next" else None,
    }


def longest_waits(plans: Iterable[ClusterPlan]) -> dict[FamilyKey, float | None]:
    """Return how long the clouds may take until no pool of a family has got machines, in seconds, one after the other.

    None for a family with a pool whose requests its cloud queues: --capacity-wait must limit that.
    """
    waits: dict[FamilyKey, list[float | None]] = defaultdict(list)
    for plan in plans:
        for pool in plan.pools:
            if pool.family and pool.desired and pool.action != "conflict" and (key := family_key(pool.desired)):
                extras = load_provider(plan.cluster.provider).extras
                waits[key].append(None if extras.queues(pool.desired.target) else extras.capacity_wait_s)
    return {key: None if None in each else sum(filter(None, each)) for key, each in waits.items()}
