"""`gpukube catalog ...`: signatures and help. The behavior is in bodies/catalog.py."""

from __future__ import annotations

from typing import Annotated

import typer

from gpukube.cli.catalog_options import (
    Search,
    TypeFilters,
    complete_model,
    project_option,
    provider_option,
    region_option,
    subscription_option,
)
from gpukube.cli.options import Choices, option, takes

app = typer.Typer(help="Browse GPU instance types of the three clouds and their prices.", no_args_is_help=True)


def _types(incomplete: str) -> list[str]:
    """Complete names of instance types; the table is read only at Tab."""
    from gpukube.gpu.machines import machines

    return sorted({m.name for m in machines() if m.name.startswith(incomplete) and "*" not in m.name})


@app.command("list")
@takes("output", "sandbox", "verbose")
def list_types(choices: Choices, requested: TypeFilters) -> None:
    """List GPU instance types, embedded and refreshed. Makes no cloud calls.

    Prices are on-demand US dollars per node and hour, with region and date. They are not quotes.
    """
    from gpukube.cli.bodies.catalog import show_list

    show_list(choices, requested)


@app.command()
@takes("output", "sandbox", "verbose")
def find(choices: Choices, search: Search) -> None:
    """Find an instance type per cloud for a GPU model and count. With --slice-memory: for the smallest device.

    Exit codes: 0 found, 4 no cloud has it; the closest match is shown.
    """
    from gpukube.cli.bodies.catalog import find_machines

    find_machines(choices, search)


@app.command()
@takes("output", "sandbox", "verbose")
def show(
    choices: Choices,
    name: Annotated[
        str,
        typer.Argument(
            metavar="TYPE", show_default=False, autocompletion=_types, help="Instance type, as the cloud names it."
        ),
    ],
    *,
    region: str = region_option(),
) -> None:
    """Show one instance type. Lists MIG profiles, resource names, drivers, prices. -v adds sources."""
    from gpukube.cli.bodies.catalog import show_type

    show_type(choices, name, region)


@app.command()
@takes("output", "verbose")
def mig(
    choices: Choices,
    model: Annotated[
        str,
        typer.Argument(metavar="GPU", show_default=False, autocompletion=complete_model, help="GPU model: A100-40GB."),
    ],
    *,
    requested: tuple[str, ...] = option(
        "--want", default=(), metavar="PROFILE=N",
        help="Show the fewest GPUs for these instances, and each GPU's layout; may be repeated.",
    ),
    alike: Annotated[
        bool, typer.Option("--alike", help="With --want: use one layout for all GPUs, as in a pool.")
    ] = False,
    live: tuple[str, ...] = option(
        "--live", default=(), metavar="PROFILE@START",
        help="Show what still fits on a GPU with this instance; may be repeated.",
    ),
) -> None:  # fmt: skip
    """Show the MIG profiles of a GPU. Adds names on other GPUs, full mixes, and results for --want and --live.

    Exit codes: 0 shown, 4 not possible.
    """
    from gpukube.cli.bodies.catalog_mig import show_geometry

    show_geometry(choices, model, requested, live, alike=alike)


@app.command()
@takes("output", "sandbox", "verbose")
def refresh(
    choices: Choices,
    *,
    providers: tuple[str, ...] = provider_option(),
    regions: tuple[str, ...] = option(
        "--region", default=(), metavar="REGION",
        help="Region to read (default: us-east-1, eastus, us-central1); may be repeated.",
    ),
    subscription: str = subscription_option(),
    project: str = project_option(" (default: the project of the credentials)"),
) -> None:  # fmt: skip
    """Read types and prices from the clouds' APIs. Stores them in a local file for `catalog`.

    This does not change what a spec means: `gpu: {model, count}` uses the embedded data.
    Exit codes: 0 all read, 3 some read, otherwise that of the failure; data that could not be read is kept.
    """
    from gpukube.cli.bodies.catalog import refresh_catalog

    refresh_catalog(choices, providers, regions, (subscription, project))
