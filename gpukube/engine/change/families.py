"""Gets the nodes of families: all nodes of a family with a fixed size come from one of its pools.

One run at a time works on a family; what it found out is in the family's Lease, so that a killed run goes on where it
was. In scope: the families of a run, and when they are worked on. Out of scope: the work on one of them (family_run),
autoscaled families, whose order is the autoscaler's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from gpukube.core.families import family_key
from gpukube.engine.change.clusters import report_all
from gpukube.engine.change.family_lease import FamilyLease
from gpukube.engine.change.family_run import Family, FamilyRun, Member, as_family
from gpukube.engine.change.holding import unless_held
from gpukube.engine.change.live_pool import attempt, attempt_all
from gpukube.engine.run.fanout import run_all
from gpukube.engine.run.report import PoolReport
from gpukube.errors import SpecError, Where

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gpukube.core.families import FamilyKey
    from gpukube.core.values import PoolPlan
    from gpukube.engine.change.family_run import Trying
    from gpukube.engine.change.live_pool import Proof, Work
    from gpukube.engine.plan.planning import ClusterPlan
    from gpukube.engine.run.context import Run
    from gpukube.engine.run.report import ClusterReport
    from gpukube.engine.run.session import Session
    from gpukube.errors import GpukubeError


@dataclass(frozen=True, slots=True)
class OnCluster:
    """The families of a run, for its work on each cluster.

    Attributes:
        families: All families.
        work_on: Returns the command's work on one pool of a cluster.
        trying: How the run gets nodes.
    """

    families: tuple[Family, ...]
    work_on: Callable[[ClusterPlan], Work]
    trying: Trying

    def attempt_all(self, pools: Sequence[PoolPlan], session: Session, run: Run, work: Work) -> tuple[PoolReport, ...]:
        """Work on the pools of one cluster, each family as one; those with place: any come later."""
        here = [one for one in self.families if one.key[2] == session.cluster.key]
        leads = {one.name: family_work(one, self.work_on, self.trying) for one in here}
        planned = [pool for pool in pools if pool.family is None] + [lead_plan(one) for one in here]
        alone = unless_held(work, self.trying.held)

        def done(plan: PoolPlan, session: Session, run: Run) -> PoolReport | Proof:
            return (leads[plan.pool] if plan.family else alone)(plan, session, run)

        return attempt_all(planned, session, run, done)


def with_families(  # noqa: PLR0913, PLR0917 - the context of a run, and what differs between the commands
    plans: Sequence[ClusterPlan],
    sessions: Mapping[str, Session],
    run: Run,
    on_cluster: Callable[[OnCluster, ClusterPlan, Session, Run], ClusterReport],
    work_on: Callable[[ClusterPlan], Work],
    trying: Trying,
) -> tuple[ClusterReport, ...]:
    """Work on all clusters in parallel, then on the families that are on any of several.

    Args:
        plans: Plans of the clusters.
        sessions: Sessions of these clusters, by key.
        run: The run.
        on_cluster: The command's work on a cluster.
        work_on: Returns the command's work on one pool of a cluster.
        trying: How the run gets nodes.

    Raises:
        SpecError: A family is to get nodes, and the run does not wait.
    """
    require_waiting(plans, run)
    families = OnCluster(families_of(plans, sessions), work_on, trying)
    reports = report_all(plans, sessions, run, partial(on_cluster, families))
    anywhere = [family for family in families.families if not family.key[2]]
    return on_any_cluster(reports, anywhere, run, work_on, trying) if anywhere else reports


def families_of(plans: Sequence[ClusterPlan], sessions: Mapping[str, Session]) -> tuple[Family, ...]:
    """Return the families with a fixed size among planned pools."""
    found: dict[FamilyKey, list[Member]] = {}
    unread: dict[FamilyKey, GpukubeError] = {}
    for cluster in plans:
        for pool in cluster.pools:
            if pool.family and pool.desired and (key := family_key(pool.desired)):
                found.setdefault(key, []).append(Member(pool, cluster, sessions[cluster.cluster.key]))
        if cluster.error is not None:
            unread |= {key: cluster.error for pool in cluster.desired if (key := family_key(pool))}
    ordered = {key: sorted(members, key=lambda one: one.plan.family.turn) for key, members in found.items() if members}  # type: ignore[union-attr]  # only pools with a place
    return tuple(Family(key, tuple(members), unread.get(key)) for key, members in ordered.items())


def require_waiting(plans: Sequence[ClusterPlan], run: Run) -> None:
    """Refuse to try pools in turn without waiting for them.

    Raises:
        SpecError: A family has no nodes, and the run does not wait.
    """
    waiting = [pool for plan in plans for pool in plan.pools if pool.family and pool.family.role == "next"]
    if run.no_wait and waiting:
        raise SpecError(
            f"--no-wait cannot be used to get nodes for {waiting[0].pool}",
            where=Where("--no-wait"),
            fix="remove it, or leave the pool out with --pool",
            why="the next alternative is tried once this one has got no machines",
            code="family-waits",
        )


def lead_plan(family: Family) -> PoolPlan:
    """Return the plan under which a family is reported: that of its pool, under the family's name."""
    return replace(family.planned.plan, pool=family.name)


def family_work(
    family: Family,
    work: Callable[[ClusterPlan], Work],
    trying: Trying,
    found: Callable[[Member], None] = lambda _member: None,
) -> Work:
    """Return the work on a family, in place of that on its pools.

    Args:
        family: The family.
        work: Returns the command's work on one pool of a cluster.
        trying: How the run gets nodes.
        found: Called with the pool that has the nodes.
    """

    def done(_plan: PoolPlan, _session: Session, run: Run) -> PoolReport | Proof:
        holder = family.planned
        place = holder.plan.family
        settled = place is not None and place.role == "holder" and _has_all(holder)
        alone = all(one.plan.family and one.plan.family.role in ("holder", "standby") for one in family.members)
        # What a killed run has left undone, or another run may have made since the plan, is found out under the lock.
        finished = holder.plan.action != "update"
        if holder.plan.action == "conflict" or (settled and alone and finished and not trying.rebalance):
            found(holder)
            return as_family(family, holder, work(holder.cluster)(holder.plan, holder.session, run))
        if family.unread is not None and not settled:
            raise family.unread
        first = family.members[0]
        key = first.plan.cluster.key
        notify = partial(_notify, run, key, family.name)
        with FamilyLease.held(first.session.kube(), family.key[0], family.name, run, notify) as lease:
            return FamilyRun(family, work, trying, run.guarded(lease.check), lease, found).carry_out()

    return done


def on_any_cluster(
    reports: Sequence[ClusterReport],
    families: Sequence[Family],
    run: Run,
    work: Callable[[ClusterPlan], Work],
    trying: Trying,
) -> tuple[ClusterReport, ...]:
    """Get nodes for families with place: any, once the clusters are prepared, and add their reports.

    Args:
        reports: Reports of the clusters on their other pools.
        families: The families.
        run: The run.
        work: See family_work.
        trying: See family_work.
    """
    failed = {report.cluster.key: report.error for report in reports if report.error}
    places: dict[FamilyKey, str] = {}
    tasks = {}
    for family in families:
        error = next((failed[key] for one in family.members if (key := one.plan.cluster.key) in failed), None)
        judged = replace(family, unread=family.unread or error)
        places[family.key] = judged.planned.plan.cluster.key
        found = partial(_place_at, places, family.key)
        tasks[family.key] = partial(_whole, judged, run, family_work(judged, work, trying, found))
    done = {key: report for key, report in run_all(tasks, run.parallelism).items() if isinstance(report, PoolReport)}
    return tuple(
        replace(report, pools=(*report.pools, *(one for key, one in done.items() if places[key] == report.cluster.key)))
        for report in reports
    )


def _place_at(places: dict[FamilyKey, str], family: FamilyKey, member: Member) -> None:
    places[family] = member.plan.cluster.key


def _whole(family: Family, run: Run, work: Work) -> PoolReport:
    report = attempt(lead_plan(family), family.planned.session, run, work)
    return report if isinstance(report, PoolReport) else report()


def _notify(run: Run, cluster: str, family: str, message: str) -> None:
    run.report("wait", message, cluster, family)


def _has_all(member: Member) -> bool:
    """Return whether the plan has seen all nodes of a pool."""
    from gpukube.cluster.state.node_drift import nodes_of_pool  # noqa: PLC0415 - loads part of the package `cluster`

    plan, seen = member.plan, member.cluster.seen
    if plan.observed is None or plan.desired is None or seen is None:
        return False
    ready = sum(node.ready for node in nodes_of_pool(seen, plan.observed))
    return ready >= plan.desired.target.nodes.count
