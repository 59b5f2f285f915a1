"""Options that several commands share: one name, help text, default, and environment variable each.

Each is a field of `Choices`. A command lists the ones it accepts with `@takes` and receives one `Choices`. Options of
a single command are declared with `option` too: as the default of a parameter, or in a separate dataclass.
"""

from __future__ import annotations

import inspect
from dataclasses import Field, dataclass, field, fields, is_dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypedDict, TypeVar, Unpack, cast, get_type_hints

import typer

from gpukube.cli.completion import REPLACE, complete_cluster, complete_format, complete_pool, one_of

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

SPEC: Final = ("files", "sets")
END: Final = ("parallelism", "sandbox", "verbose")


class _Settings(TypedDict, total=False):
    help: str
    metavar: str
    envvar: str
    min: float
    max: float
    autocompletion: Callable[[str], list[str]] | Callable[[typer.Context, str], list[str]]


def option(*names: str, default: T, show_default: bool = False, **settings: Unpack[_Settings]) -> T:
    """Declare an option as a dataclass field; its static type is that of its value, as with `dataclasses.field`."""
    info = typer.Option(default, *names, show_default=show_default, **settings)
    return field(default=default, metadata={"option": info})


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """Values of all shared options, for any command; options that a command does not accept keep their defaults.

    Attributes:
        command: The whole command line, for running it again.
        given: Names of the options that are set on the command line or in the environment.
        by_address: Whether the command accepts addresses of clusters instead of a spec.
    """

    files: tuple[str, ...] = option(
        "--file", "-f", default=(), envvar="GPUKUBE_FILE", metavar="PATH",
        help="Spec file, directory, quoted pattern, or - for stdin; may be repeated.",
    )  # fmt: skip
    sets: tuple[str, ...] = option(
        "--set", default=(), metavar="PATH=VALUE", help="Override a value of the spec: pools[0].nodes.count=2."
    )
    strict: bool = option("--strict", default=False, envvar="GPUKUBE_STRICT", help="Treat warnings as errors.")
    clusters: tuple[str, ...] = option(
        "--cluster", default=(), metavar="GLOB", autocompletion=complete_cluster,
        help="Only clusters whose key in the spec matches.",
    )  # fmt: skip
    pools: tuple[str, ...] = option(
        "--pool", default=(), metavar="GLOB", autocompletion=complete_pool, help="Only pools whose name matches."
    )
    shard: str = option(
        "--shard", default="", metavar="I/N",
        help="Only the clusters of shard I of N, such as 3/16; each cluster is in exactly one shard.",
    )  # fmt: skip
    names: tuple[str, ...] = ()
    owners: tuple[str, ...] = option(
        "--owner", default=(), metavar="NAME",
        help="Without a spec: the owner of the pools (metadata.name of their spec).",
    )  # fmt: skip
    skip_cluster: bool = option(
        "--skip-cluster", default=False, help="Read only the clouds' pool APIs, not the clusters."
    )

    plan_file: str = ""

    adopt: bool = option(
        "--adopt", default=False,
        help="Adopt existing pools without an owner; only adds gpukube.io labels.",
    )  # fmt: skip
    adopt_from: tuple[str, ...] = option(
        "--adopt-from", default=(), metavar="OWNER",
        help="Like --adopt, also for pools that lost their labels but whose tags name OWNER.",
    )  # fmt: skip
    adopt_managed: bool = option(
        "--adopt-managed", default=False,
        help="Like --adopt, also for pools that another tool manages, such as eksctl; needs exact names with --pool.",
    )  # fmt: skip
    prune: bool = option(
        "--prune",
        default=False,
        help="Delete pools of this owner that the spec no longer declares, on the clusters it lists.",
    )
    replace: str = option(
        "--replace", default="", metavar="HOW", autocompletion=one_of(*REPLACE),
        help="If a field cannot change on a live pool: surge creates a new pool, drains the old one and deletes it; "
        "recreate deletes the pool and creates it again.",
    )  # fmt: skip
    accept_loss: tuple[str, ...] = option(
        "--accept-loss", default=(), metavar="[POOL:]PATH",
        help="Let a replacement lose a member of the live pool, by the path that the plan shows; repeatable.",
    )  # fmt: skip
    drain_timeout: float = option(
        "--drain-timeout", default=60.0, envvar="GPUKUBE_DRAIN_TIMEOUT", metavar="MINUTES", min=0,
        help="How long pods may take to leave the nodes of a pool (default 60).",
    )  # fmt: skip
    allow_disruption: bool = option(
        "--allow-disruption", default=False, help="Allow changes that restart or evict pods."
    )
    upgrade: bool = option(
        "--upgrade", default=False,
        help="Upgrade live pools to the cluster's version and the latest node image, unless the spec sets one.",
    )  # fmt: skip
    migrate_release: bool = option(
        "--migrate-release", default=False,
        help="Replace gpukube's device-plugin chart with the GPU Operator, or the reverse, if pools need it.",
    )  # fmt: skip
    adopt_release: bool = option(
        "--adopt-release", default=False,
        help="Take over a manually installed device-plugin release; keeps its values.",
    )  # fmt: skip
    ignore_quota: bool = option("--ignore-quota", default=False, help="Request nodes even beyond the cloud's quotas.")
    capacity_wait: float = option(
        "--capacity-wait", default=0.0, envvar="GPUKUBE_CAPACITY_WAIT", metavar="MINUTES", min=0,
        help="How long an alternative may wait for its machines before the next is tried (default: 15 to 45, by "
        "cloud).",
    )  # fmt: skip
    rebalance: bool = option(
        "--rebalance", default=False,
        help="Move pools with alternatives to a better one than they have, if it gets machines now.",
    )  # fmt: skip
    yes: bool = option("--yes", "-y", default=False, envvar="GPUKUBE_YES", help="Do not ask for confirmation.")

    no_wait: bool = option(
        "--no-wait",
        default=False,
        help="Return once the clouds have accepted the requests; `gpukube pool wait` waits and verifies.",
    )
    fail_fast: bool = option(
        "--fail-fast", default=False, help="After the first failure, start nothing new; finish what is in progress."
    )
    timeout: float = option(
        "--timeout", default=60.0, envvar="GPUKUBE_TIMEOUT", metavar="MINUTES", min=0,
        help="How long to wait for the cloud (default 60).",
    )  # fmt: skip
    parallelism: int = option(
        "--parallelism",
        default=8,
        envvar="GPUKUBE_PARALLELISM",
        min=1,
        max=64,
        help="Clusters in parallel (default 8).",
    )
    chart: str = option(
        "--chart", default="", envvar="GPUKUBE_CHART", metavar="PLACE",
        help="Where the charts are: a repository URL, an oci:// reference, or one chart as a directory or .tgz.",
    )  # fmt: skip

    probe: bool = option(
        "--probe", default=False,
        help="Also run a pod on each pool that requests one device and runs nvidia-smi, then delete it.",
    )  # fmt: skip
    probe_image: str = option(
        "--probe-image", default="", envvar="GPUKUBE_PROBE_IMAGE", metavar="IMAGE",
        help="Image for --probe (default: a pinned nvcr.io/nvidia/cuda base image).",
    )  # fmt: skip
    probe_scale_up: bool = option(
        "--probe-scale-up",
        default=False,
        help="Also probe autoscaled pools whose probe would start a node.",
    )

    live_prices: bool = option(
        "--live-prices", default=False,
        help="Read current prices of the spec's machines from the clouds instead of the catalog.",
    )  # fmt: skip
    live: bool = option(
        "--live", default=False,
        help="Also read from the clouds whether a better alternative than the one with the nodes may get machines now.",
    )  # fmt: skip

    out: str = option("--out", default="", metavar="FILE", help="Save the plan, for `gpukube pool apply FILE`.")
    output: str = option(
        "--output", "-o", default="table", envvar="GPUKUBE_OUTPUT", metavar="FORMAT", autocompletion=complete_format,
        help="table (default), json, yaml; each command's help lists its own.",  # see cli.lazy
    )  # fmt: skip
    events: str = option(
        "--events", default="", envvar="GPUKUBE_EVENTS", metavar="FILE",
        help="Write events as JSON Lines to this file, or to stdout with -.",
    )  # fmt: skip
    sandbox: bool = option("--sandbox", default=False, help="Run against the emulated clouds on loopback.")
    verbose: bool = option("--verbose", "-v", default=False, help="Show more: causes, exact requests.")

    command: str = ""
    given: frozenset[str] = frozenset()
    by_address: bool = False


ADDRESSES: Final[tuple[str, ...]] = option(
    "--cluster", default=(), metavar="GLOB|ADDRESS", autocompletion=complete_cluster,
    help="Only clusters whose key in the spec matches; or, without a spec, eks:ACCOUNT/REGION/NAME, "
    "aks:SUBSCRIPTION/RESOURCEGROUP/NAME, gke:PROJECT/LOCATION/NAME.",
)  # fmt: skip
"""--cluster of commands that need no spec."""

_FIELDS: Final = {f.name: f for f in fields(Choices) if f.metadata}
_TYPES: Final = get_type_hints(Choices)


def takes(*names: str, **instead: object) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add these options to a command, which is called with one `Choices` and its own parameters.

    A parameter whose default is an `option` is an option; a dataclass of options stands for all of its fields.

    Args:
        names: Names of options, in help order. Own parameters that are not listed come first.
        instead: Options, by name, that this command uses instead of the shared ones.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        _, *parameters = inspect.signature(command, eval_str=True).parameters.values()
        groups: dict[str, Any] = {p.name: p.annotation for p in parameters if is_dataclass(p.annotation)}
        own = {p.name: _parameter(p.name, p.annotation, p.default) for p in parameters if p.name not in groups}
        for group in groups.values():
            kinds = get_type_hints(group)
            own |= {f.name: _parameter(f.name, kinds[f.name], f) for f in fields(group)}
        shared = {
            name: _parameter(name, _TYPES[name], instead.get(name, _FIELDS[name])) for name in names if name not in own
        }
        order = dict.fromkeys((*(name for name in own if name not in names), *names))
        context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)

        @wraps(command)
        def run(context: typer.Context, **values: object) -> None:
            given = {name: context if name == "context" else _value(values[name]) for name in own}
            made = {name: kind(**{f.name: given.pop(f.name) for f in fields(kind)}) for name, kind in groups.items()}
            command(_choices(context), **made, **given)

        listed = [(shared | own)[name] for name in order if name != "context"]
        run.__signature__ = inspect.Signature([context, *listed])  # type: ignore[attr-defined]  # typer reads it
        run.__annotations__ = {}
        return run

    return decorate


def _parameter(name: str, kind: object, declared: object) -> inspect.Parameter:
    """Convert an `option` to a typer parameter; pass typer's own through. Multiple values are a list there."""
    if isinstance(declared, Field):
        kind = list[str] if kind == tuple[str, ...] else kind
        declared = declared.metadata["option"]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=declared, annotation=kind)


def _value(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _choices(context: typer.Context) -> Choices:
    """Collect the options of a command and of its parent groups (`gpukube --sandbox pool plan -f X diff`).

    The value given closest to the command wins, even if it equals the default; then the environment; then the
    command's defaults.
    """
    # From the group down to the command: later values override earlier ones.
    line: list[typer.Context] = [context]
    while (parent := line[0].parent) is not None:
        line.insert(0, cast("typer.Context", parent))
    # Use typer's parameter source: "equals the default" is not the same as "not given".
    found: dict[str, dict[str, Any]] = {"COMMANDLINE": {}, "ENVIRONMENT": {}, "DEFAULT": {}}
    for each in line:
        for name in each.params.keys() & _FIELDS.keys():
            source = each.get_parameter_source(name)
            found[source.name if source else "DEFAULT"][name] = _value(each.params[name])
    given = {**found["ENVIRONMENT"], **found["COMMANDLINE"]}
    command = line[0].obj if isinstance(line[0].obj, str) else "gpukube"
    by_address = any("ADDRESS" in str(item.make_metavar(context)) for item in context.command.params)
    values = {**found["DEFAULT"], **given}
    return Choices(**values, command=command, given=frozenset(given), by_address=by_address)
