"""Bodies of the read-only pool commands: differences and live pools. They import no code that changes anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from gpukube.cli import output as out
from gpukube.cli.bodies.plan_prices import days_of, plan_prices, warn_old_prices, with_price_limits
from gpukube.cli.stage import note_run, open_job
from gpukube.engine import looking
from gpukube.engine.documents.listing import list_document, pool_document
from gpukube.engine.documents.plan import plan_document
from gpukube.engine.plan.planning import Scope

if TYPE_CHECKING:
    from gpukube.cli.options import Choices
    from gpukube.engine.documents.parts import Document


def diff(choices: Choices) -> None:
    """Show the differences; exit with 0 for none, 2 for some."""
    with open_job(choices, "Diff") as job:
        plans = looking.plan(job.prepared, job.run, Scope(skip_cluster=choices.skip_cluster, check_chart=True))
        prices = plan_prices(choices, job, plans)
        if choices.live:
            from gpukube.cli.bodies.plan_capacity import with_alternatives  # only this option calls them

            plans = with_alternatives(choices, job, plans)
    document = plan_document(
        with_price_limits(plans, prices, job.run.clock.now()),
        job.prepared.warnings,
        kind="Diff",
        silenced=job.prepared.silenced,
        not_read=job.prepared.unused,
        prices=prices,
    )
    code = looking.diff_exit_code(plans, skip_cluster=choices.skip_cluster)
    note_run(document, job, code)
    out.show(document, choices.output, verbose=choices.verbose)
    warn_old_prices(choices, days_of(document))
    raise typer.Exit(code)


def list_pools(choices: Choices) -> None:
    """List live GPU pools."""
    with open_job(choices, "PoolList") as job:
        plans, usage = looking.survey(job.prepared, job.run, skip_cluster=choices.skip_cluster)
    document, code = list_document(plans, usage), looking.survey_exit_code(plans)
    note_run(document, job, code)
    out.show(document, choices.output, verbose=choices.verbose)
    raise typer.Exit(code)


def get_pool(choices: Choices) -> None:
    """Show one pool on every cluster that has it."""
    (name,) = choices.names
    with open_job(choices, "Pool") as job:
        plans, usage = looking.survey(job.prepared, job.run)
    document: Document = pool_document(plans, name, usage)
    out.show(document, choices.output, verbose=choices.verbose)
    raise typer.Exit(looking.survey_exit_code(plans))
