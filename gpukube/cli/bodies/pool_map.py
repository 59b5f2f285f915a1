"""Body of `gpukube pool map`: read, draw, and with --watch again."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, cast

import typer

from gpukube.catalog.prices import known_prices
from gpukube.cli import output as out
from gpukube.cli.stage import note_run, open_job
from gpukube.engine.run.clock import Stopped
from gpukube.errors import ExitCode, SpecError, Where
from gpukube.usage.documents import map_document
from gpukube.usage.pricing import with_prices
from gpukube.usage.reading import read_world, world_exit_code

if TYPE_CHECKING:
    from gpukube.cli.options import Choices
    from gpukube.cli.stage import Job
    from gpukube.engine.documents.shapes.map import MapDocument


@dataclass(frozen=True, slots=True)
class Drawing:
    """How to draw.

    Attributes:
        by: What the picture is ordered by.
        interval: Seconds between readings; None to read once.
        free: Only nodes with free devices.
    """

    by: str
    interval: float | None = None
    free: bool = False


def draw(choices: Choices, drawing: Drawing) -> None:
    """Draw the map.

    Raises:
        SpecError: The command line or the spec is wrong.
    """
    if drawing.by not in ("pool", "namespace"):
        message = f'"{drawing.by}" is no order of the map'
        raise SpecError(message, where=Where("--by"), fix="write --by pool or --by namespace", code="map-option")
    if drawing.free and drawing.by == "namespace":
        fix = "remove --by namespace: free devices are in no namespace"
        message = "--free and --by namespace cannot be combined"
        raise SpecError(message, where=Where("--free"), fix=fix, code="map-option")
    if drawing.interval is not None and not (sys.stdout.isatty() and choices.output == "table"):
        fix = "run it without --watch, or on a terminal without -o"
        raise SpecError("--watch draws on a terminal only", where=Where("--watch"), fix=fix, code="map-option")
    if drawing.interval is not None:
        choices = replace(choices, timeout=0.0)  # it ends when the user ends it
    with open_job(choices, "Map") as job:
        document, code = _read(choices, job, drawing)
        if drawing.interval is not None:
            _watch(choices, job, drawing, document)
            ended = job.ending.exit_code  # Ctrl-C is the way to end it
            raise typer.Exit(ExitCode.DONE if ended is ExitCode.INTERRUPTED else ended)
    out.show(document, choices.output, verbose=choices.verbose)
    raise typer.Exit(code)


def _read(choices: Choices, job: Job, drawing: Drawing) -> tuple[MapDocument, ExitCode]:
    world, plans = read_world(job.prepared, job.run)
    by = cast('Literal["pool", "namespace"]', drawing.by)
    priced = with_prices(world, known_prices(os.environ, sandbox=choices.sandbox))
    document, code = map_document(priced, by=by, free=drawing.free), world_exit_code(plans)
    note_run(document, job, code)
    return document, code


def _watch(choices: Choices, job: Job, drawing: Drawing, document: MapDocument) -> None:
    """Draw again until the run is stopped. A reading starts only after the one before, and the interval."""
    from gpukube.cli.watching import Screen  # rich's live display, only for --watch

    with job.progress.paused():
        stream = sys.stdout  # now the terminal itself: the rows of progress stand in for it
        with Screen(stream) as screen:
            try:
                while True:
                    screen.draw(out.drawn(document, stream, verbose=choices.verbose))
                    job.run.clock.wait(drawing.interval or 0.0)
                    document, _ = _read(choices, job, drawing)
            except Stopped:
                return
