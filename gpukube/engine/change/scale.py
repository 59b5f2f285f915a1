"""Sets the size of live pools. The spec stays as it is: the next diff shows the difference."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from gpukube.core.fields import COUNT, LEAST, MOST, SCOPE
from gpukube.core.live import is_autoscaled
from gpukube.core.values import Change, ClassifiedChange, Nodes, PoolPlan
from gpukube.engine.change.clusters import report_all
from gpukube.engine.change.live_pool import attempt_all, scale_pool, started
from gpukube.engine.change.proving import prove
from gpukube.engine.plan.families import live_size
from gpukube.engine.plan.lookup import absent_pools, family_of, find_pools
from gpukube.engine.plan.losses import with_costs
from gpukube.engine.run.report import ClusterReport, PoolReport
from gpukube.errors import Conflict, SpecError, Where

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpukube.core.fields import FieldPath
    from gpukube.core.values import Desired, Observed
    from gpukube.engine.plan.planning import ClusterPlan
    from gpukube.engine.run.context import Run
    from gpukube.engine.run.session import Session

BOUNDS = (LEAST, MOST)


@dataclass(frozen=True, slots=True)
class Size:
    """Requested size as pool totals: a count, or bounds; None leaves a number unchanged."""

    count: int | None = None
    minimum: int | None = None
    maximum: int | None = None


@dataclass(frozen=True, slots=True)
class Scaling:
    """Checked changes of size.

    Attributes:
        plans: Per cluster its pool of the name.
        sizes: By cluster key: the new size; clouds may differ in the bounds that stay.
    """

    plans: tuple[ClusterPlan, ...]
    sizes: Mapping[tuple[str, str], Nodes]

    def pools(self) -> Iterator[PoolPlan]:
        """Iterate over the pools to scale."""
        for plan in self.plans:
            yield from plan.pools


def plan_scaling(
    plans: Sequence[ClusterPlan], sessions: Mapping[str, Session], owners: Sequence[str], name: str, size: Size
) -> Scaling:
    """Plan a new size for the pool of this name on every cluster that has it.

    Raises:
        SpecError: There is no such pool, its cloud does not support that size, or the request is a count for a pool
            with bounds or the other way round.
        Conflict: A pool of that name has another owner, or it is declared but does not exist.
    """
    found = find_pools(plans, owners, [name])
    for plan in plans:
        if absent := next(absent_pools(plan, [name], plans), None):
            where = Where(f"{plan.cluster.key}/{absent}")
            standby = next((pool for pool in plan.pools if pool.pool == absent and pool.action == "standby"), None)
            fix = f"gpukube pool scale {family_of(standby)}" if standby else "gpukube pool create creates it"
            why = standby.why if standby else ""
            raise Conflict("it does not exist", where=where, why=why, fix=fix, code="not-there")
    found = {plan.cluster.key: _with_nodes(plan, found[plan.cluster.key]) for plan in plans}
    sizes = {
        (plan.cluster.key, pool.name): _nodes(plan, pool, size) for plan in plans for pool in found[plan.cluster.key]
    }
    planned = []
    for plan in plans:
        session, pools = sessions[plan.cluster.key], found[plan.cluster.key]
        scaled = [
            _plan(plan, session, pool, _declared(plan, pool), sizes[plan.cluster.key, pool.name]) for pool in pools
        ]
        kube = session.kube() if plan.seen else None
        planned.append(replace(plan, pools=with_costs(scaled, plan.seen, kube), undeclared=()))
    return Scaling(tuple(planned), sizes)


def _with_nodes(plan: ClusterPlan, pools: Sequence[Observed]) -> tuple[Observed, ...]:
    """Narrow a family with a fixed size to the pool that has its nodes: the others must not get any.

    Raises:
        Conflict: No pool of it has nodes, or several have; or the pool of this name has none.
    """
    fixed = [pool for pool in pools if pool.family and not is_autoscaled(pool)]
    if not fixed:
        return tuple(pools)
    family = fixed[0].family
    there = [pool for pool in fixed if live_size(pool.nodes, pool.fields.get(COUNT), None)]
    if len(there) != 1:
        names = " and ".join(pool.name for pool in there) or " and ".join(pool.name for pool in fixed)
        raise Conflict(
            f"{names} {'have' if len(there or fixed) > 1 else 'has'} {'' if there else 'no '}nodes",
            where=Where(f"{plan.cluster.key}/{family}"),
            why="one pool of a family has all its nodes, and only that one is scaled",
            fix="gpukube pool apply --rebalance" if there else "gpukube pool create gets nodes for it",
            code="family-partial",
        )
    return (*there, *(pool for pool in pools if pool not in fixed))


def _declared(plan: ClusterPlan, pool: Observed) -> Desired | None:
    """Return the declaration of a live pool; None if there is none."""
    own = (d for d in plan.desired if (d.target.owner, d.target.pool) == (pool.owner, pool.pool))
    return next(own, None)


def scale_pools(scaling: Scaling, sessions: Mapping[str, Session], run: Run) -> tuple[ClusterReport, ...]:
    """Scale the pools as planned, wait, and verify the devices of those that the spec declares."""
    return report_all(scaling.plans, sessions, run, partial(_scale_on_cluster, scaling))


def _plan(plan: ClusterPlan, session: Session, observed: Observed, desired: Desired | None, nodes: Nodes) -> PoolPlan:
    expected = dict(zip(BOUNDS, (nodes.minimum, nodes.maximum), strict=True))
    fields: Mapping[FieldPath, object] = expected if nodes.autoscaled else {COUNT: nodes.count}
    changes = tuple(
        Change(field, observed.fields.get(field), value)
        for field, value in fields.items()
        if observed.fields.get(field) != value
    )
    classified = tuple(
        ClassifiedChange(change, session.provider.update_row(change, changes, observed)) for change in changes
    )
    request = session.provider.requests.scale(plan.cluster, observed, nodes)
    if desired is not None:
        promise = replace(desired.promise, nodes=nodes)
        desired = replace(desired, target=replace(desired.target, nodes=nodes), promise=promise)
    return PoolPlan(
        cluster=plan.cluster,
        pool=observed.pool,
        name=observed.name,
        action="update" if changes else "no-op",
        why="requested by name" if changes else "already has this size",
        desired=desired,
        observed=observed,
        changes=classified,
        requests=(request,) if changes else (),
    )


def _nodes(plan: ClusterPlan, observed: Observed, size: Size) -> Nodes:
    where = Where(f"{plan.cluster.key}/{observed.pool}")
    low, high = (observed.fields.get(field) for field in BOUNDS)
    if not isinstance(low, int) or not isinstance(high, int):
        if size.count is None:
            fix = "use --nodes; or add nodes.autoscaling to the spec and apply it"
            raise SpecError("the pool has a fixed size", where=where, fix=fix, code="fixed-size")
        return Nodes(size.count, size.count, size.count, autoscaled=False)
    if size.count is not None:
        fix = "use --min and --max; or add nodes.count to the spec and apply it"
        raise SpecError(f"the pool is autoscaled, {low} to {high} nodes", where=where, fix=fix, code="autoscaled")
    minimum = low if size.minimum is None else size.minimum
    maximum = high if size.maximum is None else size.maximum
    if minimum > maximum:
        fix = "set --min and --max so that min <= max"
        raise SpecError(f"min {minimum} is above max {maximum}", where=where, fix=fix, code="autoscaling-range")
    scope: Literal["pool", "zone"] = "zone" if observed.fields.get(SCOPE) == "zone" else "pool"
    return Nodes(max(minimum, min(observed.nodes or 0, maximum)), minimum, maximum, autoscaled=True, scope=scope)


def _scale_on_cluster(scaling: Scaling, plan: ClusterPlan, session: Session, run: Run) -> ClusterReport:
    return ClusterReport(plan.cluster, attempt_all(plan.pools, session, run, partial(_scale_one, scaling.sizes)))


def _scale_one(sizes: Mapping[tuple[str, str], Nodes], plan: PoolPlan, session: Session, run: Run) -> PoolReport:
    if plan.action == "no-op" and run.no_wait:
        return PoolReport(plan.pool, plan.name, "unchanged", plan.why)
    nodes = sizes[plan.cluster.key, plan.name]
    scale_pool(plan, nodes, session, run)  # a size that an earlier run requested may still be pending
    if run.no_wait:
        return started(plan, run, "requested")
    proof = prove(plan.desired, session, run) if plan.desired else None
    if plan.action == "no-op":
        return PoolReport(plan.pool, plan.name, "unchanged", plan.why, proof=proof)
    return PoolReport(plan.pool, plan.name, "done", "scaled", changes=plan.changes, proof=proof)
