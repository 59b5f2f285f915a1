"""`gpukube release ...`: gpukube's own Helm release in clusters."""

from __future__ import annotations

import typer

from gpukube.cli.options import ADDRESSES, END, SPEC, Choices, takes

app = typer.Typer(help="Remove gpukube's own Helm release from clusters.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    pass  # keeps a group with a single command a group


@app.command()
@takes(*SPEC, "clusters", "yes", "events", "output", "timeout", *END, clusters=ADDRESSES)
def remove(choices: Choices) -> None:
    """Uninstall gpukube's device plugin or GPU Operator. Only if no pool and no node needs it; asks for confirmation.

    Nodes, CustomResourceDefinitions, the namespace, and other owners' objects in it stay. `pool create` installs the
    release again. Exit codes: 0 removed or not installed; 1 a pool or node needs it; 3 only some clusters succeeded.
    """
    from gpukube.cli.bodies import pool as running

    running.remove_release(choices)
