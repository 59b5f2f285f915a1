"""Deletes pools of ours, by name. What is not ours and what is protected is refused before anything is sent."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from gpukube.core.plan import plan_removal
from gpukube.engine.clock import Stopped
from gpukube.engine.clusters import report_all
from gpukube.engine.fanout import run_all
from gpukube.engine.lookup import absent_pools, find_pools
from gpukube.engine.losses import with_costs
from gpukube.engine.pools import attempt, remove_pool, started
from gpukube.engine.release import STOPPED_TIDYING, retire_entries
from gpukube.engine.report import ClusterReport, PoolReport
from gpukube.errors import Conflict, GpukubeError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpukube.core.values import Observed, PoolPlan
    from gpukube.engine.planning import ClusterPlan
    from gpukube.engine.run import Run
    from gpukube.engine.session import Session

__all__ = ["Deletion", "delete_pool", "delete_pools", "plan_deletion"]


@dataclass(frozen=True, slots=True)
class Deletion:
    """What would be deleted, cluster by cluster; checked.

    Attributes:
        plans: Per cluster its pools of these names, each with what is lost.
        absent: By cluster key: declared pools of these names that are not there.
    """

    plans: tuple[ClusterPlan, ...]
    absent: Mapping[str, tuple[str, ...]]

    def pools(self) -> Iterator[PoolPlan]:
        """List what would be deleted."""
        for plan in self.plans:
            yield from plan.pools


def plan_deletion(
    plans: Sequence[ClusterPlan], sessions: Mapping[str, Session], owners: Sequence[str], names: Sequence[str]
) -> Deletion:
    """Find the live pools with these names that carry the mark of these owners, and what goes with them.

    Raises:
        SpecError: A name that none of the clusters has.
        Conflict: A pool of that name is not ours, or is protected.
        GpukubeError: A cluster could not be asked.
    """
    found = find_pools(plans, owners, names)
    planned = tuple(_removals(plan, sessions[plan.cluster.key], found[plan.cluster.key]) for plan in plans)
    protected = tuple(d for plan in planned for pool in plan.pools for d in pool.diagnostics)
    if protected:
        error = Conflict(protected[0].message, where=protected[0].where)
        error.diagnostics = protected
        raise error
    return Deletion(planned, {plan.cluster.key: tuple(absent_pools(plan, names)) for plan in plans})


def delete_pools(deletion: Deletion, sessions: Mapping[str, Session], run: Run) -> tuple[ClusterReport, ...]:
    """Delete, wait until the clouds have finished, and drop the config entries that nothing names any more."""
    return report_all(deletion.plans, sessions, run, partial(_delete_on_cluster, deletion))


def _removals(plan: ClusterPlan, session: Session, pools: Sequence[Observed]) -> ClusterPlan:
    """Narrow a cluster's plan to the removal of some pools."""
    removals = tuple(
        replace(plan_removal(session.provider, plan.cluster, pool), why="asked for by name") for pool in pools
    )
    going = {(pool.owner, pool.pool) for pool in pools}
    staying = tuple(d for d in plan.desired if (d.target.owner, d.target.pool) not in going)
    kube = session.kube() if plan.seen else None
    return replace(plan, pools=with_costs(removals, plan.seen, kube), desired=staying, undeclared=())


def _delete_on_cluster(deletion: Deletion, plan: ClusterPlan, session: Session, run: Run) -> ClusterReport:
    tasks = {pool.name: partial(attempt, pool, session, run, delete_pool) for pool in plan.pools}
    reports = [r for r in run_all(tasks, session.provider.pools_at_once).values() if isinstance(r, PoolReport)]
    absent = deletion.absent[plan.cluster.key]
    reports += [PoolReport(name, name, "unchanged", "is not there") for name in absent]
    release = ""
    if plan.seen is not None and all(report.is_settled for report in reports):
        release = _tidied(plan, absent, session, run)
    return ClusterReport(plan.cluster, tuple(reports), release)


def delete_pool(plan: PoolPlan, session: Session, run: Run) -> PoolReport:
    """Delete one pool and wait until it is gone.

    Raises:
        GpukubeError: As remove_pool.
    """
    remove_pool(plan, session, run, until_gone=not run.no_wait)
    if run.no_wait:
        return started(plan, run, "deletion asked for")
    return PoolReport(plan.pool, plan.name, "done", "deleted")


def _tidied(plan: ClusterPlan, absent: Sequence[str], session: Session, run: Run) -> str:
    """Drop entries; the pools are gone, so what hinders that is said and is no failure: the next apply does it.

    Those of pools that were gone already are dropped too: a deletion that was killed may have left them.
    """
    left = {d.ownership.config_key for d in plan.desired if d.target.pool in absent}
    staying = tuple(d for d in plan.desired if d.target.pool not in absent)
    try:
        return retire_entries(replace(plan, desired=staying), session, run, left=left)
    except Stopped:
        return STOPPED_TIDYING
    except GpukubeError as error:
        return f"release: not tidied, the next apply does it: {error}"
