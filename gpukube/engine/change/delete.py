"""Deletes gpukube's pools by name; rejects other and protected pools before anything is sent."""

from __future__ import annotations

import shlex
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from gpukube.cluster.names import ALL_KINDS
from gpukube.cluster.release.entries import dropped_entries
from gpukube.cluster.release.migration import is_there
from gpukube.core.plan import plan_removal
from gpukube.engine.change.clusters import report_all, settle_orders
from gpukube.engine.change.family_lease import FamilyLease
from gpukube.engine.change.live_pool import attempt_all, remove_pool, started
from gpukube.engine.change.release import STOPPED_CLEANUP, entries_left, is_pending, retire_entries
from gpukube.engine.plan.lookup import absent_pools, declared_as, find_pools, is_family_named, is_named
from gpukube.engine.plan.losses import with_costs
from gpukube.engine.run.clock import Stopped
from gpukube.engine.run.report import ClusterReport, PoolReport
from gpukube.errors import Conflict, GpukubeError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from gpukube.core.values import Observed, PoolPlan
    from gpukube.engine.plan.planning import ClusterPlan
    from gpukube.engine.run.context import Run
    from gpukube.engine.run.session import Session


@dataclass(frozen=True, slots=True)
class Deletion:
    """Checked deletions, cluster by cluster.

    Attributes:
        plans: Per cluster its pools of these names, each with what is lost.
        families: By cluster key: owner and name of the families of these names.
        absent: By cluster key: declared pools of these names that do not exist, and families of which no pool does; any
            of these names if a run was cut off while it dropped entries.
    """

    plans: tuple[ClusterPlan, ...]
    absent: Mapping[str, tuple[str, ...]]
    families: Mapping[str, frozenset[tuple[str, str]]] = field(default_factory=dict)

    def pools(self) -> Iterator[PoolPlan]:
        """Iterate over the pools to delete."""
        for plan in self.plans:
            yield from plan.pools


def plan_deletion(
    plans: Sequence[ClusterPlan], sessions: Mapping[str, Session], owners: Sequence[str], names: Sequence[str]
) -> Deletion:
    """Find the live pools with these names and owners, and what is lost with them.

    Raises:
        SpecError: No cluster has a pool of one of the names.
        Conflict: A pool of that name has another owner, or is protected.
        GpukubeError: A cluster could not be read.
    """
    # The release may contain leftovers of a killed deletion, of any pool.
    half_done = {
        plan.cluster.key
        for plan in plans
        if is_pending(plan) or (plan.release is not None and bool(dropped_entries(plan.release)))
    }
    found = find_pools(plans, owners, names, may_be_gone=bool(half_done))
    planned = tuple(_removals(plan, sessions[plan.cluster.key], found[plan.cluster.key]) for plan in plans)
    protected = tuple(d for plan in planned for pool in plan.pools for d in pool.diagnostics)
    if protected:
        raise Conflict.of(protected)
    absent = {plan.cluster.key: tuple(absent_pools(plan, names, plans)) for plan in plans}
    live = [(plan.cluster.key, pool) for plan in plans for pool in found[plan.cluster.key]]
    for name in names:
        if not any(is_named(name, key, pool) for key, pool in live) and not any(declared_as(p, name) for p in plans):
            absent |= {key: (*absent[key], name) for key in half_done}
    families = {plan.cluster.key: frozenset(_families(plan, found[plan.cluster.key], names)) for plan in plans}
    return Deletion(planned, absent, families)


def delete_pools(deletion: Deletion, sessions: Mapping[str, Session], run: Run) -> tuple[ClusterReport, ...]:
    """Delete the pools, wait until the clouds have finished, and drop the config entries that nothing uses any more."""
    return report_all(deletion.plans, sessions, run, partial(_delete_on_cluster, deletion))


def _removals(plan: ClusterPlan, session: Session, pools: Sequence[Observed]) -> ClusterPlan:
    """Narrow a cluster's plan to the removal of these pools."""
    removals = tuple(
        replace(plan_removal(session.provider, plan.cluster, pool), why="requested by name") for pool in pools
    )
    going = {(pool.owner, pool.pool) for pool in pools}
    staying = tuple(d for d in plan.desired if (d.target.owner, d.target.pool) not in going)
    kube = session.kube() if plan.seen else None
    return replace(plan, pools=with_costs(removals, plan.seen, kube), desired=staying, undeclared=())


def _families(plan: ClusterPlan, pools: Sequence[Observed], names: Sequence[str]) -> set[tuple[str, str]]:
    """Return owner and name of the families that are deleted as a whole: declared ones, and those with these pools."""
    found = {(o.owner, o.family) for o in pools} | {(d.target.owner, d.target.family) for d in plan.desired}
    return {
        (owner, family) for owner, family in found
        if any(is_family_named(name, plan.cluster.key, family) for name in names)
    }  # fmt: skip


def _delete_on_cluster(deletion: Deletion, plan: ClusterPlan, session: Session, run: Run) -> ClusterReport:
    reports = [*attempt_all(plan.pools, session, run, delete_pool)]
    absent = deletion.absent[plan.cluster.key]
    gone = PoolReport("", "", "unchanged", "does not exist")
    release = ""
    if plan.unknown:
        release = f"release: not read; repeat the delete, or the next apply removes unused entries: {plan.unknown}"
    elif plan.seen is not None and all(report.is_settled for report in reports):
        families = deletion.families[plan.cluster.key]
        release, gone = _drop_leftovers(plan, absent, families, session, run)
        release = "; ".join(filter(None, (release, _removal_hint(plan, run), *_forget(families, session, run))))
    reports += [replace(gone, pool=name, name=name) for name in absent]
    return ClusterReport(plan.cluster, tuple(reports), release)


def _forget(families: Collection[tuple[str, str]], session: Session, run: Run) -> Iterator[str]:
    """Empty the records of families; name the runs that may create a pool of one after it was deleted."""
    for owner, family in sorted(families):
        with suppress(GpukubeError):  # the record only saves attempts, and expires
            if holder := FamilyLease.forget_deleted(session.kube(), owner, family, run):
                yield f"{family}: the run {holder} may create it again; if it still runs, stop it and delete again"


def _removal_hint(plan: ClusterPlan, run: Run) -> str:
    """Return a line with the command that removes releases no pool needs any more; "" if there are none."""
    kinds = [kind for kind in ALL_KINDS if plan.seen and is_there(plan.seen.release_of(kind))]
    going = {pool.name for pool in plan.pools}
    staying = [pool for pool in plan.live if pool.name not in going]
    names = [kind.address for kind in kinds if not any(kind.carries(pool.labels) for pool in staying)]
    words = ["gpukube", "release", "remove", *shlex.split(run.spec_options)]
    while "--owner" in words:  # a cluster has its releases for all owners
        at = words.index("--owner")
        del words[at : at + 2]
    return f"no pool needs {', '.join(names)} now; to remove it: {shlex.join(words)}" if names else ""


def delete_pool(plan: PoolPlan, session: Session, run: Run) -> PoolReport:
    """Delete one pool and wait until it is gone.

    Raises:
        GpukubeError: See remove_pool.
    """
    remove_pool(plan, session, run, until_gone=not run.no_wait)
    if run.no_wait:
        return started(plan, run, "deletion requested")
    return PoolReport(plan.pool, plan.name, "done", "deleted")


def _drop_leftovers(
    plan: ClusterPlan, absent: Sequence[str], families: Collection[tuple[str, str]], session: Session, run: Run
) -> tuple[str, PoolReport]:
    """Drop unused entries, including those that a killed deletion left for pools that no longer exist.

    A failure here does not fail the pools that were just deleted. For a pool that did not exist it is the whole result.

    Returns:
        One line on the release, and the report of a pool that did not exist.
    """
    going = [d for d in plan.desired if d.target.pool in absent or (d.target.owner, d.target.family) in families]
    known = {name for d in going for name in (d.target.pool, d.target.family)}
    # The entries of other names are no longer known: drop any that nothing uses.
    unneeded = dropped_entries(plan.release) if plan.release and not known.issuperset(absent) else frozenset()
    staying = tuple(d for d in plan.desired if d not in going)
    used = {d.ownership.config_key for d in staying}
    left = entries_left(plan, {*(d.ownership.config_key for d in going), *unneeded} - used)
    gone = PoolReport("", "", "unchanged", "does not exist")
    half_done = "does not exist; its entry in the release was not dropped"
    try:
        release = retire_entries(replace(plan, desired=staying), session, run, left=left)
        release = "; ".join(filter(None, (release, settle_orders(plan, session, run))))
    except Stopped:
        return STOPPED_CLEANUP, replace(gone, outcome="not-attempted", message=half_done, resume=run.resume)
    except GpukubeError as error:
        release = f"release: not cleaned up; repeat the delete, or the next apply does it: {error}"
        return release, replace(gone, outcome="failed", message=half_done, error=error, resume=run.resume)
    if left or is_pending(plan):
        gone = replace(gone, outcome="done", message="did not exist; its leftovers in the release were removed")
    return release, gone
