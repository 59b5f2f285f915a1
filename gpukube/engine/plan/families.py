"""Plans families with a fixed size: which pool has the nodes, and which is tried first if none has.

A family is satisfied by the nodes of any one of its pools; the others stand by. In scope: roles by what the clouds and
clusters show, and the plans that follow from them. Out of scope: getting nodes (engine.change.families), autoscaled
families, whose pools all exist.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from gpukube.core.families import differences, family_key
from gpukube.core.fields import COUNT
from gpukube.core.plan import plan_removal
from gpukube.core.values import FamilyPlace, Nodes
from gpukube.errors import Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gpukube.core.families import FamilyKey
    from gpukube.core.values import Desired, FamilyRole, PoolPlan
    from gpukube.engine.plan.planning import ClusterPlan
    from gpukube.engine.run.session import Session

EMPTY = Nodes(0, 0, 0, autoscaled=False)
"""Size of a pool that was created to be scaled, or that an attempt has given up."""


class Member(NamedTuple):
    """A pool of a family.

    Attributes:
        plan: Its plan.
        size: Number of nodes that its cloud is to keep; 0 if it does not exist or is being deleted.
        nodes: Ready nodes of it in its cluster; None if the cluster was not read.
    """

    plan: PoolPlan
    size: int
    nodes: int | None

    @property
    def is_whole(self) -> bool:
        """Whether it has all nodes of the family, as far as is known."""
        assert self.plan.desired is not None  # noqa: S101 - pools of a family are declared
        wanted = self.plan.desired.target.nodes.count
        return self.size >= wanted and (self.nodes is None or self.nodes >= wanted)


def with_families(plans: Sequence[ClusterPlan], sessions: Mapping[str, Session]) -> tuple[ClusterPlan, ...]:
    """Give each pool of a family its role, and plan what follows from it."""
    found: dict[FamilyKey, list[Member]] = {}
    unread: dict[FamilyKey, str] = {}
    for cluster in plans:
        for pool in cluster.pools:
            if pool.desired and (key := family_key(pool.desired)):
                found.setdefault(key, []).append(_member(pool, cluster))
        if cluster.error is not None:
            unread |= {key: cluster.cluster.key for pool in cluster.desired if (key := family_key(pool))}
    planned: dict[tuple[str, str], PoolPlan] = {}
    for key, members in found.items():
        members.sort(key=lambda member: _turn(member.plan))
        for pool in _planned(members, sessions, unread.get(key, "")):
            planned[pool.cluster.key, pool.pool] = pool
    return tuple(
        replace(
            cluster,
            pools=tuple(
                _beside_undeclared(planned.get((pool.cluster.key, pool.pool), pool), cluster)
                if pool.desired and pool.desired.target.family
                else pool
                for pool in cluster.pools
            ),
        )
        for cluster in plans
    )


def _beside_undeclared(plan: PoolPlan, cluster: ClusterPlan) -> PoolPlan:
    """Warn that a family is to get nodes although a pool has some that was an alternative until it left the spec."""
    if plan.family is None or plan.family.role != "next" or plan.desired is None:
        return plan
    marks, declared = (plan.desired.target.owner, plan.family.name), {one.target.pool for one in cluster.desired}
    left = [o.name for o in cluster.live if (o.owner, o.family) == marks and o.pool not in declared and o.nodes]
    if not left:
        return plan
    found = Finding(
        "family-left",
        plan.where,
        f"{', '.join(left)} left the spec, and still has nodes of {plan.family.name}",
        fix="declare it again; or delete it with --prune, after the others have got nodes",
        severity="warning",
    )
    return replace(plan, diagnostics=(*plan.diagnostics, found))


def _member(pool: PoolPlan, cluster: ClusterPlan) -> Member:
    observed = pool.observed
    if observed is None or pool.action == "conflict" or observed.state == "deleting":
        return Member(pool, 0, 0)
    nodes = None
    if cluster.seen is not None:
        from gpukube.cluster.state.node_drift import nodes_of_pool  # noqa: PLC0415 - only if clusters were read

        nodes = sum(node.ready for node in nodes_of_pool(cluster.seen, observed))
    return Member(pool, live_size(observed.nodes, observed.fields.get(COUNT), nodes), nodes)


def live_size(reported: int | None, declared: object, nodes: int | None) -> int:
    """Return the number of nodes that a cloud is to keep: as it reports it, else as declared there, else as counted."""
    if reported is not None:
        return reported
    return declared if isinstance(declared, int) else nodes or 0


def holder_of(members: Sequence[Member]) -> Member | None:
    """Return the pool that has the nodes of a family: a complete one, else the one with most nodes; None if none has.

    Of equal ones, the first in the order of the spec.
    """
    there = [member for member in members if member.size or member.nodes]
    return max(there, key=lambda member: (member.is_whole, member.nodes or 0), default=None)


def _turn(plan: PoolPlan) -> tuple[int, int]:
    assert plan.desired is not None  # noqa: S101 - pools of a family are declared
    return plan.desired.target.turn, plan.desired.target.rank


def _planned(members: Sequence[Member], sessions: Mapping[str, Session], unread: str) -> Iterable[PoolPlan]:
    holder = holder_of(members)
    seconds = [member for member in members if member is not holder and (member.size or member.nodes)]
    elsewhere = next((one for one in seconds if holder and one.plan.cluster.key != holder.plan.cluster.key), None)
    first = next((member for member in members if member.plan.action != "conflict"), None)
    for turn, member in enumerate(members):
        plan = member.plan
        role: FamilyRole = "standby"
        if member is holder:
            role = "holder"
        elif member in seconds:
            role = "second"
        elif plan.observed is not None and plan.action != "conflict" and (holder or member is not first):
            role = "leftover"
        elif holder is None and member is first and not unread:
            role = "next"
        plan = replace(plan, family=replace(_place(members[0].plan, plan, turn, role), of=len(members)))
        if plan.action == "conflict":
            yield plan
        elif holder and elsewhere and role in ("holder", "second"):
            yield _in_two_places(plan, holder.plan, elsewhere.plan)
        else:
            yield _by_role(plan, holder, sessions[plan.cluster.key], unread)


def _place(first: PoolPlan, plan: PoolPlan, turn: int, role: FamilyRole) -> FamilyPlace:
    assert first.desired is not None  # noqa: S101 - pools of a family are declared
    assert plan.desired is not None  # noqa: S101 - as above
    target = plan.desired.target
    return FamilyPlace(target.family, turn, role, tuple(differences(first.desired.target, target)))


def _by_role(plan: PoolPlan, holder: Member | None, session: Session, unread: str) -> PoolPlan:
    assert plan.family is not None  # noqa: S101 - the caller sets it
    name = plan.family.name
    match plan.family.role:
        case "holder" if holder is not None and holder.nodes == 0 and plan.action == "no-op":
            return replace(plan, why="matches the spec, but has no nodes yet; pool create goes on to get them")
        case "holder":
            return plan
        case "next" if plan.action == "create" and plan.desired and session.provider.extras.starts_empty:
            empty = session.cloud.complete(emptied(plan.desired, session))
            why = f"no pool of {name} has nodes; created empty, then scaled to {plan.desired.target.nodes.count}"
            return replace(plan, why=why, requests=(empty.create,))
        case "next" if plan.action in ("update", "replace"):
            # Its size is that of an attempt: nothing runs there that a change could disturb.
            why = f"an attempt to get nodes for {name} goes on"
            return replace(plan, action="create", why=why, requests=(), changes=(), diagnostics=(), replacement=None)
        case "next":
            return plan
        case "second":
            moves = f"gpukube pool apply --rebalance moves its pods to {holder.plan.pool if holder else name}"
            return replace(plan, action="standby", why=f"it has nodes of {name} too; {moves}", requests=(), changes=())
        case "leftover" if plan.observed is not None:
            removal = plan_removal(session.provider, plan.cluster, plan.observed)
            why = f"an attempt to get nodes for {name} left it without nodes"
            return replace(removal, why=why, desired=plan.desired, family=plan.family)
        case _:
            why = _standby_why(plan, holder, unread)
            return replace(plan, action="standby", why=why, requests=(), changes=(), diagnostics=(), replacement=None)


def _standby_why(plan: PoolPlan, holder: Member | None, unread: str) -> str:
    assert plan.family is not None  # noqa: S101 - the caller sets it
    if holder is not None:
        elsewhere = holder.plan.cluster.key != plan.cluster.key
        verb = "waits for" if holder.nodes == 0 else "has"
        return f"{holder.plan.where if elsewhere else holder.plan.pool} {verb} the nodes of {plan.family.name}"
    if unread:
        return f"{unread} could not be read, and {plan.family.name} may have its nodes there"
    return f"tried if the pools of {plan.family.name} before it get no machines"


def emptied(desired: Desired, session: Session) -> Desired:
    """Return a declared pool as it is created to be scaled: without nodes, and without the mark against deletion."""
    target = replace(desired.target, nodes=EMPTY, protect=False)
    return session.provider.desired(target, desired.ownership, desired.promise)


def _in_two_places(plan: PoolPlan, holder: PoolPlan, other: PoolPlan) -> PoolPlan:
    """Refuse a family with place: any that has nodes on two clusters, as after a change from place: all."""
    assert plan.family is not None  # noqa: S101 - the caller sets it
    problem = Finding(
        "two-pools",
        plan.where,
        f"{plan.family.name} is for any one of its clusters, and has nodes on {holder.cluster.key} and "
        f"{other.cluster.key}",
        fix=f"delete the pool that is not needed: gpukube pool delete -f FILE {other.cluster.key}/{other.name}; or "
        "write place: all",
        why="gpukube does not choose which of them loses its nodes",
    )
    return replace(plan, action="conflict", why=problem.seen, requests=(), changes=(), diagnostics=(problem,))
