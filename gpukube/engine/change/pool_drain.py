"""`pool drain`: drains the nodes of live pools by name, or uncordons them. Changes nothing in a cloud."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from gpukube.core.plan import PROTECTED_WHY, plan_as_it_is
from gpukube.engine.change.clusters import report_all
from gpukube.engine.change.draining import counted, drain_pool, undo_drain
from gpukube.engine.change.live_pool import attempt_all
from gpukube.engine.plan.lookup import absent_pools, find_pools, is_family_named
from gpukube.engine.run.clock import Stopped
from gpukube.engine.run.report import ClusterReport, PoolReport
from gpukube.errors import Conflict, Finding, GpukubeError, WaitTimeout, Where

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gpukube.core.values import ClusterRef, Observed, PoolPlan
    from gpukube.engine.change.draining import DrainConsent
    from gpukube.engine.plan.planning import ClusterPlan
    from gpukube.engine.run.context import Run
    from gpukube.engine.run.session import Session


@dataclass(frozen=True, slots=True)
class PoolDrain:
    """Checked pools to drain or uncordon."""

    plans: tuple[ClusterPlan, ...]

    def pools(self) -> Iterator[PoolPlan]:
        """Iterate over the pools."""
        for plan in self.plans:
            yield from plan.pools


def plan_drain(plans: Sequence[ClusterPlan], owners: Sequence[str], name: str, *, undo: bool = False) -> PoolDrain:
    """Find the live pool with this name and one of these owners, on every cluster that has it.

    With `undo`, the name may select one of two pools while one replaces the other.

    Raises:
        SpecError: No cluster has it.
        Conflict: It has another owner, is protected, or is declared but does not exist.
        GpukubeError: A cluster could not be read.
    """
    found = find_pools(plans, owners, [name], one_of_two=undo)
    for plan in plans:
        if absent := next(absent_pools(plan, [name], plans), None):
            where = Where(f"{plan.cluster.key}/{absent}")
            raise Conflict("it does not exist", where=where, fix="gpukube pool create creates it", code="not-there")
    chosen = {key: _select_pool(key, name, pools) for key, pools in found.items()}
    protected = [
        _protected(plan.cluster, pool) for plan in plans for pool in chosen[plan.cluster.key] if pool.protected
    ]
    if protected and not undo:
        raise Conflict.of(protected)
    pools = {
        plan.cluster.key: tuple(plan_as_it_is(plan.cluster, pool) for pool in chosen[plan.cluster.key])
        for plan in plans
    }
    return PoolDrain(tuple(replace(plan, pools=pools[plan.cluster.key], undeclared=()) for plan in plans))


def drain_pools(
    drain: PoolDrain, sessions: Mapping[str, Session], run: Run, consent: DrainConsent
) -> tuple[ClusterReport, ...]:
    """Cordon and drain the nodes of the pools."""
    return report_all(drain.plans, sessions, run, partial(_on_cluster, partial(_drain_one, consent=consent)))


def undo_drains(drain: PoolDrain, sessions: Mapping[str, Session], run: Run) -> tuple[ClusterReport, ...]:
    """Uncordon the nodes that gpukube has cordoned in the pools."""
    return report_all(drain.plans, sessions, run, partial(_on_cluster, _undo_one))


def _select_pool(cluster: str, name: str, pools: Sequence[Observed]) -> tuple[Observed, ...]:
    """Return the pool with that cloud name, out of an old and a new pool with the same labels."""
    if any(is_family_named(name, cluster, pool.family) for pool in pools):
        return tuple(pools)
    exact = tuple(pool for pool in pools if name in (pool.name, f"{cluster}/{pool.name}"))
    return exact or tuple(pools)


def _protected(cluster: ClusterRef, pool: Observed) -> Finding:
    return Finding(
        "protected",
        Where(f"{cluster.key}/{pool.pool}"),
        "its nodes would be drained, but it is protected",
        fix="apply deletionProtection: false first",
        why=PROTECTED_WHY,
    )


def _on_cluster(
    work: Callable[[PoolPlan, Session, Run], PoolReport], plan: ClusterPlan, session: Session, run: Run
) -> ClusterReport:
    # Makes no call to a cloud.
    return ClusterReport(plan.cluster, attempt_all(plan.pools, session, run, work, at_once=max(run.parallelism, 1)))


def _drain_one(plan: PoolPlan, session: Session, run: Run, *, consent: DrainConsent) -> PoolReport:
    try:
        drained = drain_pool(plan, session, run, consent)
    except GpukubeError as error:
        run.note_failure()
        message = "not drained in time" if isinstance(error, WaitTimeout) else "not drained"
        resume = "" if isinstance(error, Conflict) else run.resume
        return PoolReport(plan.pool, plan.name, "failed", message, error=error, resume=resume)
    except Stopped:
        message = run.standing.get((plan.cluster.key, plan.name), "stopped before a node was cordoned")
        return PoolReport(plan.pool, plan.name, "failed", message, resume=run.resume)
    return PoolReport(plan.pool, plan.name, "done", f"drained: {drained}")


def _undo_one(plan: PoolPlan, session: Session, run: Run) -> PoolReport:
    done = undo_drain(plan, session, run)
    if not done:
        return PoolReport(plan.pool, plan.name, "unchanged", "gpukube has not cordoned any of its nodes")
    return PoolReport(plan.pool, plan.name, "done", f"uncordoned {counted(done, 'node')}")
