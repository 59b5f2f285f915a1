"""Compares the clouds' quotas with what a plan needs: read once for all clusters that share them.

In scope: which pools of a plan need more than they have, reading the quotas that limit them, and the sums. Out of
scope: names and APIs of a cloud's quotas (providers).

The clouds enforce quotas themselves, and usage changes between a read and a call. So if pools could only grow beyond a
quota, that is a warning, and an unreadable quota stops nothing. It is different if a quota does not cover a pool's
first nodes: then gpukube does not request them (engine.change.holding).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from gpukube.cluster.state.node_drift import nodes_of_pool
from gpukube.core.fields import CAPACITY_TYPE, COUNT, LEAST, MOST
from gpukube.core.live import live_machine
from gpukube.core.plan import match_live
from gpukube.core.quotas import QuotaNeed, QuotaReading, QuotaUse
from gpukube.core.values import Capacity
from gpukube.engine.run.fanout import run_all
from gpukube.errors import Finding, GpukubeError, Where

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gpukube.cluster.state.snapshot import Snapshot
    from gpukube.core.quotas import CloudQuota, CloudQuotas
    from gpukube.core.values import Desired, Observed, PoolPlan
    from gpukube.engine.plan.planning import ClusterPlan, Scope
    from gpukube.engine.run.session import Session
    from gpukube.provider import Cloud


def with_quotas(
    plans: Sequence[ClusterPlan], sessions: Mapping[str, Session], scope: Scope, at_once: int
) -> tuple[ClusterPlan, ...]:
    """Add to each plan the quotas that its pools need more of; a plan that needs none makes no call.

    Args:
        plans: Plans of all clusters.
        sessions: Sessions of these clusters, by key.
        scope: How pools are replaced: with a surge, both pools count.
        at_once: Number of places to read in parallel.
    """
    needs = {
        plan.cluster.key: cluster_needs(plan, sessions[plan.cluster.key], beside=scope.replace == "surge")
        for plan in plans
    }
    uses = quotas_for(needs, {key: session.cloud for key, session in sessions.items()}, at_once)
    reported: set[CloudQuota] = set()
    found = []
    for plan in plans:
        own = uses[plan.cluster.key]
        new = [use for use in own if use.quota not in reported]  # clusters that share one have the same numbers
        reported.update(use.quota for use in new)
        problems = (*plan.diagnostics, *shortfalls(new, plan.cluster.key))
        found.append(replace(plan, quotas=own, diagnostics=problems))
    return tuple(found)


def cluster_needs(plan: ClusterPlan, session: Session, *, beside: bool, at_once: bool = False) -> tuple[QuotaNeed, ...]:
    """List what the pools of one cluster need beyond what they have; for `beside` and `at_once` see `pool_needs`."""
    known = session.provider.extras.quotas
    if known is None or plan.facts is None:
        return ()
    needs = partial(pool_needs, known, location=plan.facts.location, seen=plan.seen, beside=beside, at_once=at_once)
    return tuple(need for pool in plan.pools for need in needs(pool))


def pool_needs(  # noqa: PLR0913 - the pool, its cloud, and how it changes
    known: CloudQuotas,
    plan: PoolPlan,
    location: str,
    seen: Snapshot | None,
    *,
    beside: bool = False,
    at_once: bool = False,
) -> tuple[QuotaNeed, ...]:
    """List what a pool needs beyond what it has, for its maximum number of nodes.

    Args:
        known: The cloud's quotas.
        plan: Plan of the pool.
        location: Location of its cluster.
        seen: State inside the cluster, if the cloud does not report a pool's number of nodes; None if unknown.
        beside: Count a whole second pool next to the live one, as during a surge.
        at_once: Count only the nodes that start with the change: for an autoscaled pool its initial ones.
    """
    desired, observed = plan.desired, plan.observed
    if desired is None or plan.action not in ("create", "update", "replace"):
        return ()
    target = desired.target
    draws = known.draws(target.cluster, location, target.machine, target.capacity)
    nodes, freed = target.nodes.count if at_once else target.nodes.maximum, {}
    if plan.action == "update" and observed is not None:
        nodes = _growth(plan, observed, seen, at_once=at_once) + known.surge(
            desired, observed, [c.change for c in plan.changes]
        )
    elif plan.replacement is not None and plan.replacement.beside is not None:
        return ()  # both pools exist
    elif plan.action == "replace" and observed is not None and not beside:
        freed = _freed(known, plan, location, _live_nodes(observed, seen))
    needs = (QuotaNeed(d.quota, nodes * d.per_node - freed.get(d.quota, 0), str(plan.where)) for d in draws)
    return tuple(need for need in needs if need.amount > 0)


def growth_needs(
    known: CloudQuotas, desired: Sequence[Desired], live: Sequence[Observed], location: str, seen: Snapshot | None
) -> tuple[QuotaNeed, ...]:
    """List what declared pools need to be created and to grow to their maximum, whatever else differs."""
    found = []
    for pool in desired:
        target, matches = pool.target, match_live(pool, live)
        nodes = max(0, target.nodes.maximum - sum(_live_nodes(one, seen) for one in matches))
        draws = known.draws(target.cluster, location, target.machine, target.capacity) if nodes else ()
        found += [QuotaNeed(draw.quota, nodes * draw.per_node, str(target.where)) for draw in draws]
    return tuple(found)


def _growth(plan: PoolPlan, observed: Observed, seen: Snapshot | None, *, at_once: bool) -> int:
    """Count the nodes that a change of size may add; 0 if the size stays."""
    desired, bounds = plan.desired, (COUNT, LEAST) if at_once else (COUNT, MOST)
    if desired is None or not any(change.change.field in bounds for change in plan.changes):
        return 0
    size = desired.target.nodes
    return max(0, (size.minimum if at_once else size.maximum) - _live_nodes(observed, seen))


def _live_nodes(observed: Observed, seen: Snapshot | None) -> int:
    """Count the live nodes; if unknown, return the minimum that the cloud keeps."""
    if observed.nodes is not None:
        return observed.nodes
    if seen is not None:
        return len(nodes_of_pool(seen, observed))
    least = observed.fields.get(COUNT, observed.fields.get(LEAST))
    return least if isinstance(least, int) else 0


def _freed(known: CloudQuotas, plan: PoolPlan, location: str, nodes: int) -> dict[CloudQuota, float]:
    """Sum what the old pool frees, as it is deleted before the new one is created."""
    observed = plan.observed
    machine = live_machine(plan.cluster.provider, observed) if observed else None
    if machine is None or observed is None:
        return {}
    way = observed.fields.get(CAPACITY_TYPE)
    # What a reservation frees depends on its kind, which the live pool's fields do not show: assume nothing.
    if way not in ("on-demand", "spot"):
        return {}
    capacity = Capacity("spot" if way == "spot" else "on-demand")
    return {d.quota: d.per_node * nodes for d in known.draws(plan.cluster, location, machine, capacity)}


def quotas_for(
    needs: Mapping[str, Sequence[QuotaNeed]], clouds: Mapping[str, Cloud], at_once: int
) -> dict[str, tuple[QuotaUse, ...]]:
    """Read the required quotas, each once, and sum what all clusters need of them.

    Args:
        needs: Needs by cluster key.
        clouds: Clouds by cluster key; the first of its clusters reads a place.
        at_once: Number of places to read in parallel.

    Returns:
        By cluster key, its quotas with what the whole run needs of them. An unreadable quota is unknown.
    """
    readers: dict[CloudQuota, str] = {}
    for key, own in needs.items():
        for need in own:
            readers.setdefault(need.quota, key)
    uses = summed((need for own in needs.values() for need in own), _read(readers, clouds, at_once))
    return {key: tuple(uses[quota] for quota in dict.fromkeys(n.quota for n in own)) for key, own in needs.items()}


def summed(needs: Iterable[QuotaNeed], readings: Mapping[CloudQuota, QuotaReading]) -> dict[CloudQuota, QuotaUse]:
    """Sum what pools need of each quota, along with what was read of it."""
    total: dict[CloudQuota, dict[str, float]] = {}
    for need in needs:
        pools = total.setdefault(need.quota, {})
        pools[need.pool] = pools.get(need.pool, 0) + need.amount
    unread = QuotaReading(unknown="not read")
    return {
        quota: QuotaUse(quota, sum(pools.values()), tuple(pools), readings.get(quota, unread))
        for quota, pools in total.items()
    }


def _read(
    readers: Mapping[CloudQuota, str], clouds: Mapping[str, Cloud], at_once: int
) -> dict[CloudQuota, QuotaReading]:
    found = {quota: QuotaReading(unknown=quota.unread) for quota in readers}
    places = by_place(readers)
    tasks = {place: partial(clouds[readers[quotas[0]]].quotas, quotas) for place, quotas in places.items()}
    for place, answer in run_all(tasks, at_once).items():
        found |= as_read(places[place], answer)
    return found


def by_place(quotas: Iterable[CloudQuota]) -> dict[tuple[str, str], tuple[CloudQuota, ...]]:
    """Group the readable quotas by place; one call reads all quotas of a place."""
    readable = sorted((quota for quota in quotas if not quota.unread), key=_place)
    return {place: tuple(found) for place, found in groupby(readable, _place)}


def as_read(
    readable: Iterable[CloudQuota], answer: Mapping[CloudQuota, QuotaReading] | GpukubeError
) -> dict[CloudQuota, QuotaReading]:
    """Return each quota's reading from the result for its place."""
    if isinstance(answer, GpukubeError):
        return dict.fromkeys(readable, QuotaReading(unknown=str(answer)))
    missing = QuotaReading(unknown="the cloud does not list it")
    return {quota: answer.get(quota, missing) for quota in readable}


def _place(quota: CloudQuota) -> tuple[str, str]:
    return quota.provider, quota.place


def shortfalls(uses: Iterable[QuotaUse], where: str) -> list[Finding]:
    """Return findings on quotas that are too low for the plan."""
    return [
        Finding(
            "quota-short",
            Where(where),
            f"quota {use.quota.name} ({use.quota.title}) in {use.quota.place} allows {use.reading.limit:g} "
            f"{use.quota.unit}{_in_use(use)}; {', '.join(use.pools)} may need {use.needed:g} more",
            fix=f"raise it to {use.least_limit:g}: {use.fix}",
            why="the cloud rejects nodes beyond it, at once or when the pool grows",
            severity="warning",
        )
        for use in uses
        if use.is_short
    ]


def _in_use(use: QuotaUse) -> str:
    return "" if use.reading.used is None else f", {use.reading.used:g} of them used"
