"""Estimated durations as parts of the Plan document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.engine.plan.durations import cluster_duration, never_ends, pool_duration
from gpukube.provider import load_provider

if TYPE_CHECKING:
    from gpukube.core.values import PoolPlan
    from gpukube.engine.documents.shapes.plan_parts import Duration as DurationPart
    from gpukube.engine.plan.durations import Duration
    from gpukube.engine.plan.planning import ClusterPlan


def duration_of_pool(plan: PoolPlan) -> DurationPart | None:
    """Return how long one pool would take; None if nothing happens, its cloud gives no estimate, or it has no end."""
    known = load_provider(plan.cluster.provider).extras.durations
    return _part(pool_duration(plan, known)) if known else None


def duration_of_cluster(plan: ClusterPlan) -> DurationPart | None:
    """Return how long a cluster would take, including how its pools wait for each other on its cloud.

    None under the conditions of `duration_of_pool`, and if one of its pools has no end.
    """
    provider = load_provider(plan.cluster.provider)
    known = provider.extras.durations
    if known is None or any(map(never_ends, plan.pools)):
        return None
    pools = [(pool.name, found) for pool in plan.pools if (found := pool_duration(pool, known))]
    return _part(cluster_duration(pools, provider.extras.pools_at_once))


def _part(duration: Duration | None) -> DurationPart | None:
    if duration is None:
        return None
    return {
        "leastSeconds": duration.least_s,
        "mostSeconds": duration.most_s,
        "longest": duration.longest.name,
        "terms": [
            {"name": t.name, "leastSeconds": t.span.least_s, "mostSeconds": t.span.most_s, "source": t.span.source}
            for t in duration.terms
        ],
    }
