"""The work on one family under its lock: the pools in turn, moving to a better one, what is reported.

In scope: the order, and when to go on to the next pool. Out of scope: one attempt (attempt), the record (family_lease).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from gpukube.core.plan import plan_pool
from gpukube.core.tolerations import pod_tolerations
from gpukube.engine.change.attempt import MOVABLE, Attempt, fence, fill_up, finish, get_nodes, kind_of, overdrawn
from gpukube.engine.change.draining import DrainConsent
from gpukube.engine.change.family_record import KINDS, Outcome, fresh
from gpukube.engine.change.proving import prove
from gpukube.engine.change.release import restore_entry
from gpukube.engine.change.surge import empty_pool, old_pool_plan, remove_emptied
from gpukube.engine.plan.families import live_size
from gpukube.engine.run.report import PoolReport
from gpukube.errors import CapacityError, Conflict, Finding, GpukubeError, Where
from gpukube.visible import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpukube.core.families import FamilyKey
    from gpukube.core.quotas import QuotaDraw
    from gpukube.core.values import Desired, Observed, PoolPlan
    from gpukube.engine.change.family_lease import FamilyLease
    from gpukube.engine.change.holding import Held
    from gpukube.engine.change.live_pool import Proof, Work
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


class State(NamedTuple):
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


def as_family(family: Family, holder: Member, report: PoolReport | Proof, note: str = "") -> PoolReport | Proof:
    """Report a pool as its family: which of its pools has the nodes, and what the others said."""
    if not isinstance(report, PoolReport):
        return lambda: family_report(family, holder, report(), note)
    return family_report(family, holder, report, note)


def family_report(family: Family, holder: Member, report: PoolReport, note: str) -> PoolReport:
    """Return the report of a pool under its family's name."""
    place = next(number for number, one in enumerate(family.members, 1) if one.where == holder.where)
    name = family.called(*holder.where)
    which = f"{name} has the nodes (alternative {place} of {len(family.members)})" if place > 1 else ""
    return replace(report, pool=family.name, message="; ".join(filter(None, (report.message, which, note))))


@dataclass(slots=True)
class FamilyRun:
    """The work on one family under its lock."""

    family: Family
    work: Callable[[ClusterPlan], Work]
    trying: Trying
    run: Run
    lease: FamilyLease
    found: Callable[[Member], None]
    said: list[Outcome] = field(default_factory=list)
    done: str = ""

    def carry_out(self) -> PoolReport | Proof:
        """Find the pool that has the nodes, or get them; then clean up, and move to a better pool if requested."""
        states = self._read()
        holder = self._holder(states)
        created = holder is None
        if holder is None and (holder := self._try_in_turn(states, self._resumed(states))) is None:
            raise self._exhausted()
        self.found(holder.member)
        if created or self._is_trial(holder):  # also by a run that was killed before this
            self.done = "created"
            finish(holder.trying)
        if self.trying.rebalance and (moved := self._rebalance(holder)):
            return moved
        left = self._clean_up(holder)
        self._remember(holder)
        note = "; ".join((*overdrawn(holder.trying), *left, *self._heard()))
        member = holder.member
        if self.done != "created" and member is self.family.planned and _still_differs(holder):
            done = self.work(member.cluster)(member.plan, member.session, self.run)
            return as_family(self.family, member, done, note)
        return as_family(self.family, member, self._proof(member, self.done), note)

    def _read(self) -> list[State]:
        return [self._state(member) for member in self.family.members]

    def _state(self, member: Member) -> State:
        trying = Attempt(member.plan, member.session, self.run)
        if member.plan.action == "conflict":
            return State(trying, member, None, 0, 0)
        live = trying.observe()
        if live is None or live.state == "deleting":
            return State(trying, member, live, 0, 0)
        ready = trying.ready_nodes(live)
        return State(trying, member, live, live_size(live.nodes, None, ready), ready)

    def _holder(self, states: Sequence[State]) -> State | None:
        """Return the pool that has the nodes, after it has got them all; None if the pools are to be tried.

        A pool with a ready node is kept, unless it is the one in trial: its nodes came with this attempt.
        """
        complete = [one for one in states if one.live and one.ready >= one.trying.wanted]
        won = self.lease.won
        if complete:  # first the pool of a run that was killed when its attempt, or its move, had succeeded
            before = [one for one in complete if won and one.member.where == (won.cluster, won.member)]
            return next((one for one in complete if self._is_trial(one)), (*before, *complete)[0])
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
        self.done = "has all its nodes now"
        return self._state(kept.member)

    def _is_trial(self, state: State) -> bool:
        trial = self.lease.trial
        return trial is not None and (trial.cluster, trial.member) == state.member.where

    def _resumed(self, states: Sequence[State]) -> State | None:
        """Return the pool whose attempt goes on: that of a killed run, or one that waits for its nodes."""
        there = [one for one in states if one.live and one.live.state in ("ready", "busy")]
        return next((one for one in there if self._is_trial(one)), next((one for one in there if one.size), None))

    def _remember(self, holder: State) -> None:
        """Record the pool that has the nodes, if another run's record is lost or was cut off."""
        won = self.lease.won
        if self.lease.trial or won is None or (won.cluster, won.member) != holder.member.where:
            self.lease.win(*holder.member.where)

    def _try_in_turn(self, states: Sequence[State], resumed: State | None, beside: State | None = None) -> State | None:
        """Try the pools until one gets the nodes; None if none does.

        Args:
            states: The pools, in order.
            resumed: The one to begin with.
            beside: The pool that keeps its nodes meanwhile.

        Raises:
            GpukubeError: Something else than missing machines went wrong.
        """
        order = [resumed] if resumed else []
        for state in (*order, *(one for one in states if one is not resumed)):
            if state is not resumed and (outcome := self._known(state)):
                self.said.append(outcome)
                continue
            if reason := self._over_price(state, beside):
                state.trying.report(f"{KINDS['price']}: {reason}")
                self.said.append(Outcome(*state.member.where, "price", reason, self.run.clock.now()))
                continue
            if state.member.plan.action == "conflict":
                raise Conflict.of(state.member.plan.diagnostics, state.member.plan.why)
            for other in states:
                if other is not state and other is not beside:
                    self._give_up(other)
            self.lease.begin(*state.member.where)
            restore_entry(state.member.cluster, state.member.plan, state.member.session, self.run)
            if self._gets_nodes(state):
                if beside is not None:
                    self.lease.win(*state.member.where)
                return self._state(state.member)
        for state in states:  # also what a killed run was trying, if it costs too much by now
            self._give_up(state)
        return None

    def _gets_nodes(self, state: State) -> bool:
        """Attempt to get the nodes; if there are none, end the attempt and record what the cloud said."""
        while True:
            try:
                get_nodes(state.trying)
            except MOVABLE as error:
                live = state.trying.observe()
                nodes = state.trying.ready_nodes(live) if live else 0
                kind, says = kind_of(error), visible(error.diagnostics[0].why or str(error))
                warning = "warning: " if kind == "restriction" else ""  # the spec names what the place does not have
                state.trying.report(f"{warning}{KINDS[kind]}: {says}")
                if nodes >= state.trying.wanted or not fence(state.trying, nodes=nodes):
                    continue  # nodes came while it was given up
                outcome = Outcome(*state.member.where, kind, says, self.run.clock.now())
                self.lease.end(outcome)
                self.said.append(outcome)
                return False
            return True

    def _known(self, state: State) -> Outcome | None:
        """Return why a pool need not be asked: it was, a moment ago; its quota is used up; or it costs too much.

        With `rebalance` it is asked again: somebody has reason to believe that there are machines now.
        """
        where, now = state.member.where, self.run.clock.now()
        if error := self.trying.held.get(where):
            return Outcome(*where, "quota", str(error), now)
        mine = next((one for one in self.lease.outcomes if (one.cluster, one.member) == where), None)
        if mine and not self.trying.rebalance and fresh(mine, self._ttl_s(state.member), now):
            until = _moment(mine.at + self._ttl_s(state.member))
            state.trying.report(f"not asked again before {until}: {KINDS[mine.kind]} at {_moment(mine.at)}")
            return mine
        return next(
            (replace(one, cluster=where[0], member=where[1]) for one in self.said if self._same_quota(one, state)), None
        )

    def _ttl_s(self, member: Member) -> float:
        """Return how long what a cloud said about a pool counts."""
        return member.session.provider.extras.outcome_ttl_s / self.run.pace.speed

    def _same_quota(self, outcome: Outcome, state: State) -> bool:
        """Return whether a quota that refused another pool refuses this one too: it needs at least as much of it."""
        if outcome.kind == "regional-quota":
            return outcome.cluster == state.member.where[0]
        refused = next((one for one in self.family.members if one.where == (outcome.cluster, outcome.member)), None)
        if outcome.kind != "quota" or refused is None:
            return False
        needs = {draw.quota: draw.per_node for draw in _draws(state.member)}
        return any(needs.get(draw.quota, 0) >= draw.per_node for draw in _draws(refused)[:1])  # the others are wider

    def _over_price(self, state: State, beside: State | None) -> str:
        limit = self.trying.limit
        if limit is None:
            return ""
        other = limit.hourly(beside.member.cluster, beside.trying.desired) if beside else 0.0
        return limit.over(state.member.cluster, state.trying.desired, other)

    def _give_up(self, state: State) -> None:
        """Delete what an earlier attempt left of a pool; one with ready nodes only if they came with that attempt.

        Raises:
            Conflict: Machines have come after all, so no other pool may be tried.
        """
        if state.live is None:
            return
        ready = 0 if state.live.state == "deleting" else state.trying.ready_nodes(state.live)
        if (not ready or self._is_trial(state)) and fence(state.trying, nodes=ready):
            return
        raise Conflict(
            f"{state.live.name} has got nodes while it was given up",
            where=state.member.plan.where,
            fix="run the same command again: this pool is kept",
            why="no two pools of a family may have nodes at the same time",
            code="moved",
        )

    def _clean_up(self, holder: State) -> list[str]:
        """Delete pools without nodes; return what is left to say about others."""
        left = []
        for state in self._read():
            if state.member.where == holder.member.where or state.live is None:
                continue
            keeps = state.ready and not self._is_trial(state)
            if keeps or not fence(state.trying, nodes=state.ready):
                name = self.family.called(*state.member.where)
                left.append(f"{name} has {state.ready or 'new'} nodes too: pool apply --rebalance moves its pods")
        return left

    def _rebalance(self, holder: State) -> PoolReport | None:
        """Move to the first better pool that gets the nodes, or finish such a move; None if there is none."""
        states = self._read()
        here = [one for one in states if one.member.plan.cluster.key == holder.member.plan.cluster.key]
        others = [one for one in here if one.member.where != holder.member.where]
        leaving = next((one for one in others if one.ready and not self._is_trial(one)), None)
        if leaving is None:
            asked = {(one.cluster, one.member) for one in self.said}
            better = [one for one in here[: _index(here, holder)] if one.member.where not in asked]
            if not better:
                return None
            _require_movable(holder)
            winner = self._try_in_turn(better, self._resumed(better), beside=holder)
            if winner is None:
                holder.trying.report(f"stays: {self._exhausted()}")
                return None
            leaving, holder = holder, winner
            self.found(holder.member)
        finish(holder.trying)
        report = self._proof(holder.member, f"moved from {leaving.member.plan.pool}")()
        old = old_pool_plan(replace(leaving.member.plan, observed=leaving.live))
        drained = empty_pool(
            old, leaving.member.session, self.run, self.trying.consent, successor=holder.member.plan.name
        )
        remove_emptied(old, leaving.member.session, self.run, self.trying.consent)
        return family_report(self.family, holder.member, report, "; ".join(drained.notes))

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
        return [f"{self.family.called(one.cluster, one.member)}: {KINDS[one.kind]}" for one in self.said]

    def _exhausted(self) -> GpukubeError:
        """Return the error that lists what each place said, and when."""
        sizes = {one.where: _size_words(one) for one in self.family.members}
        found = [_finding(one, sizes[one.cluster, one.member]) for one in self.said]
        skipped = [one.kind == "price" for one in self.said]
        again = f"run the same command again {self._when_again()}"
        fixes = [*(["raise maxHourlyPrice"] if any(skipped) else []), *([] if all(skipped) else [again])]
        found[-1:] = [replace(last, fix=f"{'; '.join(fixes)}, or add alternatives") for last in found[-1:]]
        if all(skipped):
            return GpukubeError.of(found, f"every alternative of {self.family.name} was skipped for its price")
        message = f"no alternative of {self.family.name} got its nodes"
        return CapacityError.of(found, message)

    def _when_again(self) -> str:
        """Return when a run asks again: what the clouds said counts for a while."""
        said = {(one.cluster, one.member): one.at for one in self.lease.outcomes}
        ends = [said[one.where] + self._ttl_s(one) for one in self.family.members if one.where in said]
        later = [end for end in ends if end > self.run.clock.now()]
        return f"after {_moment(min(later))} (apply --rebalance asks at once)" if later else "later"


_SHOWN: Final = 200
"""Characters of what a cloud said that an error repeats; the events have all of it."""


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S UTC")


def _finding(outcome: Outcome, size: str) -> Finding:
    at = "" if outcome.kind == "price" else f" at {_moment(outcome.at)}"
    return Finding(
        f"family-{outcome.kind}",
        Where(f"{outcome.cluster}/{outcome.member}"),
        f"{size}: {KINDS[outcome.kind]}{at}",
        why=_first_sentences(outcome.says),
    )


def _size_words(member: Member) -> str:
    assert member.plan.desired is not None  # noqa: S101 - pools of a family are declared
    target = member.plan.desired.target
    bought = "" if target.capacity.type == "on-demand" else f", {target.capacity.type}"
    return f"{target.nodes.count} x {target.machine.name}{bought}"


def _first_sentences(text: str) -> str:
    """Return the beginning of what a cloud said, up to the end of a sentence if that is near."""
    if len(text) <= _SHOWN:
        return text
    end = text.rfind(". ", 0, _SHOWN)
    return text[: end + 1] if end > 0 else f"{text[:_SHOWN]}..."


def _draws(member: Member) -> tuple[QuotaDraw, ...]:
    """Return what one node of a pool takes of the quotas that limit it, the narrowest first."""
    known, facts, desired = member.session.provider.extras.quotas, member.cluster.facts, member.plan.desired
    if known is None or facts is None or desired is None:
        return ()
    target = desired.target
    return known.draws(target.cluster, facts.location, target.machine, target.capacity)


def _still_differs(holder: State) -> bool:
    """Return whether what was planned for a pool is still to be done: the plan was made before the run had the lock."""
    plan, live = holder.member.plan, holder.live
    if plan.action == "update" and live is not None:
        return plan_pool(holder.member.session.provider, holder.trying.desired, (live,)).action != "no-op"
    return plan.action in ("update", "replace")


def _index(states: Sequence[State], state: State) -> int:
    return next(number for number, one in enumerate(states) if one.member.where == state.member.where)


def _require_movable(holder: State) -> None:
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
