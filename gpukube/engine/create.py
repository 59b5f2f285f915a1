"""Creates what is missing, in an order that costs nothing before everything that can be checked is checked.

Per cluster: (1) everything the plan found, permissions and a Helm dry run; (2) the release, which waits for no node;
(3) the pools, as many at once as the cloud allows, each proven as soon as it settles. One failed pool or cluster
does not stop the others. Killed at any point and run again, it converges: what is there is observed first, our marks
say what is ours, and a pool that is still being made is waited for.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from gpukube.core.plan import plan_pool
from gpukube.core.values import Operation
from gpukube.engine.clock import Stopped
from gpukube.engine.fanout import run_all
from gpukube.engine.proving import prove, summarise
from gpukube.engine.release import ensure_release
from gpukube.engine.report import ClusterReport, PoolReport
from gpukube.errors import CloudError, Conflict, GpukubeError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.core.values import Desired, PoolPlan, Request
    from gpukube.engine.planning import ClusterPlan
    from gpukube.engine.report import Outcome
    from gpukube.engine.run import Run
    from gpukube.engine.session import Session

__all__ = ["create_pools"]

FOLLOW_UPS = 5
"""Calls that a fresh pool may still need at the most: a guard against a provider that is never content."""


def create_pools(plans: Sequence[ClusterPlan], sessions: Mapping[str, Session], run: Run) -> tuple[ClusterReport, ...]:
    """Create the missing pools of all clusters, clusters side by side."""
    tasks = {plan.cluster.key: partial(_create_on_cluster, plan, sessions[plan.cluster.key], run) for plan in plans}
    results = run_all(tasks, run.parallelism)
    return tuple(
        result if isinstance(result, ClusterReport) else _nothing_done(plan, result)
        for plan, result in zip(plans, results.values(), strict=True)
    )


def _create_on_cluster(plan: ClusterPlan, session: Session, run: Run) -> ClusterReport:
    key = plan.cluster.key
    try:
        _require_workable(plan)
        release = ensure_release(plan, session, run)
    except GpukubeError as error:
        run.tell("failed", str(error), key)
        return _nothing_done(plan, error)
    except Stopped:
        return _nothing_done(plan, None)
    run.tell("done", release or "nothing to install", key)
    for pool in plan.pools:
        run.tell("wait", "queued", key, pool.pool)
    tasks = {pool.name: partial(_create_pool, pool, session, run) for pool in plan.pools}
    reports = run_all(tasks, session.provider.pools_at_once)
    return ClusterReport(plan.cluster, tuple(r for r in reports.values() if isinstance(r, PoolReport)), release)


def _require_workable(plan: ClusterPlan) -> None:
    """Refuse before anything is changed.

    Raises:
        GpukubeError: What the plan found: an unreachable cloud or cluster, a foreign advertiser.
    """
    if plan.error is not None:
        raise plan.error
    if plan.facts is not None and not plan.facts.ready:
        raise Conflict(
            f"the cluster is {plan.facts.status}",
            where=plan.cluster.key,
            fix="start it, or wait until the cloud has finished with it; then run this again",
            code="cluster-not-ready",
        )
    if plan.unreachable is not None:
        raise plan.unreachable
    refusals = tuple(d for d in plan.diagnostics if d.severity == "error")
    if refusals:
        error = Conflict(refusals[0].message, where=refusals[0].where)
        error.diagnostics = refusals
        raise error


def _nothing_done(plan: ClusterPlan, error: GpukubeError | None) -> ClusterReport:
    message = "not attempted: see the error of its cluster" if error else "not attempted: stopped before it began"
    planned = [(pool.pool, pool.name) for pool in plan.pools]
    names = planned or [(wanted.target.pool, wanted.target.name) for wanted in plan.desired]
    pools = tuple(PoolReport(pool, name, "not-attempted", message) for pool, name in names)
    return ClusterReport(plan.cluster, pools, error=error)


def _create_pool(plan: PoolPlan, session: Session, run: Run) -> PoolReport:
    """Bring one pool up and prove it; every failure becomes a report."""
    try:
        report = _try_pool(plan, session, run)
    except GpukubeError as error:
        run.tell("failed", str(error), plan.cluster.key, plan.pool)
        return PoolReport(plan.pool, plan.name, "failed", "was not proven", error=error, resume=run.resume)
    except Stopped:
        run.tell("failed", "stopped waiting", plan.cluster.key, plan.pool)
        return PoolReport(plan.pool, plan.name, "not-attempted", "stopped waiting for it", resume=run.resume)
    said = f"{report.message}; {summarise(report.proof)}" if report.proof else report.message
    run.tell("failed" if report.outcome == "differs" else "done", said, plan.cluster.key, plan.pool)
    return report


def _try_pool(plan: PoolPlan, session: Session, run: Run) -> PoolReport:
    desired = plan.desired
    if plan.action == "conflict" or desired is None:
        error = Conflict(plan.why, where=plan.where)
        error.diagnostics = plan.diagnostics or error.diagnostics
        raise error
    if plan.action in ("update", "replace"):
        return PoolReport(plan.pool, plan.name, "differs", f"left alone: it {plan.why}", plan.changes)
    fresh = plan.action == "create"
    if fresh:
        _send_all(plan.requests, desired, session, run)
        _settle(desired, session, run)
    else:
        fresh = _settle_or_remake(desired, session, run)
    proof = prove(desired, session, run)
    outcome: Outcome = "done" if fresh else "unchanged"
    return PoolReport(plan.pool, plan.name, outcome, "created" if fresh else plan.why, proof=proof)


def _send_all(requests: Sequence[Request], desired: Desired, session: Session, run: Run) -> None:
    """Send the calls of a creation; when one is refused or its answer is lost, look whether the pool is there."""
    key, pool = desired.target.cluster.key, desired.target.pool
    wait = run.wait(run.resume, lambda message: run.tell("create", message, key, pool))
    run.tell("create", f"asks for {desired.target.machine.name}", key, pool)
    for request in requests:
        try:
            operation = wait.send(session.cloud, request)
        except (Conflict, CloudError):
            if not _is_ours_now(desired, session):
                raise
            return
        wait.for_operation(session.cloud, operation)


def _settle_or_remake(desired: Desired, session: Session, run: Run) -> bool:
    """Wait for a pool that was there; one that somebody's deletion took away meanwhile is made anew.

    Returns:
        Whether it was made anew.
    """
    try:
        _settle(desired, session, run)
    except CloudError:
        left = plan_pool(session.provider, desired, session.cloud.pools()).observed
        if left is not None and left.fields:  # without fields it is what a deletion leaves behind, not a pool
            raise
        _send_all((desired.create,), desired, session, run)
        _settle(desired, session, run)
        return True
    return False


def _is_ours_now(desired: Desired, session: Session) -> bool:
    """After a conflict or a lost answer: is the pool there, ours, and as wanted?"""
    plan = plan_pool(session.provider, desired, session.cloud.pools())
    return plan.action == "no-op"


def _settle(desired: Desired, session: Session, run: Run) -> None:
    """Wait until the cloud has finished with the pool, whoever started it: this run or one that was killed."""
    key, pool = desired.target.cluster.key, desired.target.pool
    wait = run.wait(run.resume, lambda message: run.tell("wait", message, key, pool))
    plan = plan_pool(session.provider, desired, session.cloud.pools())
    name = plan.observed.name if plan.observed else desired.target.name
    wait.for_operation(session.cloud, Operation(name, "create"))
    for _ in range(FOLLOW_UPS):
        request = _missing(desired, session)
        if request is None:
            return
        wait.for_operation(session.cloud, wait.send(session.cloud, request))


def _missing(desired: Desired, session: Session) -> Request | None:
    """Ask what the pool still lacks that its creation could not carry."""
    observed = plan_pool(session.provider, desired, session.cloud.pools()).observed
    return session.provider.follow_up(desired, observed) if observed else None
