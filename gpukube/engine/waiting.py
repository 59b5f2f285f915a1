"""`pool wait`: follows what was begun before, to its end and its proof. Begins nothing itself but follow-up calls."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from gpukube.core.values import Operation
from gpukube.engine.clusters import report_all
from gpukube.engine.fanout import run_all
from gpukube.engine.pools import attempt, settle
from gpukube.engine.proving import prove
from gpukube.engine.report import ClusterReport, PoolReport
from gpukube.errors import Conflict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.core.values import PoolPlan
    from gpukube.engine.planning import ClusterPlan
    from gpukube.engine.report import Outcome
    from gpukube.engine.run import Run
    from gpukube.engine.session import Session

__all__ = ["wait_for_pools"]


def wait_for_pools(
    plans: Sequence[ClusterPlan], sessions: Mapping[str, Session], run: Run
) -> tuple[ClusterReport, ...]:
    """Wait until the clouds have finished with all planned pools, and prove those that are declared."""
    return report_all(plans, sessions, run, _wait_on_cluster)


def _wait_on_cluster(plan: ClusterPlan, session: Session, run: Run) -> ClusterReport:
    if plan.error is not None:
        raise plan.error
    tasks = {pool.name: partial(attempt, pool, session, run, _wait_for_pool) for pool in plan.pools}
    reports = run_all(tasks, max(run.parallelism, 1))
    return ClusterReport(plan.cluster, tuple(r for r in reports.values() if isinstance(r, PoolReport)))


def _wait_for_pool(plan: PoolPlan, session: Session, run: Run) -> PoolReport:
    if plan.observed is None or plan.action == "conflict":
        fix = "gpukube pool create makes it" if plan.observed is None else "gpukube pool plan says more"
        raise Conflict(plan.why, where=plan.where, fix=fix, code="not-there")
    if plan.observed.state == "deleting":
        wait = run.wait(run.resume, lambda message: run.tell("delete", message, plan.cluster.key, plan.pool))
        wait.for_operation(session.cloud, Operation(plan.name, "delete"))
        return PoolReport(plan.pool, plan.name, "done", "deleted")
    settle(plan, session, run)
    outcome: Outcome = "differs" if plan.changes else "unchanged"
    message = f"the cloud has finished; it {plan.why}" if plan.changes else "ready"
    return PoolReport(
        plan.pool,
        plan.name,
        outcome,
        message,
        plan.changes,
        prove(plan.desired, session, run) if plan.desired else None,
    )
