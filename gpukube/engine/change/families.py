"""Gets the nodes of families: tries their pools in turn until one has them, and leaves nothing else behind.

All nodes of a family with a fixed size come from one pool. One run at a time works on a family; what it found out is in
the family's Lease, so that a killed run goes on where it was. In scope: the order, when to go on to the next pool,
moving to a better one, what is reported. Out of scope: one attempt (attempt), the Lease (family_lease), autoscaled
families, whose order is the autoscaler's.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from gpukube.core.tolerations import pod_tolerations
from gpukube.engine.change.attempt import MOVABLE, Attempt, fence, fill_up, finish, get_nodes, kind_of
from gpukube.engine.change.clusters import report_all
from gpukube.engine.change.draining import DrainConsent
from gpukube.engine.change.family_lease import FamilyLease
from gpukube.engine.change.family_record import Outcome, fresh
from gpukube.engine.change.holding import unless_held
from gpukube.engine.change.live_pool import attempt, attempt_all
from gpukube.engine.change.proving import prove
from gpukube.engine.change.surge import empty_pool, old_pool_plan, remove_emptied
from gpukube.engine.plan.families import family_key, live_size
from gpukube.engine.run.fanout import run_all
from gpukube.engine.run.report import ClusterReport, PoolReport
from gpukube.errors import CapacityError, Conflict, Finding, GpukubeError, SpecError, Where
from gpukube.provider import load_provider
from gpukube.visible import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gpukube.core.values import Desired, Observed, PoolPlan
    from gpukube.engine.change.holding import Held
    from gpukube.engine.change.live_pool import Proof, Work
    from gpukube.engine.plan.families import FamilyKey
    from gpukube.engine.plan.planning import ClusterPlan
    from gpukube.engine.run.context import Run
    from gpukube.engine.run.session import Session


class PriceLimit(Protocol):
    """What the pools of a family cost, and may cost."""

    def hourly(self, cluster: ClusterPlan, desired: Desired) -> float:
        """Return the price of all nodes of a pool, USD per hour; 0 if unknown."""

    def over(self, cluster: ClusterPlan, desired: Desired, beside: float = 0.0) -> str:
        """Return why a pool costs more than it may, next to others that cost this much; "" if it does not."""


@dataclass(frozen=True, slots=True)
class Trying:
    """How a run gets nodes for families.

    Attributes:
        held: Pools that exceed a quota: they are not tried.
        limit: What pools may cost; None for anything.
        rebalance: Whether to move to a better pool than the one that has the nodes.
        consent: What the drain of such a move may do.
    """

    held: Held = field(default_factory=dict)
    limit: PriceLimit | None = None
    rebalance: bool = False
    consent: DrainConsent = field(default_factory=DrainConsent)


@dataclass(frozen=True, slots=True)
class Member:
    """A pool of a family, with its cluster."""

    plan: PoolPlan
    cluster: ClusterPlan
    session: Session

    @property
    def where(self) -> tuple[str, str]:
        """Cluster and pool, as in the record."""
        return self.plan.cluster.key, self.plan.pool


@dataclass(frozen=True, slots=True)
class Family:
    """A family with a fixed size.

    Attributes:
        key: See FamilyKey.
        members: Its pools, in the order in which they are tried.
        unread: The error of a cluster on which the family may have its nodes; None if all were read.
    """

    key: FamilyKey
    members: tuple[Member, ...]
    unread: GpukubeError | None = None

    @property
    def name(self) -> str:
        """Name of the family: that of its first pool."""
        return self.key[1]

    def called(self, cluster: str, pool: str) -> str:
        """Return what to call a pool: with its cluster, if the family is on any of several."""
        return pool if self.key[2] else f"{cluster}/{pool}"

    @property
    def planned(self) -> Member:
        """The pool that the plan gives the nodes: the holder, else the one to try first."""
        by_role = {member.plan.family.role: member for member in self.members if member.plan.family}
        return by_role.get("holder") or by_role.get("next") or self.members[0]


class _State(NamedTuple):
    """A pool of a family under its lock.

    Attributes:
        trying: The pool.
        live: The live pool; None if it does not exist.
        size: Nodes that the cloud is to keep.
        ready: Nodes that are ready.
    """

    trying: Attempt
    member: Member
    live: Observed | None
    size: int
    ready: int


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
        SpecError: A family is to get nodes, and the run does not wait, or has no limit for a queue.
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
    tried = [pool for plan in plans for pool in plan.pools if pool.family and pool.family.role in ("next", "standby")]
    waiting = [pool for pool in tried if pool.family and pool.family.role == "next"]
    if run.no_wait and waiting:
        raise SpecError(
            f"--no-wait cannot be used to get nodes for {waiting[0].pool}",
            where=Where("--no-wait"),
            fix="remove it, or leave the pool out with --pool",
            why="the next alternative is tried once this one has got no machines",
            code="family-waits",
        )
    for pool in tried if waiting else ():
        _require_patience(pool, run)


def _require_patience(pool: PoolPlan, run: Run) -> None:
    """Require a time for a pool whose cloud queues requests for machines, for up to days."""
    queues = load_provider(pool.cluster.provider).extras.queues
    if pool.desired and queues(pool.desired.target) and run.pace.capacity_s is None:
        raise SpecError(
            f"{pool.where} waits in a queue for its machines",
            where=Where("--capacity-wait"),
            fix="add --capacity-wait MINUTES: how long to wait before the next alternative is tried",
            code="capacity-wait",
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
        if holder.plan.action == "conflict" or (settled and alone and not trying.rebalance):
            found(holder)
            return _as_family(family, holder, work(holder.cluster)(holder.plan, holder.session, run))
        if family.unread is not None and not settled:
            raise family.unread
        first = family.members[0]
        key = first.plan.cluster.key
        notify = partial(_notify, run, key, family.name)
        with FamilyLease.held(first.session.kube(), family.key[0], family.name, run, notify) as lease:
            return _FamilyRun(family, work, trying, run, lease, found).carry_out()

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


def _as_family(family: Family, holder: Member, report: PoolReport | Proof, note: str = "") -> PoolReport | Proof:
    """Report a pool as its family: which of its pools has the nodes, and what the others said."""
    if not isinstance(report, PoolReport):
        return lambda: _family_report(family, holder, report(), note)
    return _family_report(family, holder, report, note)


def _family_report(family: Family, holder: Member, report: PoolReport, note: str) -> PoolReport:
    place = next(number for number, one in enumerate(family.members, 1) if one.where == holder.where)
    name = family.called(*holder.where)
    which = f"{name} has the nodes (alternative {place} of {len(family.members)})" if place > 1 else ""
    return replace(report, pool=family.name, message="; ".join(filter(None, (report.message, which, note))))


@dataclass(slots=True)
class _FamilyRun:
    """The work on one family under its lock."""

    family: Family
    work: Callable[[ClusterPlan], Work]
    trying: Trying
    run: Run
    lease: FamilyLease
    found: Callable[[Member], None]
    said: list[Outcome] = field(default_factory=list)

    def carry_out(self) -> PoolReport | Proof:
        """Find the pool that has the nodes, or get them; then clean up, and move to a better pool if requested."""
        states = self._read()
        holder = self._holder(states)
        created = holder is None
        if holder is None:
            holder = self._try_in_turn(states, self._resumed(states))
        self.found(holder.member)
        finish(holder.trying)
        left = self._clean_up(holder)
        if self.trying.rebalance and (moved := self._rebalance(holder)):
            return moved
        note = "; ".join((*left, *self._heard()))
        member = holder.member
        if not created and member is self.family.planned and member.plan.action in ("update", "replace"):
            done = self.work(member.cluster)(member.plan, member.session, self.run)
            return _as_family(self.family, member, done, note)
        return _as_family(self.family, member, self._proof(member, "created" if created else ""), note)

    def _read(self) -> list[_State]:
        return [self._state(member) for member in self.family.members]

    def _state(self, member: Member) -> _State:
        trying = Attempt(member.plan, member.session, self.run, self.lease.check)
        if member.plan.action == "conflict":
            return _State(trying, member, None, 0, 0)
        live = trying.observe()
        if live is None or live.state == "deleting":
            return _State(trying, member, live, 0, 0)
        ready = trying.ready_nodes(live)
        return _State(trying, member, live, live_size(live.nodes, None, ready), ready)

    def _holder(self, states: Sequence[_State]) -> _State | None:
        """Return the pool that has the nodes, after it has got them all; None if the pools are to be tried.

        A pool with a ready node is kept, unless it is the one in trial: its nodes came with this attempt.
        """
        complete = [one for one in states if one.live and one.ready >= one.trying.wanted]
        won = self.lease.won
        if complete:
            return next((one for one in complete if won and one.member.where == (won.cluster, won.member)), complete[0])
        kept = next((one for one in states if one.ready and not self._is_trial(one)), None)
        if kept is None:
            return None
        try:
            fill_up(kept.trying)
        except MOVABLE as error:
            seen = f"{kept.member.plan.name} has {kept.ready} of {kept.trying.wanted} nodes, and gets no more"
            raise CapacityError(
                seen,
                where=kept.member.plan.where,
                why=f"{error}; a pool with nodes is kept, as pods may run on them",
                fix=f"wait for machines, or give these up: gpukube pool delete {' '.join(kept.member.where[1:])}",
                code="family-partial",
            ) from error
        return self._state(kept.member)

    def _is_trial(self, state: _State) -> bool:
        trial = self.lease.trial
        return trial is not None and (trial.cluster, trial.member) == state.member.where

    def _resumed(self, states: Sequence[_State]) -> _State | None:
        """Return the pool whose attempt goes on: that of a killed run, or one that waits for its nodes."""
        there = [one for one in states if one.live and one.live.state in ("ready", "busy")]
        return next((one for one in there if self._is_trial(one)), next((one for one in there if one.size), None))

    def _try_in_turn(self, states: Sequence[_State], resumed: _State | None, beside: _State | None = None) -> _State:
        """Try the pools until one gets the nodes.

        Args:
            states: The pools, in order.
            resumed: The one to begin with.
            beside: The pool that keeps its nodes meanwhile.

        Raises:
            CapacityError: None gets them; lists what each place said, and when.
            GpukubeError: Something else than missing machines went wrong.
        """
        order = [resumed] if resumed else []
        for state in (*order, *(one for one in states if one is not resumed)):
            if state is not resumed and (outcome := self._known(state)):
                self.said.append(outcome)
                continue
            if reason := self._over_price(state, beside):
                self._note(state, Outcome(*state.member.where, "price", reason, self.run.clock.now()))
                continue
            if state.member.plan.action == "conflict":
                raise Conflict.of(state.member.plan.diagnostics, state.member.plan.why)
            for other in states:
                if other is not state and other is not beside:
                    self._give_up(other)
            self.lease.begin(*state.member.where)
            if self._gets_nodes(state):
                self.lease.win(*state.member.where)
                return self._state(state.member)
        raise self._exhausted()

    def _gets_nodes(self, state: _State) -> bool:
        """Attempt to get the nodes; if there are none, end the attempt and record what the cloud said."""
        while True:
            try:
                get_nodes(state.trying)
            except MOVABLE as error:
                state.trying.report(f"no machines: {error}")
                live = state.trying.observe()
                if not fence(state.trying, nodes=state.trying.ready_nodes(live) if live else 0):
                    continue  # nodes came while it was given up
                says = visible(error.diagnostics[0].why or str(error))
                self._note(state, Outcome(*state.member.where, kind_of(error), says, self.run.clock.now()))
                return False
            return True

    def _note(self, state: _State, outcome: Outcome) -> None:
        if outcome.kind != "price":
            self.lease.end(outcome)
        warning = "warning: " if outcome.kind == "restriction" else ""  # the spec names what the place does not have
        state.trying.report(f"{warning}{_KINDS[outcome.kind]}: {outcome.says}")
        self.said.append(outcome)

    def _known(self, state: _State) -> Outcome | None:
        """Return why a pool need not be asked: it was, a moment ago; or its quota is known to be used up."""
        where, now = state.member.where, self.run.clock.now()
        if error := self.trying.held.get(where):
            return Outcome(*where, "quota", str(error), now)
        extras = state.member.session.provider.extras
        ttl_s = extras.outcome_ttl_s / self.run.pace.speed
        mine = next((one for one in self.lease.outcomes if (one.cluster, one.member) == where), None)
        if mine and mine.kind != "price" and fresh(mine, ttl_s, now):
            return mine
        return next(
            (replace(one, cluster=where[0], member=where[1]) for one in self.said if self._same_quota(one, state)), None
        )

    def _same_quota(self, outcome: Outcome, state: _State) -> bool:
        """Return whether a quota that refused another pool refuses this one too."""
        if outcome.cluster != state.member.where[0] or outcome.kind not in ("quota", "regional-quota"):
            return False
        refused = next((one for one in self.family.members if one.where == (outcome.cluster, outcome.member)), None)
        return outcome.kind == "regional-quota" or (refused is not None and _bought(refused) == _bought(state.member))

    def _over_price(self, state: _State, beside: _State | None) -> str:
        limit = self.trying.limit
        if limit is None:
            return ""
        other = limit.hourly(beside.member.cluster, beside.trying.desired) if beside else 0.0
        return limit.over(state.member.cluster, state.trying.desired, other)

    def _give_up(self, state: _State) -> None:
        """Delete what an earlier attempt left of a pool; one with ready nodes is never deleted."""
        live = state.live
        if live is not None and (live.state == "deleting" or not state.trying.ready_nodes(live)):
            fence(state.trying)

    def _clean_up(self, holder: _State) -> list[str]:
        """Delete pools without nodes; return what is left to say about others."""
        left = []
        for state in self._read():
            if state.member.where == holder.member.where or state.live is None:
                continue
            if state.ready:
                name = self.family.called(*state.member.where)
                left.append(f"{name} has {state.ready} nodes too: pool apply --rebalance moves its pods")
            else:
                fence(state.trying)
        return left

    def _rebalance(self, holder: _State) -> PoolReport | None:
        """Move to the first better pool that gets the nodes, or finish such a move; None if there is none."""
        states = self._read()
        here = [one for one in states if one.member.plan.cluster.key == holder.member.plan.cluster.key]
        leaving = next((one for one in here if one.ready and one.member.where != holder.member.where), None)
        if leaving is None:
            _require_movable(holder)
            better = [one for one in here[: _index(here, holder)] if not one.ready]
            try:
                winner = self._try_in_turn(better, None, beside=holder) if better else None
            except CapacityError as error:
                holder.trying.report(f"stays: {error}")
                return None
            if winner is None:
                return None
            leaving, holder = holder, winner
        finish(holder.trying)
        report = self._proof(holder.member, f"moved from {leaving.member.plan.pool}")()
        old = old_pool_plan(replace(leaving.member.plan, observed=leaving.live))
        drained = empty_pool(
            old, leaving.member.session, self.run, self.trying.consent, successor=holder.member.plan.name
        )
        remove_emptied(old, leaving.member.session, self.run, self.trying.consent)
        return _family_report(self.family, holder.member, report, "; ".join(drained.notes))

    def _proof(self, member: Member, done: str) -> Proof:
        desired = member.plan.desired
        assert desired is not None  # noqa: S101 - pools of a family are declared
        extras = member.session.provider.extras
        tolerations = pod_tolerations(desired, tolerates_resources=extras.tolerates_resources) if done else ()
        outcome = PoolReport(
            member.plan.pool, member.plan.name, "done" if done else "unchanged", done or "has the nodes"
        )
        unproven = replace(outcome, tolerations=tolerations)
        return lambda: replace(unproven, proof=prove(desired, member.session, self.run))

    def _heard(self) -> list[str]:
        return [f"{self.family.called(one.cluster, one.member)}: {_KINDS[one.kind]}" for one in self.said]

    def _exhausted(self) -> GpukubeError:
        """Return the error that lists what each place said, and when."""
        found = [_finding(one) for one in self.said]
        message = f"no alternative of {self.family.name} got its nodes"
        if all(one.kind == "price" for one in self.said):
            return GpukubeError.of(found, message)
        return CapacityError.of(found, message)


_KINDS: Final[Mapping[str, str]] = {
    "stock": "no machines",
    "reservation": "the reservation is full",
    "quota": "the quota is used up",
    "regional-quota": "the region's quota is used up",
    "restriction": "not offered there",
    "price": "costs more than maxHourlyPrice",
    "timeout": "no machines in time",
}


def _finding(outcome: Outcome) -> Finding:
    at = datetime.fromtimestamp(outcome.at, UTC).strftime("%H:%M:%S UTC")
    fix = "raise maxHourlyPrice" if outcome.kind == "price" else "run the same command again later, or add alternatives"
    return Finding(
        f"family-{outcome.kind}",
        Where(f"{outcome.cluster}/{outcome.member}"),
        f"{_KINDS[outcome.kind]} (asked at {at})",
        fix=fix,
        why=outcome.says,
    )


def _bought(member: Member) -> tuple[str, str] | None:
    target = member.plan.desired.target if member.plan.desired else None
    return (target.machine.name, target.capacity.type) if target else None


def _index(states: Sequence[_State], state: _State) -> int:
    return next(number for number, one in enumerate(states) if one.member.where == state.member.where)


def _require_movable(holder: _State) -> None:
    """Refuse to empty a pool that must not be deleted.

    Raises:
        Conflict: It is protected.
    """
    if holder.live is not None and holder.live.protected:
        raise Conflict(
            f"{holder.live.name} has the nodes, and it is protected",
            where=holder.member.plan.where,
            fix="apply deletionProtection: false first",
            code="protected",
        )
