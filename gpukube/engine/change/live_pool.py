"""One live pool during a run: sends calls, follows operations, and turns every failure into a report.

In scope: what create, apply, and delete do to a pool. Out of scope: deciding what to do (create, apply).

Everything starts from a read of the cloud and is safe to repeat: after a rejection, a lost response, or a kill the next
read shows the progress.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from gpukube.core.marks import has_lost_marks
from gpukube.core.plan import adopting_changes, find_changes, plan_pool
from gpukube.core.values import Nodes, Operation
from gpukube.engine.change.proving import summarise
from gpukube.engine.run.calls import reading_responses
from gpukube.engine.run.clock import Stopped
from gpukube.engine.run.fanout import run_all
from gpukube.engine.run.report import PoolReport
from gpukube.errors import CloudError, Conflict, DrainTimeout, GpukubeError, Moved, WaitTimeout

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from gpukube.core.fields import FieldPath
    from gpukube.core.values import Change, ClassifiedChange, ClusterRef, Desired, Observed, PoolPlan, Request
    from gpukube.engine.plan.planning import ClusterPlan
    from gpukube.engine.run.context import Run
    from gpukube.engine.run.events import Phase
    from gpukube.engine.run.report import Outcome
    from gpukube.engine.run.sent import CallState
    from gpukube.engine.run.session import Session
    from gpukube.engine.run.wait import Wait

REPEATS = 5
"""Reads and calls an update may make in addition to one per change, if others change the pool at the same time."""


Proof = Callable[[], PoolReport]
"""Verification of a pool after its cloud has finished: calls to the cluster, and reads of the cloud."""
Work = Callable[["PoolPlan", "Session", "Run"], PoolReport | Proof]
"""Work on one pool, up to its proof."""


def require_adoptable(plans: Sequence[ClusterPlan]) -> None:
    """Reject, before anything changes, the adoption of pools that cannot be adopted now.

    Raises:
        Conflict: One diagnostic per such pool.
    """
    found = [d for plan in plans for pool in plan.pools if pool.obstacle == "not-ready" for d in pool.diagnostics]
    if found:
        raise Conflict.of(found)


def attempt(plan: PoolPlan, session: Session, run: Run, work: Work) -> PoolReport | Proof:
    """Do one pool's work up to its proof; turn a failure, also of the proof, into a report.

    With --fail-fast, a failure ends the run for pools that have not started.
    """
    key = plan.cluster.key
    if run.given_up:
        run.report("failed", "not attempted: another pool failed", key, plan.pool)
        message = "not attempted: another pool failed (--fail-fast)"
        return PoolReport(plan.pool, plan.name, "not-attempted", message, resume=run.resume)
    if run.clock.stopped:  # for queued pools: nobody would wait for a call made now
        return _unfinished_report(plan, run)
    return _guarded(plan, run, partial(_run_step, plan, session, partial(work, plan, session, run)))


def _run_step(plan: PoolPlan, session: Session, step: Callable[[], PoolReport | Proof]) -> PoolReport | Proof:
    with reading_responses(session.provider.spec.title, str(plan.where), f"{plan.action} of the pool"):
        return step()


def _guarded(plan: PoolPlan, run: Run, step: Callable[[], PoolReport | Proof]) -> PoolReport | Proof:
    key = plan.cluster.key
    try:
        report = step()
    except GpukubeError as error:
        run.note_failure()
        run.report("failed", str(error), key, plan.pool)
        cut = _unfinished_report(plan, run)
        is_cut = isinstance(error, WaitTimeout) and not isinstance(error, DrainTimeout)
        if is_cut and not (plan.action == "no-op" and cut.outcome == "not-attempted"):
            return replace(cut, error=error)
        resume = "" if plan.action == "conflict" else run.resume  # repeating the command would end in the same conflict
        return PoolReport(plan.pool, plan.name, "failed", _failure_message(plan, error), error=error, resume=resume)
    except Stopped:
        run.report("failed", "interrupted", key, plan.pool)
        return _unfinished_report(plan, run)
    if not isinstance(report, PoolReport):
        return partial(_prove, plan, run, report)
    text = f"{report.message}; {summarise(report.proof)}" if report.proof else str(report.error or report.message)
    run.report("failed" if report.outcome in ("differs", "failed") else "done", text, key, plan.pool)
    return report


def _prove(plan: PoolPlan, run: Run, proof: Proof) -> PoolReport:
    report = _guarded(plan, run, proof)
    assert isinstance(report, PoolReport)  # noqa: S101 - a proof is the last step
    return report


def attempt_all(
    pools: Iterable[PoolPlan], session: Session, run: Run, work: Work, *, at_once: int = 0
) -> tuple[PoolReport, ...]:
    """Work on the pools of one cluster, by default as many at a time as its cloud changes.

    If that is one, the next pool starts as soon as the cloud has finished the previous one, whose GPUs may need minutes
    more. With --fail-fast it waits for the proof, as a failure there stops the rest.
    """
    together = at_once or session.provider.extras.pools_at_once
    tasks = {pool.name: partial(attempt, pool, session, run, work) for pool in pools}
    if together > 1 or run.fail_fast:
        reports = run_all({name: partial(_complete, task) for name, task in tasks.items()}, together)
        return tuple(report for report in reports.values() if isinstance(report, PoolReport))
    with ThreadPoolExecutor(max_workers=max(run.parallelism, 1), thread_name_prefix="gpukube") as proofs:
        begun = [_start_proof(task, proofs) for task in tasks.values()]
        return tuple(report if isinstance(report, PoolReport) else report.result() for report in begun)


def _complete(task: Callable[[], PoolReport | Proof]) -> PoolReport:
    report = task()
    return report if isinstance(report, PoolReport) else report()


def _start_proof(task: Callable[[], PoolReport | Proof], proofs: ThreadPoolExecutor) -> PoolReport | Future[PoolReport]:
    report = task()
    return report if isinstance(report, PoolReport) else proofs.submit(report)


def _failure_message(plan: PoolPlan, error: GpukubeError) -> str:
    if plan.family is not None and len(error.diagnostics) > 1:
        return str(error)  # the diagnostics are those of its pools, one each
    return {"no-op": "not verified", "conflict": "not changed", "adopt": "not adopted"}.get(
        plan.action, f"{plan.action} did not finish"
    )


def _unfinished_report(plan: PoolPlan, run: Run) -> PoolReport:
    """Report a pool whose work was stopped, or timed out, by what is known of its calls."""
    outcome: Outcome
    if standing := run.standing.get((plan.cluster.key, plan.name)):
        return PoolReport(plan.pool, plan.name, "started", standing, resume=run.resume)
    found = plan.replacement
    if found and (found.beside or run.sent.state(plan.cluster.key, found.name) != "none"):
        outcome = "unknown" if _call_state(plan, run) == "in-flight" else "started"
        message = f"stopped half-way: {found.name} replaces {plan.name}; run the same command to continue"
        return PoolReport(plan.pool, plan.name, outcome, message, resume=run.resume)
    match _call_state(plan, run):
        case "in-flight":
            outcome = "unknown"
            message = f"{plan.action}: the run ended during a call; the next run finds out whether it worked"
        case "taken" if plan.action == "replace":
            outcome = "started"  # perhaps only a cordon: the cloud need not be working on anything
            message = (
                f"stopped half-way: {plan.name} is drained, deleted, and created again; "
                "run the same command to continue"
            )
        case "taken":
            outcome, message = "started", f"{plan.action} is still running in the cloud; no longer watched"
        case _ if plan.observed is not None and plan.observed.state in ("busy", "deleting"):
            outcome = "started"
            message = f"the cloud is still working on it ({plan.observed.status}); no longer watched"
        case _ if plan.action == "no-op":
            outcome, message = "not-attempted", "nothing to change; not verified"
        case _:
            outcome, message = "not-attempted", "no request was sent"
    return PoolReport(plan.pool, plan.name, outcome, message, resume=run.resume)


def _call_state(plan: PoolPlan, run: Run) -> CallState:
    """Return what is known of the calls for a pool, including those for its replacement."""
    names = [plan.name, *([plan.replacement.name] if plan.replacement else [])]
    states = {run.sent.state(plan.cluster.key, name) for name in names}
    return "in-flight" if "in-flight" in states else "taken" if "taken" in states else "none"


def started(plan: PoolPlan, run: Run, message: str) -> PoolReport:
    """Report a pool whose calls the cloud has accepted, if the run does not wait for it."""
    resume = run.follow or run.resume
    return PoolReport(plan.pool, plan.name, "started", f"{message}; no longer watched", plan.changes, resume=resume)


def observe(plan: PoolPlan, session: Session) -> Observed | None:
    """Read the plan's pool: the live one it was matched with, else the one with its future name."""
    return session.cloud.pool(plan.name)


def create_pool(plan: PoolPlan, session: Session, run: Run) -> None:
    """Send the calls that create a pool and wait until the cloud has finished with it.

    After a rejection or a lost response, a read shows whether the pool exists after all.

    Raises:
        GpukubeError: The cloud rejects it, or it failed.
        WaitTimeout: It is still in progress.
        Stopped: The run was stopped.
    """
    desired = _require_desired(plan)
    wait = _wait(plan, run, "create")
    if plan.observed is not None and plan.observed.state == "deleting":
        wait.for_operation(session.cloud, Operation(plan.name, "delete"))
    run.report("create", f"requesting {desired.target.machine.name}", plan.cluster.key, plan.pool)
    for number, request in enumerate(plan.requests):
        try:
            operation = wait.send(session.cloud, request)
        except (Conflict, CloudError):
            # The call may have worked although its response was lost, or a killed run may have sent it: read first.
            if not _exists_as_desired(plan, session):
                raise
            run.sent.confirm_effect(plan.cluster.key, plan.name)
            break
        if number + 1 < len(plan.requests) or not run.no_wait:
            wait.for_operation(session.cloud, operation)
    if not run.no_wait:
        settle(plan, session, run)


def settle(plan: PoolPlan, session: Session, run: Run) -> None:
    """Wait until the cloud has finished with the pool, whether this run or a killed one started it.

    Sends what the create call could not include (PoolRequests.follow_up).
    """
    wait = _wait(plan, run, "wait")
    wait.for_operation(session.cloud, Operation(plan.name, "create"))
    desired = plan.desired
    if desired is None:
        return

    def next_step(_: bool) -> _Step | None:  # noqa: FBT001 - called only by _converge
        observed = observe(plan, session)
        request = session.provider.requests.follow_up(desired, observed) if observed else None
        return _Step(request, request, "requesting what the create call could not include") if request else None

    _converge(plan, session, run, next_step, settled=False)


@dataclass(frozen=True, slots=True)
class _Step:
    """The next call while changing a live pool.

    Attributes:
        left: What still differs. If it is unchanged after an accepted call, the call had no effect.
        request: The call.
        doing: Human-readable purpose of the call.
        last: Whether no call follows.
    """

    left: object
    request: Request
    doing: str
    last: bool = True


def _converge(  # noqa: PLR0913 - the pool, and what differs between the callers
    plan: PoolPlan,
    session: Session,
    run: Run,
    next_step: Callable[[bool], _Step | None],
    max_reads: int = REPEATS,
    *,
    settled: bool = True,
) -> None:
    """Change a live pool call by call, with a read before each.

    Clouds accept one change at a time, others may change the pool between two of gpukube's changes, and a run may die
    at any point. Therefore: wait for the current operation, read the pool, send the first call for what still differs,
    and repeat. Changes already made by a killed run or by somebody else are not repeated. After a lost response a read
    shows whether the call had its effect.

    Args:
        plan: Plan of the pool.
        session: Session of its cluster.
        run: The run.
        next_step: Reads the pool and returns the next call, None if nothing is left; its argument is whether this run
            has sent a call since the plan.
        max_reads: Maximum number of reads, if others change the pool at the same time.
        settled: Whether to wait for the current operation before each read; otherwise `next_step` does.

    Raises:
        GpukubeError: The cloud rejects a call, it failed, or an accepted call had no effect.
        WaitTimeout: An operation is still in progress.
        Stopped: The run was stopped.
    """
    wait = _wait(plan, run, "update")
    done: object = None
    begun = False
    for _ in range(max_reads):
        if settled:
            wait.for_operation(session.cloud, Operation(plan.name, "update"))
        step = next_step(begun)
        if step is None:
            return
        if step.left == done:  # done, but nothing changed: do not repeat, as each call may cost nodes
            break
        run.report("update", step.doing, plan.cluster.key, plan.pool)
        done = None
        try:
            operation = wait.send(session.cloud, step.request)
        except Moved:  # rejected: any difference now was made by others
            continue
        except CloudError:
            begun = True
            if settled:
                wait.for_operation(session.cloud, Operation(plan.name, "update"))
            now = next_step(begun)
            if now is not None and now.left == step.left:
                raise
            run.sent.confirm_effect(plan.cluster.key, plan.name)
            continue
        begun = True
        if run.no_wait and step.last:
            return
        wait.for_operation(session.cloud, operation)
        done = step.left
    fields = ", ".join(str(c.change.field) for c in plan.changes)
    raise CloudError(
        f"the cloud accepted every call, but the pool still differs{f' in {fields}' if fields else ''}",
        where=plan.where,
        fix="gpukube pool plan diff shows the difference; run again, and if it persists, contact the cloud's support",
        code="no-effect",
    )


def update_pool(plan: PoolPlan, session: Session, run: Run) -> None:
    """Make the planned changes; detect a change made since the plan before overwriting it.

    Raises:
        Conflict: Somebody changed the pool since it was planned.
        GpukubeError, WaitTimeout, Stopped: See _converge.
    """
    planned = {c.change.field: c.change for c in plan.changes}

    def next_step(begun: bool) -> _Step | None:  # noqa: FBT001 - called only by _converge
        now = _replan(plan, session, planned, begun=begun)
        if not now.changes:
            return None
        fields = ", ".join(str(c.change.field) for c in now.changes)
        requested = "ownership labels" if plan.action == "adopt" else fields
        return _Step(now.changes, now.requests[0], f"requesting {requested}", last=len(now.requests) == 1)

    _converge(plan, session, run, next_step, len(planned) + REPEATS)


def remove_pool(plan: PoolPlan, session: Session, run: Run, *, until_gone: bool = True) -> None:
    """Delete the planned pool and by default wait until it is gone; a pool already being deleted is not an error.

    Raises:
        Conflict: It changed since it was planned.
        GpukubeError: The cloud rejects it, or it failed.
    """
    if plan.observed is None:
        return
    wait = _wait(plan, run, "delete")
    run.report("delete", "requesting deletion", plan.cluster.key, plan.pool)
    operation = Operation(plan.name, "delete")
    if plan.observed.state != "deleting":
        try:
            operation = wait.send(session.cloud, session.provider.requests.delete(plan.cluster, plan.observed))
        except (Conflict, CloudError):  # the call may have worked although its response was lost: read
            now = observe(plan, session)
            if now is not None and now.state != "deleting":
                raise
            run.sent.confirm_effect(plan.cluster.key, plan.name)
    if until_gone:
        wait.for_operation(session.cloud, operation)


def keep_carried(leaving: PoolPlan, desired: Desired, session: Session, run: Run) -> None:
    """Write what a pool's replacement takes over where it survives a kill, before the pool is deleted.

    Args:
        leaving: Plan of the pool.
        desired: The pool as it is created again.
        session: Session of its cluster.
        run: The run.

    Raises:
        GpukubeError: The cloud rejects it; the pool is untouched.
        WaitTimeout, Stopped: The run ended.
    """
    request = session.provider.requests.keep(desired, leaving.observed) if leaving.observed else None
    if request is None:
        return
    wait = _wait(leaving, run, "replace")
    run.report("replace", "keeping what it takes over", leaving.cluster.key, leaving.pool)
    wait.for_operation(session.cloud, wait.send(session.cloud, request))


def release_pool(plan: PoolPlan, session: Session, run: Run) -> Observed:
    """Remove gpukube's labels from the planned pool and leave everything else as it is.

    Returns:
        The pool as last read.

    Raises:
        Conflict: It has another owner by now.
        CloudError: The pool is gone.
        GpukubeError, WaitTimeout, Stopped: See _converge.
    """
    owner = plan.observed.owner if plan.observed else ""
    seen: list[Observed] = []

    def next_step(_: bool) -> _Step | None:  # noqa: FBT001 - called only by _converge
        observed = _require_live(plan, session, "there is nothing to release")
        seen.append(observed)
        if observed.owner not in ("", owner):
            raise Conflict(f'it belongs to "{observed.owner}" now', where=plan.where, code="moved")
        requests = session.provider.requests.release(plan.cluster, observed)
        if not requests:
            return None
        return _Step(requests, requests[0], "removing the ownership labels", last=len(requests) == 1)

    _converge(plan, session, run, next_step)
    return seen[-1]


def scale_pool(plan: PoolPlan, nodes: Nodes, session: Session, run: Run) -> None:
    """Set the size of the planned pool and leave everything else as it is, including changes since the plan.

    Raises:
        CloudError: The pool is gone.
        GpukubeError, WaitTimeout, Stopped: See _converge.
    """
    desired = {c.change.field: c.change.new for c in plan.changes}

    def next_step(_: bool) -> _Step | None:  # noqa: FBT001 - called only by _converge
        observed = _require_live(plan, session, "gpukube pool create creates it")
        left = {field: observed.fields.get(field) for field, value in desired.items()}
        if left == desired:
            return None
        doing = f"requesting {', '.join(f'{field} {value}' for field, value in desired.items())}"
        return _Step(left, session.provider.requests.scale(plan.cluster, observed, nodes), doing)

    _converge(plan, session, run, next_step)


def freeze_pool(plan: PoolPlan, session: Session, run: Run) -> None:
    """Turn off the autoscaler of the planned pool before it is drained.

    Raises:
        GpukubeError, WaitTimeout, Stopped: See _converge.
    """
    _change_if_live(plan, session, run, session.provider.requests.freeze, "turning its autoscaler off")


def empty_pool_size(plan: PoolPlan, session: Session, run: Run) -> None:
    """Scale the planned pool to zero before it is deleted, so that no machine is launched meanwhile.

    Raises:
        GpukubeError, WaitTimeout, Stopped: See _converge.
    """
    nothing = Nodes(0, 0, 0, autoscaled=False)

    def request(cluster: ClusterRef, live: Observed) -> Request | None:
        return None if live.nodes == 0 else session.provider.requests.scale(cluster, live, nothing)

    _change_if_live(plan, session, run, request, "scaling it to zero")


def copy_marks(plan: PoolPlan, session: Session, run: Run) -> None:
    """Write the missing copy of the planned pool's ownership labels, before a second pool gets the same labels.

    Raises:
        GpukubeError, WaitTimeout, Stopped: See _converge.
    """
    _change_if_live(plan, session, run, session.provider.requests.copy, "writing its ownership tags")


def _change_if_live(
    plan: PoolPlan,
    session: Session,
    run: Run,
    request_for: Callable[[ClusterRef, Observed], Request | None],
    doing: str,
) -> None:
    """Make one change to a pool that will be deleted; no cloud changes one that failed or is being deleted."""

    def next_step(_: bool) -> _Step | None:  # noqa: FBT001 - called only by _converge
        observed = observe(plan, session)
        if observed is not None and observed.state == "busy":
            _wait(plan, run, "update").for_operation(session.cloud, Operation(plan.name, "update"))
            observed = observe(plan, session)
        if observed is None or observed.state in ("failed", "deleting"):
            return None
        request = request_for(plan.cluster, observed)
        return _Step(doing, request, doing) if request else None

    _converge(plan, session, run, next_step, settled=False)


def _require_live(plan: PoolPlan, session: Session, fix: str) -> Observed:
    """Read a pool that must exist."""
    observed = observe(plan, session)
    if observed is None:
        raise CloudError("the pool no longer exists", where=plan.where, fix=fix, code="pool-gone")
    return observed


def _require_desired(plan: PoolPlan) -> Desired:
    assert plan.desired is not None  # noqa: S101 - pools that are created or changed have it
    return plan.desired


def _wait(plan: PoolPlan, run: Run, phase: Phase) -> Wait:
    wait = run.wait(run.resume, lambda message: run.report(phase, message, plan.cluster.key, plan.pool))
    return replace(wait, sending=partial(_sending, plan, run))


@contextmanager
def _sending(plan: PoolPlan, run: Run) -> Iterator[None]:
    """Send a call in the body, if the run may still do so: it may have waited long for a busy cluster."""
    run.guard()
    with run.sent.sending(plan.cluster.key, plan.name):
        yield


def _exists_as_desired(plan: PoolPlan, session: Session) -> bool:
    """Return whether, after a conflict or a lost response, the pool exists with the right owner and fields.

    Raises:
        Conflict: Somebody else has created a pool of that name meanwhile; the message names the owner.
    """
    observed = observe(plan, session)
    now = plan_pool(session.provider, _require_desired(plan), (observed,) if observed else ())
    if now.action == "conflict":
        raise Conflict.of(now.diagnostics, now.why)
    return now.action == "no-op"


def _replan(plan: PoolPlan, session: Session, planned: Mapping[FieldPath, Change], *, begun: bool) -> PoolPlan:
    """Read the pool, and plan what is left of its plan.

    Args:
        plan: The plan that was shown.
        session: Session of the pool's cluster.
        planned: Its changes by field.
        begun: Whether this run has sent calls since.

    Raises:
        Conflict: The pool is gone, has another owner, or differs in a way that the plan did not contain.
    """
    observed, desired = observe(plan, session), _require_desired(plan)
    adopt = plan.action == "adopt"
    copy = plan.observed.copy if plan.observed else None
    owners = [copy.owner] if adopt and copy and copy.owner else []
    live = (observed,) if observed else ()
    now = plan_pool(session.provider, desired, live, adopt=adopt, adopt_from=owners, adopt_managed=adopt)
    if now.action == "no-op":
        return now
    if adopt and observed and (observed.owner, observed.pool) == (desired.target.owner, plan.pool):
        return replace(now, changes=())  # adopted: a later run handles other differences
    known: Mapping[FieldPath, Change] = planned
    if plan.observed and has_lost_marks(desired, plan.observed):
        # What can change only after the labels are restored was known, and this plan does not do it.
        known = {change.field: change for change in find_changes(desired, plan.observed)} | dict(planned)
        now = _narrowed(now, [c for c in now.changes if c.change.field in planned], "update", session)
    elif adopt and observed and has_lost_marks(desired, observed):
        # The copy of the labels is written, the labels are not yet.
        now = _narrowed(now, adopting_changes(desired, now.changes), "adopt", session)
    _require_expected(now, plan, [c.change for c in now.changes if _is_unexpected(c.change, known, begun=begun)])
    return now


def _require_expected(now: PoolPlan, plan: PoolPlan, unexpected: Sequence[Change]) -> None:
    if unexpected or now.action != plan.action:
        what = ", ".join(f"{c.field} is {c.old} now" for c in unexpected) or now.why
        raise Conflict(
            f"the pool was changed by somebody else: {what}",
            where=plan.where,
            fix="plan again and review the plan",
            code="moved",
        )


def _narrowed(
    now: PoolPlan, changes: Sequence[ClassifiedChange], action: Literal["update", "adopt"], session: Session
) -> PoolPlan:
    """Narrow a plan to these changes and their calls."""
    if now.desired is None or now.observed is None or now.action not in ("update", "replace"):
        return now
    requests = session.provider.requests.update(now.desired, now.observed, tuple(c.change for c in changes))
    return replace(now, action=action, changes=tuple(changes), requests=requests)


def _is_unexpected(change: Change, planned: Mapping[FieldPath, Change], *, begun: bool) -> bool:
    """Return whether the plan did not contain this difference.

    Once calls were sent, sizes may be intermediate: clouds that count nodes per zone change zones and size one after
    the other.
    """
    if change == planned.get(change.field):
        return False
    resized = begun and any(field[0] in ("zones", "nodes") for field in planned)
    return not (resized and change.field[0] == "nodes")
