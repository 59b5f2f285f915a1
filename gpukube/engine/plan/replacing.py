"""Checks whether a second pool can exist next to the one it replaces, and adds the result to the plan.

In scope: checking the replacements that core.replacing planned against the state of a cluster. Out of scope: which of
two pools is the old one (core.replacing), doing it (engine.change.surge).
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING, Final

from gpukube.cluster.state.node_drift import belongs_to_pool, nodes_of_pool
from gpukube.core.fields import LEAST
from gpukube.core.live import live_machine
from gpukube.core.plan import carry_over
from gpukube.core.quotas import QuotaNeed
from gpukube.engine.plan.quotas import quotas_for
from gpukube.errors import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.cluster.kube.client import Kube
    from gpukube.core.values import Desired, Observed, PoolPlan, Replacement
    from gpukube.engine.plan.planning import ClusterPlan, Scope
    from gpukube.engine.run.session import Session
    from gpukube.provider import Provider

RECREATE: Final = "use --replace recreate, which deletes the pool first"


def with_replacements(plan: ClusterPlan, session: Session, scope: Scope) -> ClusterPlan:
    """Check the replacements of a cluster's plan, and set the calls of the chosen way for each."""
    if not any(pool.replacement for pool in plan.pools):
        return plan
    return replace(plan, pools=tuple(_checked(pool, plan, session, scope) for pool in plan.pools))


def busy_nodes(kube: Kube, pool: Observed) -> frozenset[str]:
    """Return the names of a live pool's nodes with a pod that would have to leave.

    Raises:
        AccessError: Nodes or pods may not be listed.
        ClusterError: The API did not answer.
    """
    nodes = tuple(node.name for node in kube.nodes() if belongs_to_pool(node, pool))
    return frozenset(node for node, _pod in kube.pods_on(nodes)) if nodes else frozenset()


def nodes_needed(successor: Desired, old: Observed, busy: int) -> int:
    """Return how many nodes an autoscaled pool must have before pods move to it.

    Enough for the GPUs of the old pool's busy nodes, but no more than the spec allows. An idle pool needs none. A pool
    of fixed size has all its nodes from the start.
    """
    nodes, machine = successor.target.nodes, successor.target.machine
    if not nodes.autoscaled:
        return 0
    before = live_machine(successor.target.cluster.provider, old)
    needed = ceil(busy * before.gpus / machine.gpus) if before and machine.gpus else busy
    return min(needed, nodes.maximum)


def with_size(
    provider: Provider, successor: Desired, needed: int, old: Observed, live: Observed | None = None
) -> Desired:
    """Make an autoscaled pool start with the needed nodes, and keep its current lower bound.

    Args:
        provider: Provider of its cloud.
        successor: The new pool.
        needed: Result of `nodes_needed`.
        old: The pool that it replaces, from which it takes over what no field says.
        live: The new pool, if it exists.

    Returns:
        The new pool with its size; the argument itself, which is complete, if nothing differs.
    """
    target = successor.target
    nodes, known = target.nodes, provider.check(target)
    if not nodes.autoscaled:
        return successor
    raised = live.fields.get(LEAST) if live else None
    least = min(max(nodes.minimum, raised), nodes.maximum) if isinstance(raised, int) else nodes.minimum
    # Not every number is valid: GKE starts the same number of nodes in each zone.
    for count in range(max(nodes.count, needed), nodes.maximum + 1):
        sized = replace(nodes, minimum=least, count=max(count, least))
        if sized == nodes:
            return successor
        resized = replace(target, nodes=sized)
        if all(one in known for one in provider.check(resized) if one.severity == "error"):
            return carry_over(provider, provider.desired(resized, successor.ownership, successor.promise), old)[0]
    return successor


def _checked(pool: PoolPlan, plan: ClusterPlan, session: Session, scope: Scope) -> PoolPlan:
    found, provider = pool.replacement, session.provider
    if found is None or pool.observed is None:
        return pool
    if found.beside is not None:
        return _in_progress(pool, found, plan, scope)
    judged = [*found.obstacles]
    if (successor := found.successor) is not None:
        if successor.target.nodes.autoscaled and plan.seen:
            found = _with_initial_nodes(found, successor, pool.observed, session)
        judged += [
            *_name_obstacles(successor, pool, plan, provider),
            *_coexistence_obstacles(successor, pool, provider),
        ]
        if plan.seen is not None:  # a plan that skips the cluster makes no further call
            judged += session.cloud.check_limits(found.successor or successor, len(plan.live))
        judged += _quota_obstacles(found.successor or successor, pool, plan, session)
    found = replace(
        found,
        obstacles=tuple(one for one in judged if one.severity == "error"),
        unknown=tuple(one.seen for one in judged if one.severity != "error"),
    )
    pool = replace(pool, replacement=found)
    if scope.replace != "surge":
        return pool
    if found.obstacles:
        return replace(pool, diagnostics=(*pool.diagnostics, *(impossible(pool, one) for one in found.obstacles)))
    return replace(pool, requests=found.requests)


def _with_initial_nodes(found: Replacement, successor: Desired, old: Observed, session: Session) -> Replacement:
    """Show the creation with its initial number of nodes."""
    needed = nodes_needed(successor, old, len(busy_nodes(session.kube(), old)))
    sized = with_size(session.provider, successor, needed, old)
    if sized is successor:
        return found
    sized = session.cloud.complete(sized)
    calls = tuple(sized.create if request == successor.create else request for request in found.requests)
    return replace(found, successor=sized, requests=calls)


def impossible(pool: PoolPlan, obstacle: Finding) -> Finding:
    """Return the finding why --replace surge is rejected for a pool."""
    return Finding(
        "surge-impossible",
        pool.where,
        f"no second pool can be created next to {pool.name}: {obstacle.seen}",
        fix=obstacle.fix or RECREATE,
        why=obstacle.why,
    )


def _in_progress(pool: PoolPlan, found: Replacement, plan: ClusterPlan, scope: Scope) -> PoolPlan:
    """Refine the step of a running replacement by the cluster's state: a cordon has no other trace."""
    old = pool.observed
    nodes = nodes_of_pool(plan.seen, old) if plan.seen and old else ()
    if found.step == "prove" and any(node.cordoned for node in nodes):
        cordoned = sum(node.cordoned for node in nodes)
        why = f"{found.name} replaces {pool.name}: {cordoned} of {len(nodes)} nodes of {pool.name} are cordoned"
        pool = replace(pool, why=why, replacement=replace(found, step="drain"))
    if scope.replace != "recreate":
        return pool
    problem = Finding(
        "replacement-under-way",
        pool.where,
        f"{pool.name} is being replaced by {found.name}: it cannot be recreated meanwhile",
        fix=f"finish it with --replace surge; or delete {found.name} first",
    )
    return replace(pool, diagnostics=(*pool.diagnostics, problem))


def _name_obstacles(successor: Desired, pool: PoolPlan, plan: ClusterPlan, provider: Provider) -> Iterator[Finding]:
    """Find obstacles to the new pool's name: the cloud's rules, or another pool with that name."""
    name, where = successor.target.name, successor.target.locator.at("name")
    known = provider.check(pool.desired.target) if pool.desired else []
    yield from (one for one in provider.check(successor.target) if one.severity == "error" and one not in known)
    shorter = f"{RECREATE}; or give the pool a new name in the spec, and prune the old one afterwards"
    live = next((one for one in plan.live if one.name == name), None)
    if live is not None:
        belongs = f'belongs to "{live.owner}"' if live.owner else "has no gpukube.io/owner label"
        yield Finding("surge-impossible", where, f'a pool named "{name}" exists and {belongs}', fix=shorter)
    elif any(other is not pool.desired and other.target.name == name for other in plan.desired):
        yield Finding("surge-impossible", where, f'the spec has another pool with the cloud name "{name}"', fix=shorter)


def _coexistence_obstacles(successor: Desired, pool: PoolPlan, provider: Provider) -> Iterator[Finding]:
    """Find obstacles to two pools at the same time."""
    old: Observed | None = pool.observed
    if old is None:
        return
    judged = provider.extras.check_coexistence(successor, old)
    yield from judged
    reservation = successor.target.capacity.reservation
    shared = [
        path for path, value in successor.fields.items()
        if path.is_below("capacity", "reserved") and old.fields.get(path) == value
    ]  # fmt: skip
    if reservation is not None and reservation.id and shared and not judged:
        yield Finding(
            "surge-impossible",
            pool.where,
            f"both pools would draw on reservation {reservation.id}, whose free machines are not read",
            severity="warning",
        )


def _quota_obstacles(successor: Desired, pool: PoolPlan, plan: ClusterPlan, session: Session) -> Iterator[Finding]:
    """Find quotas that cannot cover the new pool's first nodes; the old pool counts until it is deleted."""
    known, target = session.provider.extras.quotas, successor.target
    if known is None or plan.facts is None or plan.seen is None:
        return
    draws = known.draws(plan.cluster, plan.facts.location, target.machine, target.capacity)
    needs = [QuotaNeed(draw.quota, draw.per_node * target.nodes.count, str(pool.where)) for draw in draws]
    key = plan.cluster.key
    for use in quotas_for({key: [need for need in needs if need.amount > 0]}, {key: session.cloud}, 1)[key]:
        quota = use.quota
        if use.is_short:
            left = "too little" if use.free is None else f"{use.free:g}"
            seen = f"it needs {use.needed:g} {quota.unit} of quota {quota.name} ({quota.title}), which has {left} left"
            yield Finding("surge-impossible", pool.where, seen, fix=f"raise it: {use.fix}; or {RECREATE}")
        elif use.reading.unknown:
            seen = f"quota {quota.name} ({quota.title}): {use.reading.unknown}"
            yield Finding("surge-impossible", pool.where, seen, severity="warning")
