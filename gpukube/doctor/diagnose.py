"""A doctor run: read and examine clusters in parallel; then, if requested, fix and examine them again.

In scope: the order of these steps. Out of scope: the reading (gather), the checks, the fixes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from gpukube.doctor.check import Examination, examine
from gpukube.doctor.checks.clouds import cloud_checks
from gpukube.doctor.checks.registry import CHECKS
from gpukube.doctor.fixing import apply_fixes
from gpukube.doctor.gather import gather
from gpukube.doctor.local_tools import look_at_tools
from gpukube.engine.plan.ownership import has_operator
from gpukube.engine.run.clock import Stopped
from gpukube.engine.run.fanout import run_all
from gpukube.engine.run.session import open_sessions
from gpukube.errors import ExitCode, GpukubeError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gpukube.core.faults import SafeFix
    from gpukube.doctor.local_tools import Tools
    from gpukube.engine.plan.prepare import Prepared
    from gpukube.engine.run.context import Run
    from gpukube.engine.run.session import Session

_MAX_EXAMINATIONS: Final = 5
"""Maximum number of times a fixed cluster is examined while its controllers reconcile."""


def diagnose(
    prepared: Prepared, run: Run, *, confirm: Callable[[Sequence[str]], None] | None = None
) -> tuple[Examination, ...]:
    """Examine live clusters for known problems, including those given by address only.

    Args:
        prepared: What is declared; without pools, checks that need a spec are skipped.
        run: Settings and clock of the run.
        confirm: Called with the fixes, one line each; raises to stop. None changes nothing.
    """
    with open_sessions(prepared.clusters.values(), run) as sessions:
        found = examine_clusters(prepared, sessions, run)
        return found if confirm is None else fix_clusters(found, prepared, sessions, run, confirm)


def examine_clusters(prepared: Prepared, sessions: Mapping[str, Session], run: Run) -> tuple[Examination, ...]:
    """Examine every cluster; changes nothing.

    Args:
        prepared: What the specs declare, or addresses only.
        sessions: One per cluster.
        run: Settings and clock of the run.
    """
    tools = look_at_tools(run.environ)
    tasks = {key: partial(_examine, session, prepared, run, tools) for key, session in sessions.items()}
    results = run_all(tasks, run.parallelism)
    return tuple(
        Examination(sessions[key].cluster, troubles=(result,), unreadable=result)
        if isinstance(result, GpukubeError)
        else result
        for key, result in results.items()
    )


def safe_fixes(examination: Examination, *, with_spec: bool) -> tuple[SafeFix, ...]:
    """Return the safe fixes for a cluster's findings, each once."""
    offered = (found.finding.safe_fix for found in examination.found)
    return tuple(dict.fromkeys(item for item in offered if item and (with_spec or not item.needs_spec)))


def fix_clusters(
    examinations: Sequence[Examination],
    prepared: Prepared,
    sessions: Mapping[str, Session],
    run: Run,
    confirm: Callable[[Sequence[str]], None],
) -> tuple[Examination, ...]:
    """Ask for confirmation, apply the safe fixes, and examine the fixed clusters again.

    Args:
        examinations: Result of examine_clusters.
        prepared: See examine_clusters.
        sessions: See examine_clusters.
        run: See examine_clusters.
        confirm: Called with the fixes, one line each; raises to stop.

    Returns:
        The new examinations; `fixed` lists what was done.
    """
    offered = {
        item.cluster.key: found
        for item in examinations
        if (found := safe_fixes(item, with_spec=bool(prepared.desired[item.cluster.key])))
    }
    if not offered:
        return tuple(examinations)
    confirm([f"{key}: {item}" for key, found in offered.items() for item in found])
    tasks = {key: partial(_fixed, sessions[key], prepared, run, found) for key, found in offered.items()}
    results = run_all(tasks, run.parallelism)
    after = [(item, results.get(item.cluster.key, item)) for item in examinations]
    return tuple(
        replace(before, fix_error=result) if isinstance(result, GpukubeError) else result for before, result in after
    )


def doctor_exit_code(examinations: Sequence[Examination]) -> ExitCode:
    """Return 0 if healthy, 1 for error findings; a cluster that cannot be examined or fixed ranks higher."""
    failures = {error.exit_code for item in examinations if (error := item.unreadable or item.fix_error)}
    if failures:
        return failures.pop() if len(failures) == 1 else ExitCode.ERROR
    return ExitCode.ERROR if any(item.has_errors for item in examinations) else ExitCode.DONE


def _examine(session: Session, prepared: Prepared, run: Run, tools: Tools) -> Examination:
    key = session.cluster.key
    run.report("check", "reading the cloud and the cluster", key)
    evidence = gather(session, prepared.desired[key], tools)
    # An operator installed for another spec serves these pools too, whatever their own spec needs.
    settled = prepared.settle(key, session.provider, operator_live=has_operator(evidence.seen))
    evidence = replace(evidence, desired=settled.desired)
    examination = examine(evidence, (*CHECKS, *cloud_checks(session.provider)))
    run.report("done", f"{examination.made} checks run", key)
    return examination


def _fixed(session: Session, prepared: Prepared, run: Run, fixes: Sequence[SafeFix]) -> Examination:
    """Apply the fixes, then examine until they take effect, at most _MAX_EXAMINATIONS times."""
    done = apply_fixes(fixes, session, prepared, run)
    tools = look_at_tools(run.environ)
    examination = _examine(session, prepared, run, tools)
    for _ in range(_MAX_EXAMINATIONS):
        if not set(fixes) & {found.finding.safe_fix for found in examination.found}:
            break
        try:
            run.clock.wait(run.pace.poll_s)
        except Stopped:
            break
        examination = _examine(session, prepared, run, tools)
    return replace(examination, fixed=done)
