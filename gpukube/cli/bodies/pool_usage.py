"""Body of `gpukube pool usage`: read, price, count, show."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import typer

from gpukube.catalog.prices import known_prices
from gpukube.cli import output as out
from gpukube.cli.stage import note_run, open_job
from gpukube.usage.counting import usage_document
from gpukube.usage.pricing import sides, with_prices
from gpukube.usage.reading import read_world, world_exit_code

if TYPE_CHECKING:
    from gpukube.cli.options import Choices
    from gpukube.cli.stage import Job
    from gpukube.core.prices import PriceBook
    from gpukube.usage.world import World


def show_usage(choices: Choices) -> None:
    """Show what is held, free, and waited for, and what it costs."""
    with open_job(choices, "Usage") as job:
        world, plans = read_world(job.prepared, job.run)
        document = usage_document(with_prices(world, _prices(choices, job, world)))
    code = world_exit_code(plans)
    note_run(document, job, code)
    out.show(document, choices.output, verbose=choices.verbose)
    raise typer.Exit(code)


def _prices(choices: Choices, job: Job, world: World) -> PriceBook:
    known = known_prices(os.environ, sandbox=choices.sandbox)
    if not choices.live_prices:
        return known
    from gpukube.catalog.live_prices import PoolToPrice, read_prices  # only this option needs it

    return read_prices(known, [PoolToPrice(*side) for side in sides(world)], job.run.settings, job.run.clock)
