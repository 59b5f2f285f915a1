"""`gpukube pool ...`: plan, create, look at, prove and delete GPU node pools."""

from __future__ import annotations

from typing import Annotated

import typer

from gpukube.cli.options import (
    ChartOption,
    ClusterOption,
    FileOption,
    OutputOption,
    ParallelismOption,
    PoolOption,
    SandboxOption,
    SetOption,
    SkipClusterOption,
    TimeoutOption,
    VerboseOption,
    VerifyTimeoutOption,
    YesOption,
    choices,
)

__all__ = ["app"]

app = typer.Typer(help="Plan, create, list, prove and delete GPU node pools.", no_args_is_help=True)
plan_app = typer.Typer(invoke_without_command=True)
app.add_typer(plan_app, name="plan")


@plan_app.callback()
def plan(
    context: typer.Context,
    *,
    files: FileOption,
    sets: SetOption,
    clusters: ClusterOption,
    pools: PoolOption,
    skip_cluster: SkipClusterOption,
    output: OutputOption,
    chart: ChartOption,
    parallelism: ParallelismOption,
    sandbox: SandboxOption,
    verbose: VerboseOption,
) -> None:
    """Show what would happen, per pool and per cluster; changes nothing. `plan diff` compares for CI."""
    context.obj = choices(context, locals())
    if context.invoked_subcommand is None:
        from gpukube.cli import running

        running.plan(context.obj)


@plan_app.command("diff")
def diff(
    context: typer.Context,
    *,
    files: FileOption,
    sets: SetOption,
    clusters: ClusterOption,
    pools: PoolOption,
    skip_cluster: SkipClusterOption,
    output: OutputOption,
    chart: ChartOption,
    parallelism: ParallelismOption,
    sandbox: SandboxOption,
    verbose: VerboseOption,
) -> None:
    """Compare what is declared with what is live, inside the clusters too.

    Exit codes: 0 the same, 2 it differs; anything else is an error.
    """
    from gpukube.cli import running

    running.diff(choices(context, locals()))


@app.command()
def create(
    context: typer.Context,
    *,
    files: FileOption,
    sets: SetOption,
    clusters: ClusterOption,
    pools: PoolOption,
    output: OutputOption,
    chart: ChartOption,
    timeout: TimeoutOption,
    parallelism: ParallelismOption,
    sandbox: SandboxOption,
    verbose: VerboseOption,
) -> None:
    """Create the pools that are missing, install the device plugin, and prove the GPUs on the live nodes.

    Run it again after any interruption: what is there is taken up, what matches is left alone.
    """
    from gpukube.cli import running

    running.create(choices(context, locals()))


@app.command("list")
def list_pools(
    context: typer.Context,
    *,
    files: FileOption,
    sets: SetOption,
    clusters: ClusterOption,
    pools: PoolOption,
    skip_cluster: SkipClusterOption,
    output: OutputOption,
    parallelism: ParallelismOption,
    sandbox: SandboxOption,
    verbose: VerboseOption,
) -> None:
    """List the live GPU pools of all clusters of the spec, whoever owns them."""
    from gpukube.cli import running

    running.list_pools(choices(context, locals()))


@app.command("get")
def get_pool(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Pool, as the spec names it.")],
    *,
    files: FileOption,
    sets: SetOption,
    clusters: ClusterOption,
    output: OutputOption,
    parallelism: ParallelismOption,
    sandbox: SandboxOption,
    verbose: VerboseOption,
) -> None:
    """Show one pool as it lives, on every cluster that has it: fields, nodes, devices."""
    from gpukube.cli import running

    running.get_pool(choices(context, {**locals(), "names": [name]}))


@app.command()
def delete(
    context: typer.Context,
    names: Annotated[list[str], typer.Argument(help="Pools, as the spec names them.")],
    *,
    files: FileOption,
    sets: SetOption,
    clusters: ClusterOption,
    yes: YesOption,
    output: OutputOption,
    timeout: TimeoutOption,
    parallelism: ParallelismOption,
    sandbox: SandboxOption,
    verbose: VerboseOption,
) -> None:
    """Delete pools of this spec's owner. Asks on a terminal; without one it needs --yes.

    Pools of other owners and protected pools (deletionProtection) are refused.
    """
    from gpukube.cli import running

    running.delete(choices(context, locals()))


@app.command()
def verify(
    context: typer.Context,
    *,
    files: FileOption,
    sets: SetOption,
    clusters: ClusterOption,
    pools: PoolOption,
    output: OutputOption,
    timeout: VerifyTimeoutOption,
    parallelism: ParallelismOption,
    sandbox: SandboxOption,
    verbose: VerboseOption,
) -> None:
    """Compare the devices on the live nodes with the promise; says which step is missing when they differ."""
    from gpukube.cli import running

    running.verify(choices(context, locals()))
