"""`gpukube doctor`: find the known faults of live clusters, and heal those that are safe to heal."""

from __future__ import annotations

from typing import Annotated

import typer

from gpukube.cli.options import ADDRESSES, END, SPEC, Choices, takes

app = typer.Typer()


@app.command()
@takes(*SPEC, "clusters", "shard", "fix", "yes", "output", "chart", *END, clusters=ADDRESSES)
def doctor(
    choices: Choices,
    *,
    fix: Annotated[
        bool,
        typer.Option("--fix", help="Apply safe fixes: labels, restarts, gpukube's release. Asks first."),
    ] = False,
) -> None:
    """Examine live clusters, also ones that gpukube never touched: what is wrong, what follows, what to run.

    Changes nothing without --fix. Exit codes: 0 healthy (warnings do not count), 1 ill, 5 no access.
    """
    from gpukube.cli.bodies.doctor import visit

    visit(choices, fix=fix)
