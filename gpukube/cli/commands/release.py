"""`gpukube release ...`: gpukube's own Helm release in clusters."""

from __future__ import annotations

import typer

from gpukube.cli.options import ADDRESSES, END, SPEC, Choices, takes

app = typer.Typer(help="Remove gpukube's own Helm release from clusters.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    pass  # with it, a group of one command stays a group


@app.command()
@takes(*SPEC, "clusters", "yes", "events", "output", "timeout", *END, clusters=ADDRESSES)
def remove(choices: Choices) -> None:
    """Uninstall gpukube's device plugin or GPU Operator where no pool and no node needs it. Asks, like pool delete.

    Nodes, CustomResourceDefinitions, the namespace, and whatever others have in it stay. `pool create` installs the
    release again. Exit codes: 0 removed, or there was none; 1 a pool or a node needs it; 3 so on some of the clusters.
    """
    from gpukube.cli.bodies import pool as running

    running.remove_release(choices)
