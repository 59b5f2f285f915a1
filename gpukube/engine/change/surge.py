"""Replaces a pool with a second one: no GPU is deleted before its replacement is verified.

The order: (1) create the new pool, under the name that the old one does not have; (2) verify its GPUs, on as many nodes
as the old pool has busy ones; (3) stop the old pool's autoscaler, cordon its nodes, evict their pods; (4) check that no
pod is left, and delete the old pool. Each step first reads the current state, and all state is in the clouds and the
cluster: two pools with the same labels, a cordon. So the same command continues a run that was killed at any point.

Out of scope: which pool is the old one (core.replacing), and how nodes are drained (draining).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gpukube.cluster.drain.cordon import is_marked, pool_nodes, uncordon
from gpukube.cluster.state.node_drift import belongs_to_pool
from gpukube.core.fields import LEAST
from gpukube.core.plan import plan_pool
from gpukube.core.values import Change, ClassifiedChange
from gpukube.engine.change.draining import Drained, drain_pool, require_drainable, require_drained, undo_drain
from gpukube.engine.change.live_pool import (
    copy_marks,
    create_pool,
    freeze_pool,
    observe,
    remove_pool,
    scale_pool,
    settle,
    update_pool,
)
from gpukube.engine.change.proving import prove
from gpukube.engine.plan.replacing import busy_nodes, nodes_needed, with_size
from gpukube.errors import Conflict

if TYPE_CHECKING:
    from gpukube.cluster.proof.outcome import PoolProof
    from gpukube.core.values import Desired, Observed, PoolPlan
    from gpukube.engine.change.draining import DrainConsent
    from gpukube.engine.run.context import Run
    from gpukube.engine.run.session import Session


def surge_pool(plan: PoolPlan, session: Session, run: Run, consent: DrainConsent) -> tuple[PoolProof, Drained]:
    """Carry out a replacement to its end, from any intermediate state.

    Args:
        plan: Its action is replace and its replacement has no obstacles; `observed` is the old pool.
        session: Session of its cluster.
        run: The run; it waits for everything.
        consent: What the drain may do.

    Returns:
        What the nodes of the new pool advertise, and what remained on the old ones.

    Raises:
        DrainTimeout: Pods are left on the old pool; both pools stay.
        Conflict: Somebody changed one of the pools, or a pod may not be evicted.
        GpukubeError: A call was rejected or failed, or the new pool is not verified: the old one is untouched.
        WaitTimeout, Stopped: The run ended.
    """
    found, old = plan.replacement, plan.observed
    assert found is not None  # noqa: S101 - every replace has it
    assert old is not None  # noqa: S101 - a replaced pool is live
    successor = _successor(plan)
    leaving = old_pool_plan(plan)
    key = plan.cluster.key
    run.report("replace", f"{found.name} replaces {plan.name}", key, plan.pool)
    if _has_pods_to_leave(old):
        require_drainable(leaving, session, run, consent)
        copy_marks(leaving, session, run)
    needed = nodes_needed(successor, old, len(busy_nodes(session.kube(), old)))
    new = _bring_up(plan, needed, session, run, consent)
    proof = prove(_with_required_nodes(new, needed), session, run, apart_from=old)
    drained = empty_pool(leaving, session, run, consent, successor=found.name)
    remove_emptied(leaving, session, run, consent)
    _restore_size(successor, session, run)
    return proof, drained


def _bring_up(plan: PoolPlan, needed: int, session: Session, run: Run, consent: DrainConsent) -> Desired:
    """Create the new pool, or finish creating it; return it with its size during the move.

    Raises:
        Conflict: A pool of that name has another owner, or differs in a field that cannot change, or only with
            disruption.
    """
    successor = _successor(plan)
    live = session.cloud.pool(successor.target.name)
    assert plan.observed is not None  # noqa: S101 - a replaced pool is live
    desired = with_size(session.provider, successor, needed, plan.observed, live)
    desired = session.cloud.complete(desired) if desired is not successor else successor
    now = plan_pool(session.provider, desired, (live,) if live else ())
    if now.action == "create":
        create_pool(now, session, run)
        return desired
    if now.action not in ("update", "no-op"):
        raise Conflict.of(now.diagnostics, now.why) if now.diagnostics else Conflict(now.why, where=plan.where)
    if now.disruptive and not consent.allow_disruption:  # pods may already have moved there
        fields = ", ".join(str(c.change.field) for c in now.disruptive)
        raise Conflict(
            f"changing {fields} of {now.name} restarts or evicts pods",
            where=plan.where,
            fix="add --allow-disruption",
            code="needs-disruption",
        )
    settle(now, session, run)
    if now.action == "update":
        update_pool(now, session, run)
    if now.observed is not None:
        _reopen(now.observed, session)
    _grow(now, desired, needed, session, run)
    return desired


def _reopen(pool: Observed, session: Session) -> None:
    """Uncordon the new pool's nodes: it was the old one if the spec was reverted while its pods were leaving."""
    kube = session.kube()
    for node in pool_nodes(kube, pool, session.provider.extras.in_cluster.pool_label):
        if is_marked(node, pool):
            uncordon(kube, node, pool)


def _grow(plan: PoolPlan, desired: Desired, needed: int, session: Session, run: Run) -> None:
    """Raise the autoscaler's minimum to the nodes that the pods need: it may have removed idle ones."""
    nodes = desired.target.nodes
    if not nodes.autoscaled or nodes.minimum >= needed or plan.observed is None:
        return
    if sum(belongs_to_pool(node, plan.observed) for node in session.kube().nodes()) >= needed:
        return
    change = Change(LEAST, plan.observed.fields.get(LEAST), needed)
    grown = (ClassifiedChange(change, session.provider.update_row(change, (), plan.observed)),)
    nodes = replace(nodes, minimum=needed, count=max(nodes.count, needed))
    scale_pool(replace(plan, changes=grown), nodes, session, run)


def _with_required_nodes(desired: Desired, needed: int) -> Desired:
    """Require as many nodes as must exist before pods move."""
    nodes = desired.promise.nodes
    least = max(nodes.minimum, needed)
    return replace(desired, promise=replace(desired.promise, nodes=replace(nodes, minimum=least)))


def old_pool_plan(plan: PoolPlan) -> PoolPlan:
    """Return the part of a replacement's plan for the old pool."""
    return replace(plan, action="delete", desired=None, changes=(), requests=(), replacement=None)


def _has_pods_to_leave(pool: Observed) -> bool:
    """Return whether a pool can still run pods: neither the remainder of a killed run, nor being deleted."""
    return bool(pool.fields) and pool.state != "deleting"


def empty_pool(leaving: PoolPlan, session: Session, run: Run, consent: DrainConsent, *, successor: str = "") -> Drained:
    """Turn off a pool's autoscaler, which would add nodes for the pods that leave, and drain its nodes.

    Raises:
        Conflict: It is protected, released, or has another owner by now.
        GpukubeError: See freeze_pool and drain_pool.
    """
    if leaving.observed is not None and _has_pods_to_leave(leaving.observed):
        _observe_ours(leaving, session, run)
        freeze_pool(leaving, session, run)
        return drain_pool(leaving, session, run, consent, successor=successor)
    return Drained()


def remove_emptied(leaving: PoolPlan, session: Session, run: Run, consent: DrainConsent) -> None:
    """Delete a drained pool after reading it again, as freezing has changed its version.

    Raises:
        Conflict: It has pods again, or is protected, released, or has another owner by now.
        GpukubeError: See remove_pool.
    """
    now = _observe_ours(leaving, session, run)
    if now is None:
        return
    if _has_pods_to_leave(now):
        require_drained(leaving, session, run, consent)
    remove_pool(replace(leaving, observed=now), session, run)


def _observe_ours(leaving: PoolPlan, session: Session, run: Run) -> Observed | None:
    """Read a pool that will be deleted; None if it is gone.

    A pool that stays after all is uncordoned: once it is released, `pool drain --undo` does not find it.

    Raises:
        Conflict: It is protected, released, or has another owner by now.
    """
    known, now = leaving.observed, observe(leaving, session)
    if now is None or known is None:
        return None
    if now.protected or (now.owner, now.pool) != (known.owner, known.pool):
        change = "is protected now" if now.protected else "has another owner now" if now.owner else "was released"
        undo_drain(leaving, session, run)
        raise Conflict(
            f"{now.name} {change}",
            where=leaving.where,
            fix="plan again and review the plan",
            code="moved",
        )
    return now


def _successor(plan: PoolPlan) -> Desired:
    assert plan.replacement is not None  # noqa: S101 - every replace has it
    assert plan.replacement.successor is not None  # noqa: S101 - only missing with an obstacle, which is rejected
    return plan.replacement.successor


def _restore_size(successor: Desired, session: Session, run: Run) -> None:
    """Set the new pool's declared bounds again if they were raised for the move."""
    live: Observed | None = session.cloud.pool(successor.target.name)
    if live is None or live.fields.get(LEAST) == successor.fields.get(LEAST):
        return
    now = plan_pool(session.provider, successor, (live,))
    if now.action == "update" and all(c.change.field[0] == "nodes" for c in now.changes):
        update_pool(now, session, run)
