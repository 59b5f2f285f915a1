"""One attempt to get the nodes of a family in one of its pools, and giving it up.

A pool is created without nodes where its cloud allows that, and then scaled: a stock-out leaves no failed pool, and the
attempt can be ended at any moment. An attempt that gets no machines is fenced, scaled to zero, deleted, and seen gone,
before the next one begins: clouds go on trying for minutes or forever, and late nodes would be paid for twice.

In scope: creating, judging, fencing one pool. Out of scope: which pool is tried, and the record of it (families).
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from gpukube.cluster.drain.cordon import pool_nodes
from gpukube.cluster.kube.views import node_view
from gpukube.core.fields import COUNT
from gpukube.core.plan import plan_pool, plan_removal
from gpukube.core.values import Change, ClassifiedChange
from gpukube.engine.change.live_pool import (
    create_pool,
    empty_pool_size,
    remove_pool,
    scale_pool,
    settle,
    update_pool,
)
from gpukube.engine.plan.families import emptied, live_size
from gpukube.errors import (
    AccessError,
    CloudError,
    Conflict,
    GpukubeError,
    NotOffered,
    QuotaError,
    RegionalQuota,
    ReservationFull,
    StockOut,
    WaitTimeout,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.core.values import Desired, Nodes, Observed, PoolPlan
    from gpukube.engine.change.family_record import OutcomeKind
    from gpukube.engine.run.context import Run
    from gpukube.engine.run.session import Session

MOVABLE: Final = (StockOut, ReservationFull, NotOffered, QuotaError)
"""Errors after which the next pool of a family is tried; any other ends the run, as its cause is not the place."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A pool of a family during a run.

    Attributes:
        plan: Its plan, from a read under the family's lock.
        session: Session of its cluster.
        run: The run, which sends nothing more once the lock of the family is lost.
    """

    plan: PoolPlan
    session: Session
    run: Run

    @property
    def desired(self) -> Desired:
        """The pool as declared."""
        assert self.plan.desired is not None  # noqa: S101 - pools of a family are declared
        return self.plan.desired

    @property
    def wanted(self) -> int:
        """Number of nodes that the family needs."""
        return self.desired.target.nodes.count

    def observe(self) -> Observed | None:
        """Read the live pool.

        Raises:
            Conflict: Somebody else's pool has its name.
        """
        live = self.session.cloud.pool(self.plan.name)
        target = self.desired.target
        if live is not None and (live.owner, live.pool) != (target.owner, target.pool):
            owner = f'belongs to "{live.owner}"' if live.owner else "has no gpukube.io/owner label"
            message = f'the pool "{live.name}" {owner} now'
            raise Conflict(message, where=self.plan.where, fix="plan again and review the plan", code="moved")
        return live

    def ready_nodes(self, live: Observed) -> int:
        """Count the ready nodes of the live pool in its cluster."""
        label = self.session.provider.extras.in_cluster.pool_label
        nodes = pool_nodes(self.session.kube(), live, label)
        return sum(node_view(node).ready for node in nodes)

    def report(self, message: str) -> None:
        """Emit an event about the pool."""
        self.run.report("create", message, self.plan.cluster.key, self.plan.pool)


def get_nodes(attempt: Attempt) -> None:
    """Create the pool if it is missing, and wait until all its nodes are ready.

    Raises:
        StockOut: The cloud has no machines, or none came in time.
        ReservationFull, NotOffered, QuotaError: See their classes.
        GpukubeError: Anything else; the pool stays as it is.
        WaitTimeout, Stopped: The run ended.
    """
    _require_free(attempt)
    starts_empty = attempt.session.provider.extras.starts_empty
    if starts_empty:
        _create(attempt, emptied(attempt.desired, attempt.session))
    with _patiently(attempt) as waiting:
        if not starts_empty:
            _create(waiting, _unprotected(waiting))
        _fill(waiting)


def fill_up(attempt: Attempt) -> None:
    """Wait until a live pool has all its nodes, without ever creating it again; raises as `get_nodes`."""
    with _patiently(attempt) as waiting:
        _fill(waiting)


def finish(attempt: Attempt) -> None:
    """Make the pool that got the nodes what the spec declares: only now it gets the mark against deletion."""
    live = attempt.observe()
    if live is None:
        return
    now = plan_pool(attempt.session.provider, attempt.desired, (live,))
    if now.action == "update" and not now.disruptive and not any(d.severity == "error" for d in now.diagnostics):
        update_pool(now, attempt.session, attempt.run)


def overdrawn(attempt: Attempt) -> list[str]:
    """Report a reservation with more machines than it holds; the cloud did not refuse them."""
    found = None
    with suppress(AccessError, CloudError):  # the nodes are there all the same
        found = attempt.session.cloud.reserved(attempt.desired)
    if found is None or found.used <= found.total:
        return []
    return [f"{found.used} machines use {found.id}, which holds {found.total}: the others are billed on demand"]


def fence(attempt: Attempt, *, nodes: int = 0) -> bool:
    """End an attempt: scale the pool to zero, delete it, and see it gone.

    Args:
        attempt: The attempt.
        nodes: Ready nodes when the attempt was judged; they are given back. More than that mean that machines come
            after all.

    Returns:
        False if the pool has got more nodes meanwhile, or is about to get them: nothing was deleted.

    Raises:
        GpukubeError: The cloud rejects a call.
        WaitTimeout, Stopped: The run ended.
    """
    live = attempt.observe()
    if live is None:
        return True
    if live.state != "deleting":
        if attempt.ready_nodes(live) > nodes:
            return False
        attempt.report("giving up this attempt: deleting the pool before the next one is tried")
        if attempt.session.provider.extras.starts_empty and _size(attempt, live):
            empty_pool_size(attempt.plan, attempt.session, attempt.run)
            live = attempt.observe()
            if live is None:
                return True
            if live.state == "ready" and _size(attempt, live):  # it had failed, and has recovered meanwhile
                return False
    removal = plan_removal(attempt.session.provider, attempt.plan.cluster, live)
    remove_pool(removal, attempt.session, attempt.run)
    return True


def kind_of(error: GpukubeError) -> OutcomeKind:
    """Return what an attempt ended with, for the record."""
    if isinstance(error, StockOut):
        return "timeout" if error.diagnostics[0].code == "capacity-wait" else "stock"
    if isinstance(error, ReservationFull):
        return "reservation"
    if isinstance(error, NotOffered):
        return "restriction"
    return "regional-quota" if isinstance(error, RegionalQuota) else "quota"


def patience_s(attempt: Attempt) -> float:
    """Return how long the cloud may take to get machines."""
    pace = attempt.run.pace
    return attempt.session.provider.extras.capacity_wait_s / pace.speed if pace.capacity_s is None else pace.capacity_s


@contextmanager
def _patiently(attempt: Attempt) -> Iterator[Attempt]:
    """Give the body less time than the run has; its end means that there are no machines in this place."""
    waiting = replace(attempt, run=attempt.run.limited(patience_s(attempt)))
    try:
        yield waiting
    except WaitTimeout as error:
        if waiting.run.end >= attempt.run.end:
            raise
        raise StockOut(
            f"the cloud got no {attempt.wanted} machines within {patience_s(attempt) / 60:.3g} minutes",
            where=attempt.plan.where,
            fix="wait longer with --capacity-wait, or try another place",
            code="capacity-wait",
        ) from error


def _fill(attempt: Attempt) -> None:
    live = attempt.observe()
    if live is not None and _size(attempt, live) != attempt.wanted:
        attempt.report(f"requesting {attempt.wanted} x {attempt.desired.target.machine.name}")
        _scale(attempt, attempt.desired.target.nodes)
    _judge(attempt)


def _require_free(attempt: Attempt) -> None:
    """Require that the pool's reservation, if it can be read, has the machines that the pool lacks.

    Azure does not refuse further machines, but starts them on demand; the others refuse them minutes later.

    Raises:
        ReservationFull: It has fewer.
    """
    live = attempt.observe()
    lacking = attempt.wanted - (_size(attempt, live) if live else 0)
    found = attempt.session.cloud.reserved(attempt.desired) if lacking > 0 else None
    if found is not None and found.free < lacking:
        seen = (
            f"{found.free} of {found.total} machines of {found.id} are free"
            if found.active
            else f"{found.id} is not active"
        )
        raise ReservationFull(
            f"{seen}, and the pool needs {lacking}",
            where=attempt.plan.where,
            fix="wait until machines of the reservation are free, or try another alternative",
            code="reservation",
        )


def _unprotected(attempt: Attempt) -> Desired:
    """Return the declared pool without the mark against deletion, which it gets once it has its nodes."""
    target = replace(attempt.desired.target, protect=False)
    return attempt.session.provider.desired(target, attempt.desired.ownership, attempt.desired.promise)


def _create(attempt: Attempt, desired: Desired) -> None:
    live = attempt.observe()
    complete = attempt.session.cloud.complete(desired)
    now = plan_pool(attempt.session.provider, complete, (live,) if live else ())
    if now.action == "conflict":
        raise Conflict.of(now.diagnostics, now.why) if now.diagnostics else Conflict(now.why, where=now.where)
    if now.action == "replace":  # an older spec's attempt, without nodes
        fence(attempt)
        now = plan_pool(attempt.session.provider, complete, ())
    if now.action == "create":
        create_pool(now, attempt.session, attempt.run)
    else:
        settle(now, attempt.session, attempt.run)


def _scale(attempt: Attempt, nodes: Nodes) -> None:
    live = attempt.observe()
    before = live.fields.get(COUNT) if live else None
    change = Change(COUNT, before, nodes.count)
    row = attempt.session.provider.update_row(change, (), live)
    scaled = replace(attempt.plan, action="update", observed=live, changes=(ClassifiedChange(change, row),))
    scale_pool(scaled, nodes, attempt.session, attempt.run)


def _judge(attempt: Attempt) -> None:
    """Wait until all nodes are ready, or the cloud fails to launch machines for long enough without a success."""
    wait = attempt.run.wait(attempt.run.resume, attempt.report)
    failing: tuple[object, float] | None = None
    while True:
        live = attempt.observe()
        if live is None:
            message = "the pool was deleted while it waited for its nodes"
            raise CloudError(message, where=attempt.plan.where, fix="run the same command again", code="pool-gone")
        ready = attempt.ready_nodes(live)
        if ready >= attempt.wanted:
            return
        launches = attempt.session.cloud.launches(live)
        is_newest = launches.failed_at is None or launches.failed_at >= (launches.launched_at or 0.0)
        failure = launches.failure if is_newest else None
        if failure is not None and not isinstance(failure, MOVABLE):
            raise failure
        progress = launches.launched_at, ready
        now = attempt.run.clock.now()
        if failure is None:
            failing = None
        elif failing is None or failing[0] != progress:
            failing = progress, now
        elif now - failing[1] >= attempt.run.pace.quiet_s:
            raise failure
        wait.pause(attempt.run.pace.poll_s, f"{ready} of {attempt.wanted} nodes are ready")


def _size(attempt: Attempt, live: Observed) -> int:
    declared = live.fields.get(COUNT)
    if live.nodes is not None or isinstance(declared, int):
        return live_size(live.nodes, declared, None)
    return attempt.ready_nodes(live)
