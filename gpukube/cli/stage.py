"""The setup that pool commands share: spec, cloud endpoints, progress, Ctrl-C, and confirmation prompts.

Out of scope: what a command does (bodies.pool).
"""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Final

import typer

from gpukube.catalog.learning import learn_refreshed
from gpukube.cli import output as out
from gpukube.cli.ending import Ending
from gpukube.cli.endpoints import emulated_secret, endpoints
from gpukube.cli.formats.events import logged
from gpukube.cli.progress import progress_on
from gpukube.cli.stderr import write_stderr
from gpukube.cluster.process.scratch import sweep
from gpukube.core.values import Settings
from gpukube.engine import offline
from gpukube.engine.plan.prepare import Filters, Prepared, prepare, prepare_addresses
from gpukube.engine.run.clock import Stopped
from gpukube.engine.run.context import QUICK, Pace, Run, chart_source
from gpukube.engine.run.events import Listener
from gpukube.errors import ExitCode, SpecError, Where
from gpukube.masking import shown_words
from gpukube.spec.address import is_address
from gpukube.spec.loading.load import LoadedSpec
from gpukube.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpukube.cli.live_rows import LiveRows
    from gpukube.cli.options import Choices
    from gpukube.cli.progress import PlainLines
    from gpukube.core.shards import Shard
    from gpukube.engine.documents.shapes.doctor import DoctorDocument
    from gpukube.engine.documents.shapes.listing import ListDocument
    from gpukube.engine.documents.shapes.map import MapDocument
    from gpukube.engine.documents.shapes.plan import PlanDocument
    from gpukube.engine.documents.shapes.report import ReportDocument
    from gpukube.engine.documents.shapes.usage import UsageDocument
    from gpukube.engine.saved import SavedPlan

    Shardable = PlanDocument | ListDocument | DoctorDocument | ReportDocument | MapDocument | UsageDocument

_ABOUT_THE_SPEC: Final = ("Plan", "Diff", "Create", "Apply")
"""Commands that apply or compare the spec; the others omit hints, which would repeat at every run."""


@dataclass(frozen=True, slots=True)
class Job:
    """A prepared spec and the run that processes it."""

    specs: tuple[LoadedSpec, ...]
    prepared: Prepared
    run: Run
    progress: LiveRows | PlainLines
    ending: Ending


@contextmanager
def open_job(choices: Choices, kind: str, saved: SavedPlan | None = None) -> Iterator[Job]:
    """Check everything that needs no call, then set up the sandbox, progress, and Ctrl-C handling.

    Args:
        choices: The command line.
        kind: Kind of the document that the command will show.
        saved: The plan to apply, instead of specs.

    Raises:
        SpecError: The specs or the command line are wrong.
    """
    out.require_format(choices.output, kind)
    specs, prepared = prepare_choices(choices, saved)
    shown = [found for found in prepared.warnings if kind in _ABOUT_THE_SPEC or found.severity != "hint"]
    out.warn(shown, silenced=len(prepared.silenced))
    with progress_on(sys.stderr) as listen, logged(choices.events, listen) as listener:
        run = _run(choices, prepared, listener, saved)
        ending = Ending(run.clock, run.resume)
        sweep()
        with ending.watched():
            try:
                yield Job(specs, prepared, run, listen, ending)
            except OSError:
                if ending.is_hangup:  # progress could not be written: the terminal is gone
                    raise typer.Exit(ending.exit_code) from None
                raise
            except Stopped:
                write_stderr(f"gpukube: interrupted before it changed anything; to run it again: {run.resume}")
                raise typer.Exit(ending.exit_code) from None


def prepare_choices(choices: Choices, saved: SavedPlan | None = None) -> tuple[tuple[LoadedSpec, ...], Prepared]:
    """Load what is declared: from the saved plan, from the files, or, without files, from the clusters' addresses."""
    if saved is None and not choices.files:
        addresses = [text for text in choices.clusters if is_address(text)]
        if not addresses or len(addresses) < len(choices.clusters):
            fix = "add -f pools.yaml"
            if choices.by_address:
                fix += ", or the cluster's address: --cluster eks:ACCOUNT/REGION/NAME, aks:... or gke:... (see --help)"
            raise SpecError("no spec given", where=Where("--file"), fix=fix, code="no-file")
        if "shard" in choices.given:
            raise SpecError(
                "--shard needs a spec",
                where=Where("--shard"),
                fix="add -f pools.yaml, or remove --shard",
                why="shards are parts of the clusters in a spec",
                code="shard-spec",
            )
        return (), prepare_addresses(addresses, choices.owners)
    if choices.owners:
        fix = "remove --owner: the spec's metadata.name is the owner"
        raise SpecError(
            "--owner cannot be combined with a spec", where=Where("--owner"), fix=fix, code="owner-and-spec"
        )
    learn_refreshed(os.environ, sandbox=choices.sandbox)
    specs = saved.specs if saved is not None else offline.load(choices.files, sets=choices.sets)
    filters = Filters(tuple(choices.clusters), tuple(choices.pools), _shard(choices))
    return specs, prepare(specs, filters, strict=choices.strict)


def _shard(choices: Choices) -> Shard | None:
    # An empty value, from an unset variable, must not count as no --shard: that would select every cluster.
    if not choices.shard and "shard" not in choices.given:
        return None
    from gpukube.core.shards import parse_shard  # only this option needs it

    return parse_shard(choices.shard)


def note_run(document: Shardable, job: Job, code: ExitCode) -> None:
    """Record in a document what the run covered, and with --shard which part of a fleet."""
    filters = job.prepared.filters
    document["scope"] = {
        "owners": list(dict.fromkeys(loaded.spec.metadata.name for loaded in job.specs)),
        "filters": [f"--cluster={glob}" for glob in filters.clusters] + [f"--pool={glob}" for glob in filters.pools],
    }
    if filters.shard is None:
        return
    from gpukube.engine.documents.shards import shard_part  # only this option needs it

    document["shard"] = shard_part(job.prepared, job.specs, int(code))


def _run(choices: Choices, prepared: Prepared, listen: Listener, saved: SavedPlan | None) -> Run:
    settings, chart, environ, pace = (
        Settings(endpoints=endpoints(), secret=emulated_secret()),
        choices.chart,
        dict(os.environ),
        Pace(),
    )
    if choices.sandbox:
        from gpukube.cli import sandbox

        shelter = sandbox.enter()
        shelter.register(prepared)
        settings, environ, pace = shelter.settings, shelter.environment(), QUICK
        chart = chart or shelter.chart
    return Run(
        settings=settings,
        chart=chart_source(chart),
        environ=environ,
        resume=rest_of(saved, choices) if saved else choices.command,
        follow=_following(choices),
        spec_options=_spec_options(choices),
        pace=replace(pace.with_timeout(_minutes(choices) * 60), capacity_s=choices.capacity_wait * 60 or None),
        parallelism=choices.parallelism,
        no_wait=choices.no_wait,
        fail_fast=choices.fail_fast,
        listen=listen,
    )


def _minutes(choices: Choices) -> float:
    """Return the command's timeout; the default excludes the time that pods may take to leave."""
    drains = bool(choices.replace) and "timeout" not in choices.given
    return choices.timeout + (choices.drain_timeout if drains else 0)


def rest_of(saved: SavedPlan, choices: Choices) -> str:
    """Return the command that does the rest of a saved plan that was interrupted.

    The plan itself is stale by then, since part of it is done, so the command plans the same specs and options again.
    If a spec came from stdin or was changed by --set, whose values a plan does not record separately, only the plan can
    be named: applying it again reports what has changed.
    """
    from gpukube.engine.saved import PlanOptions

    names = [record.names for record in saved.record.specs]
    if any(file == "-" or sets for file, *sets in names):
        return choices.command
    files = dict.fromkeys(file for file, *_ in names)
    words = ["gpukube", *(["--sandbox"] if choices.sandbox else []), "pool", "apply"]
    for option, values in (
        *(("-f", files), ("--cluster", choices.clusters), ("--pool", choices.pools), _shard_words(choices)),
        *(("--adopt-from", choices.adopt_from), ("--replace", [choices.replace] if choices.replace else [])),
        ("--chart", shown_words([choices.chart] if choices.chart else [])),
        ("--drain-timeout", [f"{choices.drain_timeout:g}"] if "drain_timeout" in choices.given else []),
    ):
        words += [word for value in values for word in (option, value)]
    flags = [field.name for field in fields(PlanOptions)] + ["yes"]
    words += [f"--{name.replace('_', '-')}" for name in flags if getattr(choices, name) is True]
    return shlex.join(words)


def _spec_options(choices: Choices) -> str:
    """Return the options that name the spec, or the cluster and the owner."""
    named = (
        ("-f", choices.files),
        ("--set", choices.sets),
        ("--cluster", choices.clusters),
        ("--owner", choices.owners),
    )
    words = [word for option, values in named for value in values for word in (option, value)]
    return shlex.join([*words, *(["--sandbox"] if choices.sandbox else [])])


def _following(choices: Choices) -> str:
    """Return the command that waits for the operations that this one starts without waiting.

    `pool wait -f` cannot find a size that differs from the spec or a pool that is gone, so scale, delete and prune are
    resumed by the same command, and so is a saved plan.
    """
    if choices.names or choices.prune or not choices.files:
        return shlex.join(word for word in shlex.split(choices.command) if word != "--no-wait")
    words = ["gpukube", *(["--sandbox"] if choices.sandbox else []), "pool", "wait"]
    for option, values in (
        *(("-f", choices.files), ("--set", choices.sets), ("--cluster", choices.clusters)),
        *(("--pool", choices.pools), _shard_words(choices)),
    ):
        words += [word for value in values for word in (option, value)]
    return shlex.join(words)


def _shard_words(choices: Choices) -> tuple[str, Sequence[str]]:
    return "--shard", [choices.shard] if choices.shard else []


def confirm(choices: Choices, job: Job, what: str, objects: Sequence[str]) -> None:
    """Ask for confirmation before a destructive change.

    Raises:
        SpecError: There is no terminal, and --yes was not given.
        typer.Exit: The answer is no.
        typer.Abort: There is no answer: Ctrl-C, or the terminal is gone.
    """
    if choices.yes or not objects:
        return
    question = visible(f"{what} {', '.join(objects)}")
    if not sys.stdin.isatty():
        raise SpecError(
            f"cannot {question} without confirmation: there is no terminal",
            where=Where("--yes"),
            fix="add --yes",
            code="confirmation",
        )
    with job.progress.paused(), job.ending.at_question():
        agreed = typer.confirm(f"{question}?", err=True)
    if not agreed:
        write_stderr("nothing was changed")
        raise typer.Exit(ExitCode.ERROR)
