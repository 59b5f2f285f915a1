"""`gpukube capacity ...`: signatures and help. The behavior is in bodies/capacity.py."""

from __future__ import annotations

import typer

from gpukube.cli.capacity_options import Query
from gpukube.cli.options import ADDRESSES, SPEC, Choices, takes

app = typer.Typer(help="Find where GPU machines are available, and how to buy them.", no_args_is_help=True)


@app.command()
@takes(*SPEC, "clusters", "output", "sandbox", "verbose", clusters=ADDRESSES)
def find(choices: Choices, query: Query) -> None:
    """Show ways to get GPU machines, the best first: reservations, blocks, Spot, flex-start, on demand.

    Shows what the clouds report about stock, in classes, beside their own words; none of it is a promise. Buys nothing.
    Exit codes: 0 shown, also if a cloud could not be read; 4 no cloud has such a machine.
    """
    from gpukube.cli.bodies.capacity import find_capacity

    find_capacity(choices, query)
