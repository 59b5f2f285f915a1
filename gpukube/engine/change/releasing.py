"""Removes gpukube's labels from live pools, by name: the pools stay unchanged, and gpukube no longer manages them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from gpukube.core.owners.labels import ADVERTISER_LABEL
from gpukube.core.plan import plan_releasing
from gpukube.core.values import MARKS
from gpukube.engine.change.clusters import report_all
from gpukube.engine.change.live_pool import attempt_all, release_pool, started
from gpukube.engine.plan.lookup import absent_pools, declared_as, find_pools, is_named, no_such_pool, released_pools
from gpukube.engine.run.report import ClusterReport, PoolReport
from gpukube.errors import Conflict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpukube.core.values import Observed, PoolPlan
    from gpukube.engine.plan.planning import ClusterPlan
    from gpukube.engine.run.context import Run
    from gpukube.engine.run.session import Session


@dataclass(frozen=True, slots=True)
class Releasing:
    """Checked pools to release.

    Attributes:
        plans: Per cluster its pools of these names.
        unowned: By cluster key: live pools of these names without ownership labels.
        absent: By cluster key: declared pools of these names that do not exist.
    """

    plans: tuple[ClusterPlan, ...]
    unowned: Mapping[str, tuple[Observed, ...]]
    absent: Mapping[str, tuple[str, ...]]

    def pools(self) -> Iterator[PoolPlan]:
        """Iterate over the pools to release."""
        for plan in self.plans:
            yield from plan.pools


def plan_release(
    plans: Sequence[ClusterPlan], sessions: Mapping[str, Session], owners: Sequence[str], names: Sequence[str]
) -> Releasing:
    """Find the live pools with these names and owners.

    Pools of these names without ownership labels count as released, by an earlier run or from the start.

    Raises:
        SpecError: No cluster has a pool of one of the names.
        Conflict: A pool of that name has another owner, is protected, or cannot be changed now.
        GpukubeError: A cluster could not be read.
    """
    unowned = {plan.cluster.key: tuple(_unowned(plan, names)) for plan in plans}
    others = [replace(p, live=tuple(o for o in p.live if o not in unowned[p.cluster.key])) for p in plans]
    found = find_pools(others, owners, names, may_be_gone=True, releasing=True)
    released = {key: [*pools, *unowned[key]] for key, pools in found.items()}
    for name in names:
        declared = [desired.target.name for plan in plans if (desired := declared_as(plan, name))]
        if not declared and not any(is_named(name, key, one) for key, pools in released.items() for one in pools):
            raise no_such_pool(name, plans)
    planned = [
        tuple(plan_releasing(sessions[p.cluster.key].provider, p.cluster, one) for one in found[p.cluster.key])
        for p in plans
    ]
    if problems := [problem for pools in planned for pool in pools for problem in pool.diagnostics]:
        raise Conflict.of(problems)
    return Releasing(
        tuple(replace(plan, pools=pools, undeclared=()) for plan, pools in zip(plans, planned, strict=True)),
        unowned,
        {plan.cluster.key: tuple(absent_pools(plan, names, others)) for plan in others},
    )


def release_pools(releasing: Releasing, sessions: Mapping[str, Session], run: Run) -> tuple[ClusterReport, ...]:
    """Remove the labels, and wait until the clouds have finished."""
    return report_all(releasing.plans, sessions, run, partial(_release_on_cluster, releasing))


def _unowned(plan: ClusterPlan, names: Sequence[str]) -> Iterator[Observed]:
    """List the live pools without ownership labels that a name selects, as their cloud name or as a declared pool."""
    desired = [found for name in names if (found := declared_as(plan, name))]
    declared = {one.target.name for one in desired} | {o.name for one in desired for o in released_pools(plan, one)}
    for pool in plan.live:
        selected = pool.name in declared or any(is_named(name, plan.cluster.key, pool) for name in names)
        if selected and not pool.owner and not pool.pool and pool.copy is None:
            yield pool


def _release_on_cluster(releasing: Releasing, plan: ClusterPlan, session: Session, run: Run) -> ClusterReport:
    reports = [*attempt_all(plan.pools, session, run, partial(_release_one, plan))]
    unowned, absent = releasing.unowned[plan.cluster.key], releasing.absent[plan.cluster.key]
    left = {pool.name for pool in unowned}
    reports += [PoolReport(name, name, "unchanged", "has no gpukube.io/owner label") for name in sorted(left)]
    gone = [
        desired.target for name in absent if (desired := declared_as(plan, name)) and desired.target.name not in left
    ]
    reports += [PoolReport(target.pool, target.name, "unchanged", "does not exist") for target in gone]
    return ClusterReport(plan.cluster, tuple(reports))


def _release_one(cluster: ClusterPlan, plan: PoolPlan, session: Session, run: Run) -> PoolReport:
    observed = release_pool(plan, session, run)
    if run.no_wait:
        return started(plan, run, "requested")
    parts = ["released"]
    owner = plan.observed.owner if plan.observed else ""
    if any((one.target.owner, one.target.pool) == (owner, plan.pool) for one in cluster.desired):
        parts.append("remove it from the spec")
    if observed.labels.get(ADVERTISER_LABEL):
        parts.append(f"{ADVERTISER_LABEL} stays: gpukube's device plugin serves its nodes as before")
    if kept := sorted(key for key in _labels_for_cloud(cluster, plan) if key in observed.labels):
        parts.append(f"{', '.join(kept)} {'stays' if len(kept) == 1 else 'stay'}: its origin is not recorded")
    return PoolReport(plan.pool, plan.name, "done", "; ".join(parts), plan.changes)


def _labels_for_cloud(cluster: ClusterPlan, plan: PoolPlan) -> set[str]:
    """Return the labels that a provider adds to a declared pool for its cloud; adopting the pool has added them."""
    desired = next((one for one in cluster.desired if one.target.pool == plan.pool), None)
    added = desired.labels.keys() - desired.target.labels.keys() - desired.ownership.labels.keys() if desired else set()
    return {*added} - {*MARKS}
