"""Creates missing pools; everything that can be checked is checked before anything costs money.

Per cluster: (1) the plan's findings, permissions, and a Helm dry run; (2) the release, which needs no node; (3) the
pools, as many at once as the cloud allows, each verified as soon as it settles. A failed pool or cluster does not stop
the others. A run killed at any point can be repeated and converges: it reads existing pools first, recognizes gpukube's
by their ownership labels, and waits for pools that are still being created.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from gpukube.core.plan import adopting_changes, plan_pool
from gpukube.core.tolerations import pod_tolerations
from gpukube.engine.change.clusters import prepare_cluster
from gpukube.engine.change.families import with_families
from gpukube.engine.change.family_run import Trying
from gpukube.engine.change.live_pool import (
    create_pool,
    observe,
    require_adoptable,
    settle,
    started,
    update_pool,
)
from gpukube.engine.change.proving import prove
from gpukube.engine.change.release import restore_entry
from gpukube.engine.run.report import ClusterReport, PoolReport
from gpukube.errors import CloudError, Conflict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.core.values import Desired, PoolPlan
    from gpukube.engine.change.families import OnCluster
    from gpukube.engine.change.live_pool import Proof, Work
    from gpukube.engine.plan.planning import ClusterPlan
    from gpukube.engine.run.context import Run
    from gpukube.engine.run.session import Session


def create_pools(
    plans: Sequence[ClusterPlan], sessions: Mapping[str, Session], run: Run, trying: Trying | None = None
) -> tuple[ClusterReport, ...]:
    """Create the missing pools of all clusters in parallel; adopt those that the plan adopts.

    Args:
        plans: Plans of the clusters.
        sessions: Sessions of these clusters, by key.
        run: The run.
        trying: Pools for which nothing is sent, and how nodes of families are got.

    Raises:
        Conflict: A pool to adopt cannot be adopted; nothing was changed.
        SpecError: A family is to get nodes, and the run does not wait.
    """
    require_adoptable(plans)
    return with_families(plans, sessions, run, _create_on_cluster, _work_on, trying or Trying())


def _create_on_cluster(families: OnCluster, plan: ClusterPlan, session: Session, run: Run) -> ClusterReport:
    release = prepare_cluster(plan, session, run)
    return ClusterReport(plan.cluster, families.attempt_all(plan.pools, session, run, _work_on(plan)), release)


def _work_on(plan: ClusterPlan) -> Work:
    return partial(_create_or_report, plan)


def _create_or_report(cluster: ClusterPlan, plan: PoolPlan, session: Session, run: Run) -> PoolReport | Proof:
    if plan.action in ("update", "replace") or plan.resumes:
        return PoolReport(
            plan.pool, plan.name, "differs", f"not changed; gpukube pool apply changes it: {plan.why}", plan.changes
        )
    restore_entry(cluster, plan, session, run)
    return bring_up(plan, session, run)


def bring_up(plan: PoolPlan, session: Session, run: Run) -> PoolReport | Proof:
    """Create, adopt, or wait for one pool; return its proof, or its report if there is nothing to verify.

    Raises:
        Conflict: Another pool is in the way and is not gpukube's.
        GpukubeError: See create_pool and settle.
    """
    desired = plan.desired
    if plan.action == "conflict" or desired is None:
        raise Conflict.of(plan.diagnostics, plan.why) if plan.diagnostics else Conflict(plan.why, where=plan.where)
    done = _carry_out(plan, desired, session, run)
    tolerations = pod_tolerations(desired, tolerates_resources=session.provider.extras.tolerates_resources)
    adopted = adopting_changes(desired, plan.changes)
    left = tuple(c for c in plan.changes if c not in adopted) if plan.action == "adopt" else ()
    if left:  # not verified: what differs may be what is missing
        message = f"adopted; {', '.join(str(c.change.field) for c in left)} still differs, for a later apply"
        return PoolReport(plan.pool, plan.name, "done", message, left, tolerations=tolerations)
    if run.no_wait and done:
        return replace(started(plan, run, done), tolerations=tolerations)
    unproven = PoolReport(plan.pool, plan.name, "unchanged", plan.why)
    if done:
        unproven = PoolReport(plan.pool, plan.name, "done", done, tolerations=tolerations)
    return lambda: replace(unproven, proof=prove(desired, session, run))


def _carry_out(plan: PoolPlan, desired: Desired, session: Session, run: Run) -> str:
    """Carry out the plan's action; return what was done in one word, "" if the pool already existed."""
    if plan.action == "create":
        create_pool(plan, session, run)
        return "requested" if run.no_wait else "created"
    if plan.action == "adopt":
        update_pool(plan, session, run)
        return "adopted"
    return _wait_or_recreate(plan, desired, session, run)


def _wait_or_recreate(plan: PoolPlan, desired: Desired, session: Session, run: Run) -> str:
    """Wait for an existing pool; create it again if somebody's deletion has removed it meanwhile."""
    if run.no_wait and plan.observed is not None and plan.observed.state == "busy":
        return "is still being changed"
    try:
        settle(plan, session, run)
    except CloudError:
        left = observe(plan, session)
        if left is not None and left.fields:  # without fields it is the remainder of a deletion, not a pool
            raise
        create_pool(plan_pool(session.provider, desired, ()), session, run)
        return "created"
    return ""
