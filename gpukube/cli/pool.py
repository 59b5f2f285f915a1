"""`gpukube pool ...`: plan, create, change, look at, prove and delete GPU node pools."""

from __future__ import annotations

from typing import Annotated

import typer

from gpukube.cli.options import (
    AdoptFromOption,
    AdoptOption,
    AdoptReleaseOption,
    ChartOption,
    ClusterOption,
    DisruptionOption,
    EventsOption,
    FailFastOption,
    FileOption,
    MigrateReleaseOption,
    NoWaitOption,
    OutOption,
    OutputOption,
    OwnerOption,
    ParallelismOption,
    PlaceOption,
    PoolOption,
    ProbeImageOption,
    ProbeOption,
    ProbeScaleUpOption,
    PruneOption,
    ReplaceOption,
    SandboxOption,
    SetOption,
    SkipClusterOption,
    StrictOption,
    TimeoutOption,
    VerboseOption,
    VerifyTimeoutOption,
    YesOption,
    choices,
)

__all__ = ["app"]

app = typer.Typer(help="Plan, create, change, list, prove and delete GPU node pools.", no_args_is_help=True)
plan_app = typer.Typer(invoke_without_command=True)
app.add_typer(plan_app, name="plan")


@plan_app.callback()
def plan(
    context: typer.Context,
    *,
    files: FileOption,
    sets: SetOption,
    strict: StrictOption,
    clusters: ClusterOption,
    pools: PoolOption,
    skip_cluster: SkipClusterOption,
    adopt: AdoptOption,
    adopt_from: AdoptFromOption,
    prune: PruneOption,
    replace: ReplaceOption,
    allow_disruption: DisruptionOption,
    migrate_release: MigrateReleaseOption,
    adopt_release: AdoptReleaseOption,
    out: OutOption,
    output: OutputOption,
    chart: ChartOption,
    parallelism: ParallelismOption,
    sandbox: SandboxOption,
    verbose: VerboseOption,
) -> None:
    """Show what `pool apply` would do, per pool and per cluster; changes nothing. `plan diff` compares for CI.

    With --out the plan is saved: `pool apply FILE` then does exactly that, or refuses when the world has moved.
    """
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
    strict: StrictOption,
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
    adopt: AdoptOption,
    adopt_from: AdoptFromOption,
    no_wait: NoWaitOption,
    fail_fast: FailFastOption,
    events: EventsOption,
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


@app.command()
def apply(
    context: typer.Context,
    plan_file: Annotated[
        str, typer.Argument(metavar="[PLAN]", show_default=False, help="A plan saved with `pool plan --out`.")
    ] = "",
    *,
    files: FileOption,
    sets: SetOption,
    clusters: ClusterOption,
    pools: PoolOption,
    adopt: AdoptOption,
    adopt_from: AdoptFromOption,
    prune: PruneOption,
    replace: ReplaceOption,
    allow_disruption: DisruptionOption,
    migrate_release: MigrateReleaseOption,
    adopt_release: AdoptReleaseOption,
    yes: YesOption,
    no_wait: NoWaitOption,
    fail_fast: FailFastOption,
    events: EventsOption,
    output: OutputOption,
    chart: ChartOption,
    timeout: TimeoutOption,
    parallelism: ParallelismOption,
    sandbox: SandboxOption,
    verbose: VerboseOption,
) -> None:
    """Bring the live pools to what the spec says: create, update in place, replace and prune where allowed.

    Shows the plan and asks on a terminal; without one it needs --yes. A saved plan was reviewed before and is not
    asked about: it is applied exactly, or refused as stale. Run it again after any interruption.
    """
    from gpukube.cli import running

    running.apply(choices(context, locals()))


@app.command()
def scale(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Pool, as the spec names it.")],
    *,
    nodes: Annotated[
        int | None, typer.Option("--nodes", min=0, show_default=False, help="New size of a pool without autoscaling.")
    ] = None,
    minimum: Annotated[
        int | None, typer.Option("--min", min=0, show_default=False, help="New smallest size of an autoscaled pool.")
    ] = None,
    maximum: Annotated[
        int | None, typer.Option("--max", min=0, show_default=False, help="New largest size of an autoscaled pool.")
    ] = None,
    files: FileOption,
    sets: SetOption,
    clusters: PlaceOption,
    owners: OwnerOption,
    yes: YesOption,
    no_wait: NoWaitOption,
    events: EventsOption,
    output: OutputOption,
    timeout: TimeoutOption,
    parallelism: ParallelismOption,
    sandbox: SandboxOption,
    verbose: VerboseOption,
) -> None:
    """Give a live pool another size, now. The spec stays as it is: `plan diff` will show the difference.

    Numbers are pool totals. To scale down asks on a terminal; without one it needs --yes.
    """
    from gpukube.cli import running

    running.scale(choices(context, {**locals(), "names": [name]}))


@app.command()
def wait(
    context: typer.Context,
    names: Annotated[
        list[str],
        typer.Argument(default_factory=list, show_default=False, help="Pools; all of the spec when left out."),
    ],
    *,
    files: FileOption,
    sets: SetOption,
    clusters: PlaceOption,
    pools: PoolOption,
    events: EventsOption,
    output: OutputOption,
    timeout: TimeoutOption,
    parallelism: ParallelismOption,
    sandbox: SandboxOption,
    verbose: VerboseOption,
) -> None:
    """Wait until the clouds have finished with the pools of the spec, then prove the GPUs on their nodes.

    For what a former command began: with --no-wait, or before it was interrupted. Begins nothing itself. Without a
    spec, pools of the clusters given by address are waited for and not proven.
    """
    from gpukube.cli import running

    running.wait(choices(context, locals()))


@app.command("list")
def list_pools(
    context: typer.Context,
    *,
    files: FileOption,
    sets: SetOption,
    clusters: PlaceOption,
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
    clusters: PlaceOption,
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
    clusters: PlaceOption,
    owners: OwnerOption,
    yes: YesOption,
    no_wait: NoWaitOption,
    events: EventsOption,
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
    probe: ProbeOption,
    probe_image: ProbeImageOption,
    probe_scale_up: ProbeScaleUpOption,
    output: OutputOption,
    timeout: VerifyTimeoutOption,
    parallelism: ParallelismOption,
    sandbox: SandboxOption,
    verbose: VerboseOption,
) -> None:
    """Compare the devices on the live nodes with the promise; says which step is missing when they differ.

    With --probe a pod on each pool that is as promised asks for one device and says what it was given.
    """
    from gpukube.cli import running

    running.verify(choices(context, locals()))
