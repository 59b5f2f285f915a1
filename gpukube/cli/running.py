"""What the pool commands do: build the run, call the API, show the result, choose the exit code."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from gpukube import api
from gpukube.cli import output as out
from gpukube.cli.progress import progress_on
from gpukube.errors import ExitCode, SpecError, Where

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import FrameType

    from gpukube.cli.options import Choices
    from gpukube.cli.progress import LiveRows, PlainLines
    from gpukube.engine.documents import Document
    from gpukube.engine.report import ClusterReport

__all__ = ["create", "delete", "diff", "get_pool", "list_pools", "plan", "verify"]


@dataclass(frozen=True, slots=True)
class Job:
    """A prepared spec and the circumstances to work on it."""

    prepared: api.Prepared
    run: api.Run
    progress: LiveRows | PlainLines


def plan(choices: Choices) -> None:
    """Show the plan."""
    with _job(choices) as job:
        plans = api.plan(job.prepared, job.run, skip_cluster=choices.skip_cluster)
    document = api.plan_document(plans, job.prepared.warnings)
    out.show(document, choices.output, verbose=choices.verbose)
    raise typer.Exit(api.plan_exit_code(plans))


def diff(choices: Choices) -> None:
    """Show the differences; 0 none, 2 some."""
    with _job(choices) as job:
        plans = api.plan(job.prepared, job.run, skip_cluster=choices.skip_cluster)
    out.show(api.plan_document(plans, job.prepared.warnings, kind="Diff"), choices.output, verbose=choices.verbose)
    raise typer.Exit(api.diff_exit_code(plans, skip_cluster=choices.skip_cluster))


def create(choices: Choices) -> None:
    """Create what is missing and prove it."""
    _report(choices, "Create", lambda job: api.create(job.prepared, job.run))


def verify(choices: Choices) -> None:
    """Prove what is there."""
    _report(choices, "Verify", lambda job: api.verify(job.prepared, job.run))


def delete(choices: Choices) -> None:
    """Delete pools of ours, after asking."""
    with _job(choices) as job:
        doomed = api.plan_deletion(job.prepared, job.run, choices.names)
        with job.progress.paused(), _interrupts_as_usual():
            _confirm(choices, [f"{cluster}/{pool.name} ({pool.instance_type})" for cluster, pool in doomed.pools()])
        reports = api.delete(doomed, job.run)
    _finish(choices, "Delete", reports, job.run)


def list_pools(choices: Choices) -> None:
    """List live GPU pools."""
    with _job(choices) as job:
        plans = api.plan(job.prepared, job.run, skip_cluster=choices.skip_cluster)
    out.show(api.list_document(plans), choices.output, verbose=choices.verbose)
    raise typer.Exit(api.plan_exit_code(plans))


def get_pool(choices: Choices) -> None:
    """Show one pool wherever it lives."""
    (name,) = choices.names
    with _job(choices) as job:
        plans = api.plan(job.prepared, job.run)
    document: Document = api.pool_document(plans, name)
    out.show(document, choices.output, verbose=choices.verbose)
    raise typer.Exit(api.plan_exit_code(plans))


def _report(choices: Choices, kind: str, work: Callable[[Job], Sequence[ClusterReport]]) -> None:
    with _job(choices) as job:
        reports = work(job)
    _finish(choices, kind, reports, job.run)


def _finish(choices: Choices, kind: str, reports: Sequence[ClusterReport], run: api.Run) -> None:
    out.show(api.report_document(reports, kind=kind), choices.output, verbose=choices.verbose)
    if run.clock.stopped:
        sys.stderr.write(f"stopped waiting; the cloud keeps working. To resume: {run.resume}\n")
        raise typer.Exit(ExitCode.INTERRUPTED)
    raise typer.Exit(api.exit_code(reports))


@contextmanager
def _job(choices: Choices) -> Iterator[Job]:
    """Check everything that needs no call, then set the stage: sandbox, progress, Ctrl-C."""
    out.require_format(choices.output)
    if not choices.files:
        raise SpecError("no spec is given", where=Where("--file"), fix="add -f pools.yaml", code="no-file")
    specs = api.load(choices.files, sets=choices.sets)
    prepared = api.prepare(specs, api.Filters(tuple(choices.clusters), tuple(choices.pools)))
    out.warn(prepared.warnings)
    with progress_on(out.stderr_console()) as listen:
        run = _run(choices, prepared, listen)
        with _first_interrupt_stops(run.clock, run.resume):
            yield Job(prepared, run, listen)


def _run(choices: Choices, prepared: api.Prepared, listen: api.Listener) -> api.Run:
    settings, chart, environ, pace = api.Settings(endpoints=_endpoints()), choices.chart, dict(os.environ), api.Pace()
    if choices.sandbox:
        from gpukube.cli import sandbox

        shelter = sandbox.enter()
        shelter.register(prepared.clusters.values())
        settings, environ, pace = shelter.settings, shelter.environment(), api.QUICK
        chart = chart or shelter.chart
    return api.Run(
        settings=settings,
        chart=api.chart_source(chart),
        environ=environ,
        resume=choices.command,
        pace=pace.with_timeout(choices.timeout * 60),
        parallelism=choices.parallelism,
        listen=listen,
    )


def _endpoints() -> dict[str, str]:
    """Read GPUKUBE_<PROVIDER>_ENDPOINT: private endpoints, or an emulator."""
    prefix, suffix = "GPUKUBE_", "_ENDPOINT"
    return {
        name.removeprefix(prefix).removesuffix(suffix).lower(): value
        for name, value in os.environ.items()
        if name.startswith(prefix) and name.endswith(suffix) and value
    }


@contextmanager
def _first_interrupt_stops(clock: api.Clock, resume: str) -> Iterator[None]:
    """Let the first Ctrl-C end the waits, so that the report is still written; the second ends the process.

    The second leaves at once: threads that hang in a call would keep the interpreter from ending. Nothing is lost,
    because the cloud holds all state.
    """

    def stop(_signal: int, _frame: FrameType | None) -> None:
        if clock.stopped:
            sys.stderr.write(f"\ngpukube: interrupted; the cloud keeps working. To resume: {resume}\n")
            sys.stderr.flush()
            os._exit(ExitCode.INTERRUPTED)
        clock.stop()

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _interrupts_as_usual() -> Iterator[None]:
    """Let Ctrl-C end the process at once: at a question there is nothing to wait for, and no answer means no."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _confirm(choices: Choices, doomed: Sequence[str]) -> None:
    """Ask before destroying.

    Raises:
        SpecError: There is nobody to ask and --yes was not given.
    """
    if choices.yes or not doomed:
        return
    what = ", ".join(doomed)
    if not sys.stdin.isatty():
        raise SpecError(
            f"deleting {what} needs a confirmation, and there is no terminal to ask on",
            where=Where("--yes"),
            fix="add --yes",
            code="confirmation",
        )
    typer.confirm(f"delete {what}?", abort=True, err=True)
