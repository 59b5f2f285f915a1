"""`gpukube catalog ...`: signatures and help. What the commands do is in browse.py."""

from __future__ import annotations

from typing import Annotated

import typer

from gpukube.cli.options import Choices, takes

__all__ = ["app"]

app = typer.Typer(
    help="GPU instance types of the three clouds: model, count, memory, MIG, price.", no_args_is_help=True
)


def _nothing() -> None:
    return None


def _one() -> float:
    return 1.0


def _types(incomplete: str) -> list[str]:
    """Complete names of instance types; the table is read at Tab alone."""
    from gpukube.gpu.machines import machines

    return sorted({m.name for m in machines() if m.name.startswith(incomplete) and "*" not in m.name})


def _models(incomplete: str) -> list[str]:
    """Complete names of GPUs."""
    from gpukube.gpu.models import MODELS

    return [str(m) for m in MODELS if m.sold and str(m).casefold().startswith(incomplete.casefold())]


ProviderOption = Annotated[
    list[str],
    typer.Option(
        "--provider", default_factory=list, show_default=False, metavar="CLOUD",
        help="Only this cloud: aks, eks or gke; may be repeated.",
    ),
]  # fmt: skip
RegionOption = Annotated[
    str,
    typer.Option(
        "--region", default_factory=str, show_default=False, metavar="REGION",
        help="Prices of this region, and only types it offers; needs `catalog refresh --region`.",
    ),
]  # fmt: skip


@app.command("list")
@takes("output", "sandbox", "verbose")
def list_types(
    choices: Choices,
    *,
    providers: ProviderOption,
    models: Annotated[
        list[str],
        typer.Option(
            "--model", default_factory=list, show_default=False, metavar="GPU", autocompletion=_models,
            help="With this GPU: A100-80GB, or A100 for all sizes; may be repeated.",
        ),
    ],
    memory: Annotated[
        str,
        typer.Option(
            "--memory", default_factory=str, show_default=False, metavar="GIB",
            help="Each GPU, or share of one, has at least so much memory: 40, 40GiB.",
        ),
    ],
    mig: Annotated[
        bool | None,
        typer.Option("--mig/--no-mig", default_factory=_nothing, show_default=False, help="Can be cut with MIG."),
    ],
    arch: Annotated[
        str,
        typer.Option(
            "--arch", default_factory=str, show_default=False, metavar="ARCH", help="CPU architecture: amd64 or arm64."
        ),
    ],
    max_price: Annotated[
        float | None,
        typer.Option(
            "--max-price", default_factory=_nothing, show_default=False, metavar="USD", min=0,
            help="At most so many US dollars per hour of a node, on demand; unknown prices are left out.",
        ),
    ],
    statuses: Annotated[
        list[str],
        typer.Option(
            "--status", default_factory=list, show_default=False, metavar="STATUS",
            help="current, legacy, preview, unknown or retired (default: all but retired); may be repeated.",
        ),
    ],
    region: RegionOption,
) -> None:  # fmt: skip
    """List GPU instance types, embedded and refreshed ones. Reads no cloud.

    Prices are US dollars per hour of one node on demand, each with its region and day. They are no offers.
    """
    from gpukube.cli.browse import Asked, show_list

    asked = Asked(tuple(providers), tuple(models), memory, mig, arch, max_price, tuple(statuses), region)
    show_list(choices, asked)


@app.command()
@takes("output", "sandbox", "verbose")
def find(
    choices: Choices,
    *,
    gpu: Annotated[
        str,
        typer.Option(
            "--gpu", default_factory=str, show_default=False, metavar="GPU", autocompletion=_models,
            help="The instance type of each cloud with this GPU: A100-80GB.",
        ),
    ],
    count: Annotated[
        float,
        typer.Option(
            "--count", default_factory=_one, show_default=False, metavar="N", min=0,
            help="So many GPUs per node (default 1); 0.5 for a share.",
        ),
    ],
    slice_memory: Annotated[
        str,
        typer.Option(
            "--slice-memory", default_factory=str, show_default=False, metavar="GIB",
            help="Instead: the smallest MIG slices and GPUs with at least so much memory: 20GiB.",
        ),
    ],
    limit: Annotated[
        int,
        typer.Option("--limit", min=0, metavar="N", help="With --slice-memory: show so many; 0 for all."),
    ] = 12,
    providers: ProviderOption,
    region: RegionOption,
) -> None:  # fmt: skip
    """Find the machine that `gpu: {model, count}` means on each cloud, or the smallest device that is large enough.

    Exit codes: 0 found, 4 no cloud has it; then what comes nearest is shown.
    """
    from gpukube.cli.browse import Search, find_machines

    find_machines(choices, Search(gpu, count, slice_memory, limit, tuple(providers), region))


@app.command()
@takes("output", "sandbox", "verbose")
def show(
    choices: Choices,
    name: Annotated[
        str,
        typer.Argument(metavar="TYPE", show_default=False, autocompletion=_types, help="As its cloud spells it."),
    ],
    *,
    region: RegionOption,
) -> None:
    """Show one instance type: MIG profiles, slices, resource names, drivers, prices. -v names the sources."""
    from gpukube.cli.browse import show_type

    show_type(choices, name, region)


@app.command()
@takes("output", "verbose")
def mig(
    choices: Choices,
    model: Annotated[
        str,
        typer.Argument(metavar="GPU", show_default=False, autocompletion=_models, help="Its model: A100-40GB."),
    ],
    *,
    wanted: Annotated[
        list[str],
        typer.Option(
            "--want", default_factory=list, show_default=False, metavar="PROFILE=N",
            help="Say how few GPUs give so many instances, and how each is cut; may be repeated.",
        ),
    ],
    alike: Annotated[
        bool, typer.Option("--alike", help="With --want: one layout for all GPUs, as a pool has it.")
    ] = False,
    live: Annotated[
        list[str],
        typer.Option(
            "--live", default_factory=list, show_default=False, metavar="PROFILE@START",
            help="Say what still fits on a GPU that has this instance there; may be repeated.",
        ),
    ],
) -> None:  # fmt: skip
    """Show how a GPU can be cut by MIG: profiles, their names on other GPUs, full mixes, and what was asked about.

    Exit codes: 0 shown, 4 it cannot be cut so.
    """
    from gpukube.cli.geometry import show_geometry

    show_geometry(choices, model, wanted, live, alike=alike)


@app.command()
@takes("output", "sandbox", "verbose")
def refresh(
    choices: Choices,
    *,
    providers: ProviderOption,
    regions: Annotated[
        list[str],
        typer.Option(
            "--region", default_factory=list, show_default=False, metavar="REGION",
            help="Of this region, by its cloud's name (default: us-east-1, eastus, us-central1); may be repeated.",
        ),
    ],
    subscription: Annotated[
        str,
        typer.Option(
            "--subscription", default_factory=str, show_default=False, envvar="AZURE_SUBSCRIPTION_ID", metavar="ID",
            help="Azure subscription that asks.",
        ),
    ],
    project: Annotated[
        str,
        typer.Option(
            "--project", default_factory=str, show_default=False, envvar="GOOGLE_CLOUD_PROJECT", metavar="ID",
            help="Google Cloud project that asks (default: that of the credentials).",
        ),
    ],
) -> None:  # fmt: skip
    """Read types and prices from the clouds' own APIs into a file that `catalog` then uses. Changes nothing there.

    What a spec means does not change: `gpu: {model, count}` rests on the embedded data.
    Exit codes: 0 all read, 3 some, else that of the failure; what could not be read stays as it was.
    """
    from gpukube.cli.browse import refresh_catalogue

    refresh_catalogue(choices, providers, regions, (subscription, project))
