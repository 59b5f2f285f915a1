"""`gpukube catalog ...`: signatures and help. What the commands do is in browse.py."""

from __future__ import annotations

from typing import Annotated

import typer

from gpukube.cli.catalog_options import Search, Wanted, complete_model, provider_option, region_option
from gpukube.cli.options import Choices, option, takes

app = typer.Typer(
    help="GPU instance types of the three clouds: model, count, memory, MIG, price.", no_args_is_help=True
)


def _types(incomplete: str) -> list[str]:
    """Complete names of instance types; the table is read at Tab alone."""
    from gpukube.gpu.machines import machines

    return sorted({m.name for m in machines() if m.name.startswith(incomplete) and "*" not in m.name})


@app.command("list")
@takes("output", "sandbox", "verbose")
def list_types(choices: Choices, wanted: Wanted) -> None:
    """List GPU instance types, embedded and refreshed ones. Reads no cloud.

    Prices are US dollars per hour of one node on demand, each with its region and day. They are no offers.
    """
    from gpukube.cli.bodies.catalog import show_list

    show_list(choices, wanted)


@app.command()
@takes("output", "sandbox", "verbose")
def find(choices: Choices, search: Search) -> None:
    """Find the machine that `gpu: {model, count}` means on each cloud, or the smallest device that is large enough.

    Exit codes: 0 found, 4 no cloud has it; then what comes nearest is shown.
    """
    from gpukube.cli.bodies.catalog import find_machines

    find_machines(choices, search)


@app.command()
@takes("output", "sandbox", "verbose")
def show(
    choices: Choices,
    name: Annotated[
        str,
        typer.Argument(metavar="TYPE", show_default=False, autocompletion=_types, help="As its cloud spells it."),
    ],
    *,
    region: str = region_option(),
) -> None:
    """Show one instance type: MIG profiles, slices, resource names, drivers, prices. -v names the sources."""
    from gpukube.cli.bodies.catalog import show_type

    show_type(choices, name, region)


@app.command()
@takes("output", "verbose")
def mig(
    choices: Choices,
    model: Annotated[
        str,
        typer.Argument(metavar="GPU", show_default=False, autocompletion=complete_model, help="Its model: A100-40GB."),
    ],
    *,
    wanted: tuple[str, ...] = option(
        "--want", default=(), metavar="PROFILE=N",
        help="Say how few GPUs give so many instances, and how each is cut; may be repeated.",
    ),
    alike: Annotated[
        bool, typer.Option("--alike", help="With --want: one layout for all GPUs, as a pool has it.")
    ] = False,
    live: tuple[str, ...] = option(
        "--live", default=(), metavar="PROFILE@START",
        help="Say what still fits on a GPU that has this instance there; may be repeated.",
    ),
) -> None:  # fmt: skip
    """Show how a GPU can be cut by MIG: profiles, their names on other GPUs, full mixes, and what was asked about.

    Exit codes: 0 shown, 4 it cannot be cut so.
    """
    from gpukube.cli.bodies.catalog_mig import show_geometry

    show_geometry(choices, model, wanted, live, alike=alike)


@app.command()
@takes("output", "sandbox", "verbose")
def refresh(
    choices: Choices,
    *,
    providers: tuple[str, ...] = provider_option(),
    regions: tuple[str, ...] = option(
        "--region", default=(), metavar="REGION",
        help="Of this region, by its cloud's name (default: us-east-1, eastus, us-central1); may be repeated.",
    ),
    subscription: str = option(
        "--subscription", default="", envvar="AZURE_SUBSCRIPTION_ID", metavar="ID",
        help="Azure subscription that asks.",
    ),
    project: str = option(
        "--project", default="", envvar="GOOGLE_CLOUD_PROJECT", metavar="ID",
        help="Google Cloud project that asks (default: that of the credentials).",
    ),
) -> None:  # fmt: skip
    """Read types and prices from the clouds' own APIs into a file that `catalog` then uses. Changes nothing there.

    What a spec means does not change: `gpu: {model, count}` rests on the embedded data.
    Exit codes: 0 all read, 3 some, else that of the failure; what could not be read stays as it was.
    """
    from gpukube.cli.bodies.catalog import refresh_catalogue

    refresh_catalogue(choices, providers, regions, (subscription, project))
