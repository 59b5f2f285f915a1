"""The places of pools in their families, as parts of plans and lists."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from gpukube.core.families import differences, families, family_key
from gpukube.core.fields import COUNT
from gpukube.core.live import is_autoscaled
from gpukube.engine.plan.families import live_size
from gpukube.provider import load_provider

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gpukube.core.families import FamilyKey
    from gpukube.core.values import Desired, Observed, PoolPlan
    from gpukube.engine.documents.shapes.listing import ListedFamily
    from gpukube.engine.documents.shapes.parts import FamilyPart
    from gpukube.engine.plan.planning import ClusterPlan


def scaled_part(plan: PoolPlan, members: Sequence[Desired]) -> FamilyPart | None:
    """Return the place of a pool in its autoscaled family; None for a pool of no such family.

    Args:
        plan: The pool.
        members: The pools of its family by rank.
    """
    if plan.desired is None or not members or not plan.desired.target.nodes.autoscaled:
        return None
    target, ranks = plan.desired.target, [member.target.pool for member in members]
    return {
        "name": target.family,
        "rank": ranks.index(target.pool) + 1,
        "of": len(ranks),
        "role": None,
        "differs": differences(members[0].target, target),
        "mostWaitSeconds": None,
    }


def family_part(plan: PoolPlan, waits: dict[FamilyKey, float]) -> FamilyPart | None:
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


def longest_waits(plans: Iterable[ClusterPlan]) -> dict[FamilyKey, float]:
    """Return the longest time, in seconds, until no pool of a family has got machines, one after the other."""
    waits: dict[FamilyKey, float] = defaultdict(float)
    for plan in plans:
        for pool in plan.pools:
            if pool.family and pool.desired and pool.action != "conflict" and (key := family_key(pool.desired)):
                waits[key] += load_provider(plan.cluster.provider).extras.capacity_wait_s
    return waits


def live_place(pool: Observed, plan: ClusterPlan) -> FamilyPart | None:
    """Return the place of a live pool in its family, as far as known without its spec; None for a pool of no family."""
    marks = pool.owner, pool.pool
    planned = next((one for one in plan.pools if one.desired and (one.desired.target.owner, one.pool) == marks), None)
    if planned is not None and (place := family_part(planned, {})):
        return place
    if not pool.family:
        return None
    ranks = _declared(plan).get((pool.owner, pool.family), [])
    has_nodes = bool(live_size(pool.nodes, pool.fields.get(COUNT), None))
    return {
        "name": pool.family,
        "rank": ranks.index(pool.pool) + 1 if pool.pool in ranks else None,
        "of": len(ranks) or None,
        "role": None if is_autoscaled(pool) else "holder" if has_nodes else "leftover",
        "differs": [],
        "mostWaitSeconds": None,
    }


def listed_families(plan: ClusterPlan) -> Iterator[ListedFamily]:
    """List the families of a cluster, declared or live."""
    members = _declared(plan)
    holders = {}
    for pool in plan.live:
        if place := live_place(pool, plan):
            named = members.setdefault((pool.owner, place["name"]), [])
            if pool.pool not in named:
                named.append(pool.pool)
            if place["role"] == "holder":
                holders[pool.owner, place["name"]] = pool.pool
    for (owner, name), pools in members.items():
        yield {"name": name, "owner": owner, "members": pools, "holder": holders.get((owner, name), "")}


def _declared(plan: ClusterPlan) -> dict[tuple[str, str], list[str]]:
    """Return the declared families of a cluster: owner and name -> pools in their order."""
    found = families(plan.desired)
    return {key: [pool.target.pool for pool in pools] for key, pools in found.items()}
