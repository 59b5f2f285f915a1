"""`gpukube pool ...`: plan, create, change, look at, prove and delete GPU node pools."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from gpukube.cli.options import ADDRESSES, END, SPEC, Choices, option, takes

app = typer.Typer(help="Plan, create, change, list, prove and delete GPU node pools.", no_args_is_help=True)
plan_app = typer.Typer(invoke_without_command=True)
app.add_typer(plan_app, name="plan")

_PLANNED = ("adopt", "adopt_from", "prune", "replace", "allow_disruption", "migrate_release", "adopt_release")
_LOOK = option(
    "--timeout", default=0.0, metavar="MINUTES", min=0,
    help="How long to wait for nodes and devices (default 0: look once).",
)  # fmt: skip


@plan_app.callback()
@takes(*SPEC, "strict", "clusters", "pools", "skip_cluster", *_PLANNED, "out", "output", "chart", *END)
def plan(choices: Choices, context: typer.Context) -> None:
    """Show what `pool apply` would do, per pool and per cluster; changes nothing. `plan diff` compares for CI.

    With --out the plan is saved: `pool apply FILE` then does exactly that, or refuses when the world has moved.
    """
    if context.invoked_subcommand is None:
        from gpukube.cli.bodies import pool as running

        running.plan(choices)


@plan_app.command("diff")
@takes(*SPEC, "strict", "clusters", "pools", "skip_cluster", "output", "chart", *END)
def diff(choices: Choices) -> None:
    """Compare what is declared with what is live, inside the clusters too.

    Exit codes: 0 the same, 2 it differs; anything else is an error.
    """
    from gpukube.cli.bodies import pool_views as viewing

    viewing.diff(choices)


@app.command()
@takes(
    *SPEC,
    "clusters",
    "pools",
    "adopt",
    "adopt_from",
    "no_wait",
    "fail_fast",
    "events",
    "output",
    "chart",
    "timeout",
    *END,
)
def create(choices: Choices) -> None:
    """Create the pools that are missing, install the device plugin, and prove the GPUs on the live nodes.

    Run it again after any interruption: what is there is taken up, what matches is left alone.
    """
    from gpukube.cli.bodies import pool as running

    running.create(choices)


@app.command()
@takes(
    *SPEC, "clusters", "pools", *_PLANNED, "yes", "no_wait", "fail_fast", "events", "output", "chart", "timeout", *END
)
def apply(
    choices: Choices,
    plan_file: Annotated[
        str, typer.Argument(metavar="[PLAN]", show_default=False, help="A plan saved with `pool plan --out`.")
    ] = "",
) -> None:
    """Bring the live pools to what the spec says: create, update in place, replace and prune where allowed.

    Shows the plan and asks on a terminal; without one it needs --yes. A saved plan was reviewed before and is not
    asked about: it is applied exactly, or refused as stale. Run it again after any interruption.
    """
    from gpukube.cli.bodies import pool as running

    running.apply(replace(choices, plan_file=plan_file))


@app.command()
@takes(*SPEC, "clusters", "owners", "yes", "no_wait", "events", "output", "timeout", *END, clusters=ADDRESSES)
def scale(
    choices: Choices,
    name: Annotated[str, typer.Argument(help="Pool, as the spec names it.")],
    *,
    nodes: int | None = option("--nodes", default=None, min=0, help="New size of a pool without autoscaling."),
    minimum: int | None = option("--min", default=None, min=0, help="New smallest size of an autoscaled pool."),
    maximum: int | None = option("--max", default=None, min=0, help="New largest size of an autoscaled pool."),
) -> None:
    """Give a live pool another size, now. The spec stays as it is: `plan diff` will show the difference.

    Numbers are pool totals. To scale down asks on a terminal; without one it needs --yes.
    """
    from gpukube.cli.bodies import pool as running

    running.scale(replace(choices, names=(name,)), nodes, minimum, maximum)


@app.command()
@takes(*SPEC, "clusters", "pools", "events", "output", "timeout", *END, clusters=ADDRESSES)
def wait(
    choices: Choices,
    names: Annotated[
        list[str],
        typer.Argument(default_factory=list, show_default=False, help="Pools; all of the spec when left out."),
    ],
) -> None:
    """Wait until the clouds have finished with the pools of the spec, then prove the GPUs on their nodes.

    For what a former command began: with --no-wait, or before it was interrupted. Begins nothing itself. Without a
    spec, pools of the clusters given by address are waited for and not proven.
    """
    from gpukube.cli.bodies import pool as running

    running.wait(replace(choices, names=tuple(names)))


@app.command("list")
@takes(*SPEC, "clusters", "pools", "skip_cluster", "output", *END, clusters=ADDRESSES)
def list_pools(choices: Choices) -> None:
    """List the live GPU pools of all clusters of the spec, whoever owns them."""
    from gpukube.cli.bodies import pool_views as viewing

    viewing.list_pools(choices)


@app.command("get")
@takes(*SPEC, "clusters", "output", *END, clusters=ADDRESSES)
def get_pool(
    choices: Choices,
    name: Annotated[str, typer.Argument(help="Pool, as the spec names it.")],
) -> None:
    """Show one pool as it lives, on every cluster that has it: fields, nodes, devices."""
    from gpukube.cli.bodies import pool_views as viewing

    viewing.get_pool(replace(choices, names=(name,)))


@app.command()
@takes(*SPEC, "clusters", "owners", "yes", "no_wait", "events", "output", "timeout", *END, clusters=ADDRESSES)
def delete(
    choices: Choices,
    names: Annotated[list[str], typer.Argument(help="Pools, as the spec names them.")],
) -> None:
    """Delete pools of this spec's owner. Asks on a terminal; without one it needs --yes.

    Pools of other owners and protected pools (deletionProtection) are refused.
    """
    from gpukube.cli.bodies import pool as running

    running.delete(replace(choices, names=tuple(names)))


@app.command()
@takes(*SPEC, "clusters", "pools", "probe", "probe_image", "probe_scale_up", "output", "timeout", *END, timeout=_LOOK)
def verify(choices: Choices) -> None:
    """Compare the devices on the live nodes with the promise; says which step is missing when they differ.

    With --probe a pod on each pool that is as promised asks for one device and says what it was given.
    """
    from gpukube.cli.bodies import pool as running

    running.verify(choices)
