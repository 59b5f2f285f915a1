"""`pool wait`: follows what earlier runs started until it is done and verified. Starts nothing but follow-up calls."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gpukube.core.plan import plan_as_it_is
from gpukube.core.values import Operation
from gpukube.engine.change.clusters import report_all
from gpukube.engine.change.holders import as_family
from gpukube.engine.change.live_pool import attempt_all, settle
from gpukube.engine.change.proving import prove
from gpukube.engine.change.upgrading import require_current
from gpukube.engine.plan.lookup import family_of, is_named, is_named_itself, no_such_pool
from gpukube.engine.run.report import ClusterReport, PoolReport
from gpukube.errors import Conflict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpukube.core.values import Observed, PoolPlan
    from gpukube.engine.plan.planning import ClusterPlan
    from gpukube.engine.run.context import Run
    from gpukube.engine.run.report import Outcome
    from gpukube.engine.run.session import Session


def wait_for_pools(
    plans: Sequence[ClusterPlan], sessions: Mapping[str, Session], run: Run, names: Sequence[str] = ()
) -> tuple[ClusterReport, ...]:
    """Wait until the clouds have finished with pools, and verify those that are declared.

    Args:
        plans: Plans of all clusters.
        sessions: Sessions by cluster key.
        run: The run.
        names: Pools to wait for, whoever owns them, in the spec or in the cloud; all declared ones if empty.

    Raises:
        SpecError: No cluster that answered has a pool of one of the names.
    """
    chosen = [replace(plan, pools=_chosen(plan, names)) for plan in plans] if names else plans
    found = [(plan.cluster.key, pool) for plan in chosen for pool in plan.pools]
    unknown = next((name for name in names if not any(is_named(name, key, pool) for key, pool in found)), None)
    if unknown is not None and not any(plan.error for plan in plans):
        raise no_such_pool(unknown, plans)
    one_each = [replace(plan, pools=tuple(_of_families(plan, names))) for plan in chosen]
    return report_all(one_each, sessions, run, _wait_on_cluster)


def _of_families(plan: ClusterPlan, names: Sequence[str]) -> Iterator[PoolPlan]:
    """Leave one pool of each family, the one that has the nodes or is to get them; and those that are named."""
    key = plan.cluster.key
    for pool in plan.pools:
        alone = pool.family is None or pool.family.role not in ("standby", "leftover")
        if alone or any(is_named_itself(name, key, pool) and name != family_of(pool) for name in names):
            yield pool


def _chosen(plan: ClusterPlan, names: Sequence[str]) -> tuple[PoolPlan, ...]:
    def requested(pool: PoolPlan | Observed) -> bool:
        return any(is_named(name, plan.cluster.key, pool) for name in names)

    declared = tuple(pool for pool in plan.pools if requested(pool))
    taken = {pool.name for pool in declared}
    taken |= {pool.replacement.name for pool in declared if pool.replacement and pool.replacement.beside}
    others = [pool for pool in plan.live if requested(pool) and pool.name not in taken]
    return (*declared, *(plan_as_it_is(plan.cluster, pool) for pool in others))


def _wait_on_cluster(plan: ClusterPlan, session: Session, run: Run) -> ClusterReport:
    if plan.error is not None:
        raise plan.error
    reports = attempt_all(plan.pools, session, run, _wait_for_pool, at_once=max(run.parallelism, 1))
    families = {pool.pool: pool.family for pool in plan.pools if pool.family and pool.family.role in ("holder", "next")}
    named = (as_family(report, families[report.pool]) if report.pool in families else report for report in reports)
    return ClusterReport(plan.cluster, tuple(named))


def _wait_for_pool(plan: PoolPlan, session: Session, run: Run) -> PoolReport:
    if plan.observed is None or plan.action == "conflict":
        fix = "gpukube pool create creates it" if plan.observed is None else "gpukube pool plan -f FILE shows more"
        raise Conflict(plan.why, where=plan.where, fix=fix, code="not-there")
    if plan.observed.state == "deleting":
        wait = run.wait(run.resume, lambda message: run.report("delete", message, plan.cluster.key, plan.pool))
        wait.for_operation(session.cloud, Operation(plan.name, "delete"))
        return PoolReport(plan.pool, plan.name, "done", "deleted")
    settle(plan, session, run)
    if plan.desired is not None:
        require_current(plan, session, run)  # no record shows which run started an upgrade
    if plan.replacement and plan.replacement.beside and plan.replacement.successor:
        successor = plan.replacement.successor
        settle(replace(plan, name=successor.target.name, desired=successor), session, run)
        proof = prove(successor, session, run, apart_from=plan.observed)
        message = f"the clouds have finished; {plan.why}; to continue: gpukube pool apply --replace surge"
        return PoolReport(plan.pool, successor.target.name, "differs", message, plan.changes, proof)
    outcome: Outcome = "differs" if plan.changes else "unchanged"
    message = f"the cloud has finished; it {plan.why}" if plan.changes else "ready"
    return PoolReport(
        plan.pool,
        plan.name,
        outcome,
        message,
        changes=plan.changes,
        proof=prove(plan.desired, session, run) if plan.desired else None,
    )
