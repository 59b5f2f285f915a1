"""Deletes pools of ours, by name. What is not ours and what is protected is refused before anything is sent."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from gpukube.engine.clock import Stopped
from gpukube.engine.fanout import run_all
from gpukube.engine.report import ClusterReport, PoolReport
from gpukube.errors import Conflict, GpukubeError, SpecError, Where

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpukube.core.values import ClusterRef, Observed
    from gpukube.engine.planning import ClusterPlan
    from gpukube.engine.run import Run
    from gpukube.engine.session import Session

__all__ = ["Deletion", "delete_pools", "plan_deletion"]


@dataclass(frozen=True, slots=True)
class Deletion:
    """What would be deleted, cluster by cluster; checked.

    Attributes:
        clusters: By key: the cluster and its live pools of these names.
        absent: By key: declared pools of these names that are not there.
    """

    clusters: Mapping[str, tuple[ClusterRef, tuple[Observed, ...]]]
    absent: Mapping[str, tuple[str, ...]]

    def pools(self) -> Iterator[tuple[str, Observed]]:
        """List (cluster key, pool)."""
        for key, (_, pools) in self.clusters.items():
            for pool in pools:
                yield key, pool


def plan_deletion(plans: Sequence[ClusterPlan], owners: Sequence[str], names: Sequence[str]) -> Deletion:
    """Find the live pools with these names that carry the mark of these owners.

    Raises:
        SpecError: A name that none of the clusters has.
        Conflict: A pool of that name is not ours, or is protected.
        GpukubeError: A cluster could not be asked.
    """
    for plan in plans:
        if plan.error is not None:
            raise plan.error
    found = {
        plan.cluster.key: (plan.cluster, tuple(o for o in plan.live if {o.pool, o.name} & set(names))) for plan in plans
    }
    for cluster, pools in found.values():
        for pool in pools:
            _require_deletable(cluster, pool, owners)
    seen = {name for _, pools in found.values() for pool in pools for name in (pool.pool, pool.name)}
    for name in names:
        if name not in seen and not _declared(plans, name):
            clusters = ", ".join(found)
            raise SpecError(
                f'no pool "{name}" is live on {clusters}, and the spec declares none',
                where=Where(name),
                fix="gpukube pool list shows what is there",
                code="no-pool",
            )
    absent = {plan.cluster.key: tuple(_absent(plan, names)) for plan in plans}
    return Deletion(found, absent)


def delete_pools(deletion: Deletion, sessions: Mapping[str, Session], run: Run) -> tuple[ClusterReport, ...]:
    """Delete and wait until the clouds have finished."""
    tasks = {key: partial(_delete_on_cluster, deletion, key, sessions[key], run) for key in deletion.clusters}
    results = run_all(tasks, run.parallelism)
    return tuple(r for r in results.values() if isinstance(r, ClusterReport))


def _absent(plan: ClusterPlan, names: Sequence[str]) -> Iterator[str]:
    """List the declared pools of these names that the cluster does not have."""
    live = {(o.owner, o.pool) for o in plan.live}
    for pool in plan.pools:
        target = pool.desired.target if pool.desired else None
        if target and {target.pool, target.name} & set(names) and (target.owner, target.pool) not in live:
            yield target.pool


def _declared(plans: Sequence[ClusterPlan], name: str) -> bool:
    return any(name in (pool.pool, pool.name) for plan in plans for pool in plan.pools)


def _require_deletable(cluster: ClusterRef, pool: Observed, owners: Sequence[str]) -> None:
    where = Where(f"{cluster.key}/{pool.name}")
    if pool.owner not in owners:
        raise Conflict(
            f'it belongs to "{pool.owner}"' if pool.owner else "it carries no mark of gpukube",
            where=where,
            why="gpukube deletes only pools of the spec's own owner",
            fix="delete it with the spec or the tool that made it",
            code="not-ours",
        )
    if pool.protected:
        raise Conflict(
            "it is protected against deletion",
            where=where,
            why="its live label gpukube.io/protect is true",
            fix="take that label off the pool with the cloud's own tool, then delete it",
            code="protected",
        )


def _delete_on_cluster(deletion: Deletion, key: str, session: Session, run: Run) -> ClusterReport:
    cluster, pools = deletion.clusters[key]
    tasks = {pool.name: partial(_delete_pool, cluster, pool, session, run) for pool in pools}
    reports = run_all(tasks, session.provider.pools_at_once)
    gone = tuple(PoolReport(name, name, "unchanged", "is not there") for name in deletion.absent[key])
    return ClusterReport(cluster, (*(r for r in reports.values() if isinstance(r, PoolReport)), *gone))


def _delete_pool(cluster: ClusterRef, pool: Observed, session: Session, run: Run) -> PoolReport:
    name = pool.pool or pool.name
    wait = run.wait(run.resume, lambda message: run.tell("delete", message, cluster.key, name))
    try:
        run.tell("delete", "asks the cloud", cluster.key, name)
        operation = wait.send(session.cloud, session.provider.delete_request(cluster, pool))
        wait.for_operation(session.cloud, operation)
    except GpukubeError as error:
        run.tell("failed", str(error), cluster.key, name)
        return PoolReport(name, pool.name, "failed", "was not deleted", error=error, resume=run.resume)
    except Stopped:
        return PoolReport(name, pool.name, "not-attempted", "stopped waiting for its end", resume=run.resume)
    run.tell("done", "deleted", cluster.key, name)
    return PoolReport(name, pool.name, "done", "deleted")
