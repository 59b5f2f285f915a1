"""Frame of every command that changes clusters: checks first, then the releases, then a report.

In scope: rejecting a cluster as a whole, and working on clusters in parallel. Out of scope: changes to pools.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from gpukube.core.live import is_autoscaled
from gpukube.engine.change.holders import declared_lines, planned_lines
from gpukube.engine.change.release import ensure_releases
from gpukube.engine.run.clock import Stopped
from gpukube.engine.run.fanout import run_all
from gpukube.engine.run.report import ClusterReport, PoolReport
from gpukube.errors import Conflict, GpukubeError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gpukube.core.families import FamilyKey
    from gpukube.engine.plan.planning import ClusterPlan
    from gpukube.engine.plan.prepare import Prepared
    from gpukube.engine.run.context import Run
    from gpukube.engine.run.session import Session

_ORDER_CODES: Final = frozenset({"order-foreign", "order-ignored", "order-unknown"})
"""Warnings of a plan that a run repeats: what it creates, or what the autoscaler does, differs from the spec."""


def report_all(
    plans: Sequence[ClusterPlan],
    sessions: Mapping[str, Session],
    run: Run,
    work: Callable[[ClusterPlan, Session, Run], ClusterReport],
) -> tuple[ClusterReport, ...]:
    """Work on all clusters in parallel; a cluster that fails does not stop the others."""
    tasks = {plan.cluster.key: partial(_guarded, plan, sessions[plan.cluster.key], run, work) for plan in plans}
    results = run_all(tasks, run.parallelism)
    return tuple(result for result in results.values() if isinstance(result, ClusterReport))


def prepare_cluster(plan: ClusterPlan, session: Session, run: Run) -> str:
    """Reject a cluster that cannot be changed now, then bring its releases, and the order of families, to the plan.

    Returns:
        One line on the releases, and on families without an order; "" if no pool of the cluster needs one.

    Raises:
        GpukubeError: What the plan found (an unreachable cloud or cluster, another advertiser), or see ensure_releases
            and write_orders.
        Stopped: The run was stopped.
    """
    _require_changeable(plan)
    if plan.orders:
        from gpukube.engine.change.ordering import require_writable  # noqa: PLC0415 - only for autoscaled families

        require_writable(plan, session)
    release = ensure_releases(replace(plan, release=plan.first or plan.release).releases, plan, session, run)
    if plan.orders:
        from gpukube.engine.change.ordering import write_orders  # noqa: PLC0415 - only for autoscaled families

        write_orders(plan, session, run)
    orders = [f"{one.where}: {one.seen}; {one.fix}" for one in plan.diagnostics if one.code in _ORDER_CODES]
    run.report("done", release or "nothing to install", plan.cluster.key)
    one_by_one = session.provider.extras.pools_at_once == 1
    waiting = [pool for pool in plan.pools if pool.action != "standby"]
    for before, pool in zip((None, *waiting), waiting, strict=False):
        message = (
            f"queued behind {before.pool}: the cloud changes one pool at a time" if before and one_by_one else "queued"
        )
        run.report("wait", message, plan.cluster.key, pool.pool)
    return "; ".join(filter(None, (release, *orders)))


def settle_orders(plan: ClusterPlan, session: Session, run: Run) -> str:
    """Take the pools of autoscaled families that are gone out of their order; see ordering.drop_gone."""
    leaving = [pool.observed for pool in plan.pools if pool.action in ("delete", "replace") and pool.observed]
    touched = {(one.owner, one.family) for one in leaving if one.family and is_autoscaled(one)}
    if not touched:
        return ""
    from gpukube.engine.change.ordering import drop_gone  # noqa: PLC0415 - only for families

    return drop_gone(touched, plan, session, run)


def none_attempted(prepared: Prepared, run: Run) -> tuple[ClusterReport, ...]:
    """Return the report of a run that was stopped while it read the clusters: no change was sent."""
    message = "not attempted: stopped before it started"
    listed: set[FamilyKey] = set()
    return tuple(
        ClusterReport(
            cluster,
            tuple(
                PoolReport(pool, name, "not-attempted", message, resume=run.resume)
                for pool, name in declared_lines(prepared.desired.get(key, ()), listed)
            ),
        )
        for key, cluster in prepared.clusters.items()
    )


def _guarded(
    plan: ClusterPlan, session: Session, run: Run, work: Callable[[ClusterPlan, Session, Run], ClusterReport]
) -> ClusterReport:
    try:
        return work(plan, session, run)
    except GpukubeError as error:
        run.note_failure()
        run.report("failed", str(error), plan.cluster.key)
        return _not_attempted(plan, error)
    except Stopped:
        return _not_attempted(plan, None)


def _require_changeable(plan: ClusterPlan) -> None:
    if plan.error is not None:
        raise plan.error
    if plan.facts is not None and not plan.facts.ready:
        raise Conflict(
            f"the cluster is {plan.facts.status}",
            where=plan.cluster.key,
            fix="start it, or wait until the cloud's operation has finished; then run this again",
            code="cluster-not-ready",
        )
    if plan.unreachable is not None:
        raise plan.unreachable
    refusals = tuple(d for d in plan.diagnostics if d.severity == "error")
    if refusals:
        raise Conflict.of(refusals)


def _not_attempted(plan: ClusterPlan, error: GpukubeError | None) -> ClusterReport:
    message = "not attempted: see the error of its cluster" if error else "not attempted: stopped before it started"
    names = planned_lines(plan.pools) if plan.pools else declared_lines(plan.desired)
    pools = tuple(PoolReport(pool, name, "not-attempted", message) for pool, name in names)
    return ClusterReport(plan.cluster, pools, error=error)
