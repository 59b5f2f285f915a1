"""`gpukube pool ...`: plan, create, change, list, verify and delete GPU node pools."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, ClassVar

import typer

from gpukube.cli.command_lists import Group
from gpukube.cli.completion import EXPORT_TARGETS, complete_pool, one_of
from gpukube.cli.options import ADDRESSES, END, SPEC, Choices, option, takes


class _Pool(Group):
    """The commands of pools."""

    tasks: ClassVar = {
        "Commands, in the order of use": (
            *("plan", "create", "verify", "list", "map", "usage", "get", "scale", "apply", "wait", "drain", "delete"),
            *("import", "release", "export"),
        )
    }
    examples: ClassVar = {
        "plan": "gpukube pool plan -f pools.yaml",
        "create": "gpukube pool create -f pools.yaml",
        "verify": "gpukube pool verify -f pools.yaml --probe",
        "list": "gpukube pool list -f pools.yaml",
        "map": "gpukube pool map -f pools.yaml --free",
        "usage": "gpukube pool usage -f pools.yaml",
        "get": "gpukube pool get a100 -f pools.yaml",
        "scale": "gpukube pool scale a100 -f pools.yaml --nodes 4",
        "apply": "gpukube pool apply -f pools.yaml --allow-disruption",
        "wait": "gpukube pool wait -f pools.yaml",
        "drain": "gpukube pool drain a100 -f pools.yaml",
        "delete": "gpukube pool delete a100 -f pools.yaml",
        "import": "gpukube pool import --cluster eks:ACCOUNT/REGION/NAME",
        "release": "gpukube pool release a100 -f pools.yaml",
        "export": "gpukube pool export --to terraform -f pools.yaml",
    }


app = typer.Typer(cls=_Pool, help="Plan, create, change, list, verify and delete GPU node pools.", no_args_is_help=True)
plan_app = typer.Typer(invoke_without_command=True)
app.add_typer(plan_app, name="plan")

_ADOPTING = ("adopt", "adopt_from", "adopt_managed")
_PLANNED = (
    *(*_ADOPTING, "prune", "replace", "accept_loss", "allow_disruption", "upgrade"),
    *("migrate_release", "adopt_release"),
)
_LOOK = option(
    "--timeout", default=0.0, metavar="MINUTES", min=0,
    help="How long to wait for nodes and devices (default 0: check once).",
)  # fmt: skip

_ADDRESS = option(
    "--cluster", default=(), metavar="ADDRESS",
    help="Cluster address: eks:ACCOUNT/REGION/NAME, aks:SUBSCRIPTION/RESOURCEGROUP/NAME, gke:PROJECT/LOCATION/NAME.",
)  # fmt: skip
_NEW_OWNER = option(
    "--owner", default=(), metavar="NAME", help="metadata.name of the spec (default: the cluster's name)."
)
_EVICT = option(
    "--allow-disruption", default=False,
    help="Also evict bare pods, pods with an emptyDir, and pods marked as not to be disrupted.",
)  # fmt: skip
_SHOWN_POOLS = option(
    "--pool", default=(), metavar="GLOB", autocompletion=complete_pool,
    help="Only pools whose name in the spec or in the cloud, or family, matches.",
)  # fmt: skip
_LIVE_POOLS = option("--pool", default=(), metavar="GLOB", help="Only pools whose cloud name matches.")


@plan_app.callback()
@takes(
    *SPEC,
    "strict",
    "clusters",
    "pools",
    "shard",
    "skip_cluster",
    *_PLANNED,
    "live_prices",
    "live",
    "out",
    "output",
    "chart",
    *END,
)
def plan(choices: Choices, context: typer.Context) -> None:
    """Show what `pool apply` would do, and change nothing. `plan diff` compares for CI.

    With --out it saves the plan: `pool apply FILE` applies exactly that, or refuses if anything changed since.
    """
    if context.invoked_subcommand is None:
        from gpukube.cli.bodies import pool as running

        running.plan(choices)


@plan_app.command("diff")
@takes(
    *SPEC, "strict", "clusters", "pools", "shard", "skip_cluster", "live_prices", "live", "output", "chart", *END
)  # fmt: skip
def diff(choices: Choices) -> None:
    """Compare the spec with the live pools and clusters.

    Exit codes: 0 no differences, 2 differences; anything else is an error.
    """
    from gpukube.cli.bodies import pool_views as viewing

    viewing.diff(choices)


@app.command()
@takes(
    *SPEC,
    "clusters",
    "pools",
    "shard",
    *_ADOPTING,
    "ignore_quota",
    "live_prices",
    "capacity_wait",
    "no_wait",
    "fail_fast",
    "events",
    "output",
    "chart",
    "timeout",
    *END,
)
def create(choices: Choices) -> None:
    """Create missing pools and verify their GPUs. Also installs the device plugin.

    Run it again after any interruption: it reuses existing pools and leaves matching ones unchanged.
    """
    from gpukube.cli.bodies import pool as running

    running.create(choices)


@app.command()
@takes(
    *SPEC,
    "clusters",
    "pools",
    "shard",
    *_PLANNED,
    "drain_timeout",
    "ignore_quota",
    "live_prices",
    "capacity_wait",
    "rebalance",
    "yes",
    "no_wait",
    "fail_fast",
    "events",
    "output",
    "chart",
    "timeout",
    *END,
)
def apply(
    choices: Choices,
    plan_file: Annotated[
        str, typer.Argument(metavar="[PLAN]", show_default=False, help="A plan saved with `pool plan --out`.")
    ] = "",
) -> None:
    """Make the live pools match the spec. Creates, updates and, if allowed, replaces and deletes pools.

    Shows the plan and asks for confirmation; without a terminal it needs --yes. A saved plan needs no confirmation:
    it is applied exactly, or refused as stale. Run it again after any interruption.
    """
    from gpukube.cli.bodies import pool as running

    running.apply(replace(choices, plan_file=plan_file))


@app.command()
@takes(*SPEC, "clusters", "owners", "yes", "no_wait", "events", "output", "timeout", *END, clusters=ADDRESSES)
def scale(
    choices: Choices,
    name: Annotated[str, typer.Argument(autocompletion=complete_pool, help="Name of the pool in the spec.")],
    *,
    nodes: int | None = option("--nodes", default=None, min=0, help="New size of a pool without autoscaling."),
    minimum: int | None = option("--min", default=None, min=0, help="New minimum of an autoscaled pool."),
    maximum: int | None = option("--max", default=None, min=0, help="New maximum of an autoscaled pool."),
) -> None:
    """Change the size of a live pool. The spec does not change: `plan diff` will show the difference.

    Sizes are totals of the pool. Scaling down asks for confirmation; without a terminal it needs --yes.
    """
    from gpukube.cli.bodies import pool as running

    running.scale(replace(choices, names=(name,)), nodes, minimum, maximum)


@app.command()
@takes(*SPEC, "clusters", "pools", "shard", "events", "output", "timeout", *END, clusters=ADDRESSES)
def wait(
    choices: Choices,
    names: Annotated[
        list[str],
        typer.Argument(
            default_factory=list,
            show_default=False,
            autocompletion=complete_pool,
            help="Names of pools (default: all pools in the spec).",
        ),
    ],
) -> None:
    """Wait until the clouds have finished, then verify the GPUs.

    Use it after a command with --no-wait or an interrupted one. It starts nothing. Without a spec it waits for pools of
    the clusters given by address and does not verify them.
    """
    from gpukube.cli.bodies import pool as running

    running.wait(replace(choices, names=tuple(names)))


@app.command("list")
@takes(*SPEC, "clusters", "pools", "shard", "skip_cluster", "output", *END, clusters=ADDRESSES)
def list_pools(choices: Choices) -> None:
    """List the live GPU pools of the spec's clusters. Includes pools of other owners."""
    from gpukube.cli.bodies import pool_views as viewing

    viewing.list_pools(choices)


@app.command("map")
@takes(*SPEC, "clusters", "pools", "shard", "output", *END, clusters=ADDRESSES, pools=_SHOWN_POOLS)
def map_pools(
    choices: Choices,
    *,
    by: str = option(
        "--by", default="pool", metavar="pool|namespace", autocompletion=one_of("pool", "namespace"),
        help="Order by pool (default) or by namespace.",
    ),
    free: bool = option("--free", default=False, help="Only nodes with free devices."),
    watch: bool = option("--watch", default=False, help="Read and draw again until Ctrl-C; needs a terminal."),
    interval: float = option(
        "--interval", default=10.0, metavar="SECONDS", min=5, help="Time between two readings of --watch (default 10)."
    ),
) -> None:  # fmt: skip
    """Draw every GPU of the spec's clusters: free, held by which pods, not advertised. Includes pools of other owners.

    Which pod has which device is shown only where claims publish it; elsewhere a node has counts. Changes nothing.
    Exit codes: 0 drawn; 3 a part of the clusters could not be read.
    """
    from gpukube.cli.bodies import pool_map as drawing

    drawing.draw(choices, drawing.Drawing(by, interval if watch else None, free=free))


@app.command("usage")
@takes(*SPEC, "clusters", "pools", "shard", "live_prices", "output", *END, clusters=ADDRESSES, pools=_SHOWN_POOLS)
def usage(choices: Choices) -> None:
    """Show GPUs, instances and shares that are held, free and waited for, by pool, owner and namespace, with prices.

    Also pods that hold devices and are stuck or ended, and the MIG layout that waiting pods need. Changes nothing.
    Exit codes: 0 shown; 3 a part of the clusters could not be read.
    """
    from gpukube.cli.bodies import pool_usage as counting

    counting.show_usage(choices)


@app.command("import")
@takes("clusters", "pools", "owners", *END, clusters=_ADDRESS, owners=_NEW_OWNER, pools=_LIVE_POOLS)
def import_pools(choices: Choices) -> None:
    """Write a spec from the live GPU pools of a cluster. Includes pools of other owners. Changes nothing.

    The spec goes to stdout. It leaves out cloud defaults; comments note what was guessed or cannot be expressed.
    `pool plan --adopt` on it adds gpukube's labels and changes nothing else.
    """
    from gpukube.cli.bodies import pool_import as importing

    importing.import_pools(choices)


@app.command("export")
@takes(*SPEC, "clusters", "pools", *END, clusters=ADDRESSES)
def export_pools(
    choices: Choices,
    *,
    to: str = option(
        "--to",
        default="",
        metavar="TARGET",
        autocompletion=one_of(*EXPORT_TARGETS),
        help=f"{', '.join(EXPORT_TARGETS)}; depends on the cloud.",
    ),
) -> None:
    """Write pools of a spec for another tool. With --cluster ADDRESS: live pools, for Terraform. Changes nothing.

    The script or file goes to stdout; comments at the top list what is not included. A pool that the tool cannot
    express is rejected.
    """
    from gpukube.cli.bodies import pool_export as exporting

    exporting.export(choices, to)


@app.command("get")
@takes(*SPEC, "clusters", "output", *END, clusters=ADDRESSES)
def get_pool(
    choices: Choices,
    name: Annotated[str, typer.Argument(autocompletion=complete_pool, help="Name of the pool in the spec.")],
) -> None:
    """Show one live pool on every cluster that has it. Lists fields, nodes, devices."""
    from gpukube.cli.bodies import pool_views as viewing

    viewing.get_pool(replace(choices, names=(name,)))


@app.command()
@takes(*SPEC, "clusters", "owners", "yes", "no_wait", "events", "output", "timeout", *END, clusters=ADDRESSES)
def delete(
    choices: Choices,
    names: Annotated[list[str], typer.Argument(autocompletion=complete_pool, help="Names of the pools in the spec.")],
) -> None:
    """Delete pools of this spec's owner. Asks for confirmation; without a terminal it needs --yes.

    Refuses pools of other owners and protected pools (deletionProtection).
    """
    from gpukube.cli.bodies import pool as running

    running.delete(replace(choices, names=tuple(names)))


@app.command()
@takes(*SPEC, "clusters", "owners", "yes", "no_wait", "events", "output", "timeout", *END, clusters=ADDRESSES)
def release(
    choices: Choices,
    names: Annotated[list[str], typer.Argument(autocompletion=complete_pool, help="Names of the pools in the spec.")],
) -> None:
    """Stop managing pools, and keep them. Removes gpukube's ownership labels; asks for confirmation, like delete.

    Refuses pools of other owners and protected pools. Afterwards gpukube no longer changes or deletes these pools;
    remove them from the spec. gpukube's device-plugin release keeps serving their nodes.
    """
    from gpukube.cli.bodies import pool as running

    running.release(replace(choices, names=tuple(names)))


@app.command()
@takes(
    *SPEC, "clusters", "owners", "allow_disruption", "drain_timeout", "yes", "events", "output", *END,
    clusters=ADDRESSES, allow_disruption=_EVICT,
)  # fmt: skip
def drain(
    choices: Choices,
    name: Annotated[
        str, typer.Argument(autocompletion=complete_pool, help="Name of the pool in the spec or in the cloud.")
    ],
    *,
    undo: bool = option("--undo", default=False, help="Uncordon the nodes that a drain cordoned."),
) -> None:
    """Cordon the nodes of a pool and evict their pods. Respects disruption budgets. The pool stays.

    Asks for confirmation; without a terminal it needs --yes. Run it again after an interruption: it drains the rest.
    """
    from gpukube.cli.bodies import pool as running

    running.drain(replace(choices, names=(name,)), undo=undo)


@app.command()
@takes(
    *SPEC, "clusters", "pools", "shard", "probe", "probe_image", "probe_scale_up", "output", "timeout", *END,
    timeout=_LOOK,
)  # fmt: skip
def verify(choices: Choices) -> None:
    """Compare the devices on the live nodes with the spec. If they differ, it names the missing step.

    With --probe, one pod per matching pool requests a device and reports what it got.
    """
    from gpukube.cli.bodies import pool as running

    running.verify(choices)
