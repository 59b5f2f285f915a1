"""One live pool during a run: calls sent, operations followed, and every failure turned into a report.

In scope: what create, apply and delete do to a pool. Out of scope: which of it is done (create, apply).

All of it starts from a look at the cloud and is safe to repeat: after a refusal, a lost answer or a kill the next
look says how far things are.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from gpukube.core.marks import has_lost_marks
from gpukube.core.plan import adopting_changes, find_changes, plan_pool
from gpukube.core.values import Operation
from gpukube.engine.change.proving import summarise
from gpukube.engine.run.calls import answers_of
from gpukube.engine.run.clock import Stopped
from gpukube.engine.run.fanout import run_all
from gpukube.engine.run.report import PoolReport
from gpukube.errors import CloudError, Conflict, DrainTimeout, GpukubeError, Moved, WaitTimeout

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from concurrent.futures import Future

    from gpukube.core.fields import FieldPath
    from gpukube.core.values import Change, ClassifiedChange, ClusterRef, Desired, Nodes, Observed, PoolPlan, Request
    from gpukube.engine.plan.planning import ClusterPlan
    from gpukube.engine.run.context import Run
    from gpukube.engine.run.events import Phase
    from gpukube.engine.run.report import Outcome
    from gpukube.engine.run.sent import CallState
    from gpukube.engine.run.session import Session
    from gpukube.engine.run.wait import Wait

REPEATS = 5
"""Looks and calls beyond one per change that an update may take, when others change the pool at the same time."""


Proof = Callable[[], PoolReport]
"""The rest of a pool's work once its cloud has finished with it: calls of the cluster, and reads of the cloud."""
Work = Callable[["PoolPlan", "Session", "Run"], PoolReport | Proof]
"""What is done to one pool."""


def require_adoptable(plans: Sequence[ClusterPlan]) -> None:
    """Refuse, before anything is changed, to adopt pools that cannot be adopted now.

    Raises:
        Conflict: Holds one diagnostic per such pool.
    """
    found = [d for plan in plans for pool in plan.pools if pool.obstacle == "not-ready" for d in pool.diagnostics]
    if found:
        raise Conflict.of(found)


def attempt(plan: PoolPlan, session: Session, run: Run, work: Work) -> PoolReport | Proof:
    """Do one pool's work up to its proof; a failure becomes a report, and with fail-fast the end of what has not begun.

    A failure of the proof becomes one too.
    """
    key = plan.cluster.key
    if run.given_up:
        run.report("failed", "not attempted: another pool failed", key, plan.pool)
        message = "not attempted: another pool failed (--fail-fast)"
        return PoolReport(plan.pool, plan.name, "not-attempted", message, resume=run.resume)
    if run.clock.stopped:  # pools that queue: a call made now would not be waited for
        return _cut_short(plan, run)
    return _guarded(plan, run, partial(_run_step, plan, session, partial(work, plan, session, run)))


def _run_step(plan: PoolPlan, session: Session, step: Callable[[], PoolReport | Proof]) -> PoolReport | Proof:
    with answers_of(session.provider.spec.title, str(plan.where), f"{plan.action} of the pool"):
        return step()


def _guarded(plan: PoolPlan, run: Run, step: Callable[[], PoolReport | Proof]) -> PoolReport | Proof:
    key = plan.cluster.key
    try:
        report = step()
    except GpukubeError as error:
        run.note_failure()
        run.report("failed", str(error), key, plan.pool)
        cut = _cut_short(plan, run)
        is_cut = isinstance(error, WaitTimeout) and not isinstance(error, DrainTimeout)
        if is_cut and not (plan.action == "no-op" and cut.outcome == "not-attempted"):
            return replace(cut, error=error)
        resume = "" if plan.action == "conflict" else run.resume  # the same command would meet the same conflict
        return PoolReport(plan.pool, plan.name, "failed", _unfinished(plan), error=error, resume=resume)
    except Stopped:
        run.report("failed", "interrupted", key, plan.pool)
        return _cut_short(plan, run)
    if not isinstance(report, PoolReport):
        return partial(_proven, plan, run, report)
    text = f"{report.message}; {summarise(report.proof)}" if report.proof else str(report.error or report.message)
    run.report("failed" if report.outcome in ("differs", "failed") else "done", text, key, plan.pool)
    return report


def _proven(plan: PoolPlan, run: Run, proof: Proof) -> PoolReport:
    report = _guarded(plan, run, proof)
    assert isinstance(report, PoolReport)  # noqa: S101 - a proof is the last step
    return report


def attempt_all(
    pools: Iterable[PoolPlan], session: Session, run: Run, work: Work, *, at_once: int = 0
) -> tuple[PoolReport, ...]:
    """Do the work of pools of one cluster, as many at a time as its cloud changes unless told otherwise.

    Where that is one, the next one begins as soon as the cloud has finished with the one before, whose nodes may take
    minutes more until their GPUs are there. With fail-fast it waits for the proof: what that finds stops the rest.
    """
    together = at_once or session.provider.extras.pools_at_once
    tasks = {pool.name: partial(attempt, pool, session, run, work) for pool in pools}
    if together > 1 or run.fail_fast:
        reports = run_all({name: partial(_to_end, task) for name, task in tasks.items()}, together)
        return tuple(report for report in reports.values() if isinstance(report, PoolReport))
    with ThreadPoolExecutor(max_workers=max(run.parallelism, 1), thread_name_prefix="gpukube") as proofs:
        begun = [_with_proof(task, proofs) for task in tasks.values()]
        return tuple(report if isinstance(report, PoolReport) else report.result() for report in begun)


def _to_end(task: Callable[[], PoolReport | Proof]) -> PoolReport:
    report = task()
    return report if isinstance(report, PoolReport) else report()


def _with_proof(task: Callable[[], PoolReport | Proof], proofs: ThreadPoolExecutor) -> PoolReport | Future[PoolReport]:
    report = task()
    return report if isinstance(report, PoolReport) else proofs.submit(report)


def _unfinished(plan: PoolPlan) -> str:
    return {"no-op": "not verified", "conflict": "not changed", "adopt": "not adopted"}.get(
        plan.action, f"{plan.action} did not finish"
    )


def _cut_short(plan: PoolPlan, run: Run) -> PoolReport:
    """Report a pool whose work was stopped, or ran out of time, by what is known of its calls."""
    outcome: Outcome
    if standing := run.standing.get((plan.cluster.key, plan.name)):
        return PoolReport(plan.pool, plan.name, "started", standing, resume=run.resume)
    found = plan.replacement
    if found and (found.beside or run.sent.state(plan.cluster.key, found.name) != "none"):
        outcome = "unknown" if _call_state(plan, run) == "in-flight" else "started"
        message = f"stopped half-way: {found.name} takes the place of {plan.name}; the same command goes on"
        return PoolReport(plan.pool, plan.name, outcome, message, resume=run.resume)
    match _call_state(plan, run):
        case "in-flight":
            outcome = "unknown"
            message = f"{plan.action}: the run ended during a call; the next run finds out if it worked"
        case "taken" if plan.action == "replace":
            outcome = "started"  # maybe no more than a cordon: nothing need be under way in the cloud
            message = f"stopped half-way: {plan.name} is drained, deleted and created again; the same command goes on"
        case "taken":
            outcome, message = "started", f"{plan.action} is still running in the cloud; not watched any more"
        case _ if plan.observed is not None and plan.observed.state in ("busy", "deleting"):
            outcome = "started"
            message = f"the cloud is still working on it ({plan.observed.status}); not watched any more"
        case _ if plan.action == "no-op":
            outcome, message = "not-attempted", "nothing to change; not verified"
        case _:
            outcome, message = "not-attempted", "no request was sent"
    return PoolReport(plan.pool, plan.name, outcome, message, resume=run.resume)


def _call_state(plan: PoolPlan, run: Run) -> CallState:
    """Return what is known of the calls of a pool; those of the one that replaces it are among them."""
    names = [plan.name, *([plan.replacement.name] if plan.replacement else [])]
    states = {run.sent.state(plan.cluster.key, name) for name in names}
    return "in-flight" if "in-flight" in states else "taken" if "taken" in states else "none"


def started(plan: PoolPlan, run: Run, message: str) -> PoolReport:
    """Report a pool whose calls the cloud has taken and that is not waited for."""
    resume = run.follow or run.resume
    return PoolReport(plan.pool, plan.name, "started", f"{message}; not watched any more", plan.changes, resume=resume)


def observe(plan: PoolPlan, session: Session) -> Observed | None:
    """Look at the plan's pool: at the live one it was matched with, else at the name it is to have."""
    return session.cloud.pool(plan.name)


def make_pool(plan: PoolPlan, session: Session, run: Run) -> None:
    """Send the calls of a creation and wait until the cloud has finished with the pool.

    When a call is refused or its answer is lost, a look says whether the pool is there after all.

    Raises:
        GpukubeError: The cloud refuses it, or it ended badly.
        WaitTimeout: It is still under way.
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
            # The answer may be lost and the call have had its effect, or a killed run have sent it: look first.
            if not _is_there_now(plan, session):
                raise
            run.sent.confirm_effect(plan.cluster.key, plan.name)
            break
        if number + 1 < len(plan.requests) or not run.no_wait:
            wait.for_operation(session.cloud, operation)
    if not run.no_wait:
        settle(plan, session, run)


def settle(plan: PoolPlan, session: Session, run: Run) -> None:
    """Wait until the cloud has finished with the pool, whoever started it: this run or one that was killed.

    Sends what creation could not carry (PoolRequests.follow_up).
    """
    wait = _wait(plan, run, "wait")
    wait.for_operation(session.cloud, Operation(plan.name, "create"))
    desired = plan.desired
    if desired is None:
        return

    def next_step(_: bool) -> _Step | None:  # noqa: FBT001 - called by _converge alone
        observed = observe(plan, session)
        request = session.provider.requests.follow_up(desired, observed) if observed else None
        return _Step(request, request, "requesting what creation could not carry") if request else None

    _converge(plan, session, run, next_step, settled=False)


@dataclass(frozen=True, slots=True)
class _Step:
    """The next call of a change of a live pool.

    Attributes:
        left: What is still different. The same after a call that was accepted means that the call had no effect.
        request: The call.
        doing: For people, what it asks for.
        last: Whether nothing is left after it.
    """

    left: object
    request: Request
    doing: str
    last: bool = True


def _converge(  # noqa: PLR0913 - whose loop, and what differs between its callers
    plan: PoolPlan,
    session: Session,
    run: Run,
    next_step: Callable[[bool], _Step | None],
    most: int = REPEATS,
    *,
    settled: bool = True,
) -> None:
    """Change a live pool, call by call, looking at it before each.

    Clouds take one change at a time, others may change the pool between two of ours, and a run may die anywhere: so
    wait for what is under way, look, send the first call of what still differs, and begin again. What was done already
    by a run that was killed, or by somebody else, is not done again. After a lost answer a look tells whether the call
    had its effect.

    Args:
        plan: Of the pool.
        session: Its cluster.
        run: The run.
        next_step: Looks at the pool and gives the call that is next, None when nothing is left; it is told whether a
            call of ours was sent since the plan.
        most: Looks at the most, when others change the pool at the same time.
        settled: Whether to wait for what is under way before each look; otherwise `next_step` does.

    Raises:
        GpukubeError: The cloud refuses a call, it ended badly, or an accepted call had no effect.
        WaitTimeout: It is still under way.
        Stopped: The run was stopped.
    """
    wait = _wait(plan, run, "update")
    done: object = None
    begun = False
    for _ in range(most):
        if settled:
            wait.for_operation(session.cloud, Operation(plan.name, "update"))
        step = next_step(begun)
        if step is None:
            return
        if step.left == done:  # the cloud says done, and nothing has changed: not again, it may cost nodes each time
            break
        run.report("update", step.doing, plan.cluster.key, plan.pool)
        done = None
        try:
            operation = wait.send(session.cloud, step.request)
        except Moved:  # refused: whatever is different then was changed by others
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
        fix="gpukube pool plan diff shows what; run again, and if it stays, contact the cloud's support",
        code="no-effect",
    )


def update_pool(plan: PoolPlan, session: Session, run: Run) -> None:
    """Bring the planned changes about; a change that the plan did not know is noticed before anything is overwritten.

    Raises:
        Conflict: Somebody changed the pool since it was planned.
        GpukubeError, WaitTimeout, Stopped: As _converge.
    """
    planned = {c.change.field: c.change for c in plan.changes}

    def next_step(begun: bool) -> _Step | None:  # noqa: FBT001 - called by _converge alone
        now = _look_again(plan, session, planned, begun=begun)
        if not now.changes:
            return None
        fields = ", ".join(str(c.change.field) for c in now.changes)
        requested = "ownership labels" if plan.action == "adopt" else fields
        return _Step(now.changes, now.requests[0], f"requesting {requested}", last=len(now.requests) == 1)

    _converge(plan, session, run, next_step, len(planned) + REPEATS)


def remove_pool(plan: PoolPlan, session: Session, run: Run, *, until_gone: bool = True) -> None:
    """Delete the planned pool and, unless told otherwise, wait until it is gone; one that is going already is as good.

    Raises:
        Conflict: It changed since it was planned.
        GpukubeError: The cloud refuses it, or it ended badly.
    """
    if plan.observed is None:
        return
    wait = _wait(plan, run, "delete")
    run.report("delete", "requesting deletion", plan.cluster.key, plan.pool)
    operation = Operation(plan.name, "delete")
    if plan.observed.state != "deleting":
        try:
            operation = wait.send(session.cloud, session.provider.requests.delete(plan.cluster, plan.observed))
        except (Conflict, CloudError):  # the answer may be lost and the call have had its effect: look
            now = observe(plan, session)
            if now is not None and now.state != "deleting":
                raise
            run.sent.confirm_effect(plan.cluster.key, plan.name)
    if until_gone:
        wait.for_operation(session.cloud, operation)


def release_pool(plan: PoolPlan, session: Session, run: Run) -> Observed:
    """Take our marks off the planned pool; everything else of it stays as it is then.

    Returns:
        The pool as it was last looked at.

    Raises:
        Conflict: It has another owner meanwhile.
        CloudError: The pool is gone.
        GpukubeError, WaitTimeout, Stopped: As _converge.
    """
    owner = plan.observed.owner if plan.observed else ""
    seen: list[Observed] = []

    def next_step(_: bool) -> _Step | None:  # noqa: FBT001 - called by _converge alone
        observed = _there(plan, session, "there is nothing to release")
        seen.append(observed)
        if observed.owner not in ("", owner):
            raise Conflict(f'it belongs to "{observed.owner}" now', where=plan.where, code="moved")
        requests = session.provider.requests.release(plan.cluster, observed)
        if not requests:
            return None
        return _Step(requests, requests[0], "taking the ownership labels off", last=len(requests) == 1)

    _converge(plan, session, run, next_step)
    return seen[-1]


def scale_pool(plan: PoolPlan, nodes: Nodes, session: Session, run: Run) -> None:
    """Give the planned pool its size; everything else of it stays, also what changed since the plan.

    Raises:
        CloudError: The pool is gone.
        GpukubeError, WaitTimeout, Stopped: As _converge.
    """
    desired = {c.change.field: c.change.new for c in plan.changes}

    def next_step(_: bool) -> _Step | None:  # noqa: FBT001 - called by _converge alone
        observed = _there(plan, session, "gpukube pool create creates it")
        left = {field: observed.fields.get(field) for field, value in desired.items()}
        if left == desired:
            return None
        doing = f"requesting {', '.join(f'{field} {value}' for field, value in desired.items())}"
        return _Step(left, session.provider.requests.scale(plan.cluster, observed, nodes), doing)

    _converge(plan, session, run, next_step)


def freeze_pool(plan: PoolPlan, session: Session, run: Run) -> None:
    """Keep the autoscaler from changing the size of the planned pool, before it is emptied.

    Raises:
        GpukubeError, WaitTimeout, Stopped: As _converge.
    """
    _while_it_stands(plan, session, run, session.provider.requests.freeze, "turning its autoscaler off")


def copy_marks(plan: PoolPlan, session: Session, run: Run) -> None:
    """Write the copy of the planned pool's marks where it is missing, before a second pool gets the same marks.

    Raises:
        GpukubeError, WaitTimeout, Stopped: As _converge.
    """
    _while_it_stands(plan, session, run, session.provider.requests.copy, "writing its ownership tags")


def _while_it_stands(
    plan: PoolPlan,
    session: Session,
    run: Run,
    request_for: Callable[[ClusterRef, Observed], Request | None],
    doing: str,
) -> None:
    """Bring one thing about on a pool that is to go: no cloud changes one that failed or is being deleted."""

    def next_step(_: bool) -> _Step | None:  # noqa: FBT001 - called by _converge alone
        observed = observe(plan, session)
        if observed is not None and observed.state == "busy":
            _wait(plan, run, "update").for_operation(session.cloud, Operation(plan.name, "update"))
            observed = observe(plan, session)
        if observed is None or observed.state in ("failed", "deleting"):
            return None
        request = request_for(plan.cluster, observed)
        return _Step(doing, request, doing) if request else None

    _converge(plan, session, run, next_step, settled=False)


def _there(plan: PoolPlan, session: Session, fix: str) -> Observed:
    """Look at a pool that must be there."""
    observed = observe(plan, session)
    if observed is None:
        raise CloudError("the pool no longer exists", where=plan.where, fix=fix, code="pool-gone")
    return observed


def _require_desired(plan: PoolPlan) -> Desired:
    assert plan.desired is not None  # noqa: S101 - plans of pools that are made or changed have it
    return plan.desired


def _wait(plan: PoolPlan, run: Run, phase: Phase) -> Wait:
    wait = run.wait(run.resume, lambda message: run.report(phase, message, plan.cluster.key, plan.pool))
    return replace(wait, sending=partial(run.sent.sending, plan.cluster.key, plan.name))


def _is_there_now(plan: PoolPlan, session: Session) -> bool:
    """After a conflict or a lost answer: is the pool there, ours, and as wanted?

    Raises:
        Conflict: Somebody else has made one of its name meanwhile; the message says who.
    """
    observed = observe(plan, session)
    now = plan_pool(session.provider, _require_desired(plan), (observed,) if observed else ())
    if now.action == "conflict":
        raise Conflict.of(now.diagnostics, now.why)
    return now.action == "no-op"


def _look_again(plan: PoolPlan, session: Session, planned: Mapping[FieldPath, Change], *, begun: bool) -> PoolPlan:
    """Look at the pool, and plan what is left of its plan.

    Args:
        plan: As it was shown.
        session: The pool's cluster.
        planned: Its changes by field.
        begun: Whether calls of ours were sent since.

    Raises:
        Conflict: The pool is gone, not ours any more, or differs in a way that the plan did not know.
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
        return replace(now, changes=())  # it has our marks: what else differs is for a later run
    known: Mapping[FieldPath, Change] = planned
    if plan.observed and has_lost_marks(desired, plan.observed):
        # What can change only once the marks are back was known, and is not done by this plan.
        known = {change.field: change for change in find_changes(desired, plan.observed)} | dict(planned)
        now = _only(now, [c for c in now.changes if c.change.field in planned], "update", session)
    elif adopt and observed and has_lost_marks(desired, observed):
        # The copy of the marks is written, the labels are not.
        now = _only(now, adopting_changes(desired, now.changes), "adopt", session)
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


def _only(
    now: PoolPlan, changes: Sequence[ClassifiedChange], action: Literal["update", "adopt"], session: Session
) -> PoolPlan:
    """Narrow a plan to some of its changes, with the calls of these alone."""
    if now.desired is None or now.observed is None or now.action not in ("update", "replace"):
        return now
    requests = session.provider.requests.update(now.desired, now.observed, tuple(c.change for c in changes))
    return replace(now, action=action, changes=tuple(changes), requests=requests)


def _is_unexpected(change: Change, planned: Mapping[FieldPath, Change], *, begun: bool) -> bool:
    """Return whether the plan did not know this difference.

    Once begun, sizes pass through others on their way: clouds that count per zone change zones and size one after the
    other.
    """
    if change == planned.get(change.field):
        return False
    resized = begun and any(field[0] in ("zones", "nodes") for field in planned)
    return not (resized and change.field[0] == "nodes")
