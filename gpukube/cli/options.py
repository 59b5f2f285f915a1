"""Options that several commands share: one name, one help text, one default, one environment variable each.

Commands take them keyword-only and hand all their values to `choices`, which makes one `Choices` of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "AdoptOption",
    "AdoptReleaseOption",
    "ChartOption",
    "Choices",
    "ClusterOption",
    "Common",
    "DisruptionOption",
    "EventsOption",
    "FailFastOption",
    "FileOption",
    "FindingsOption",
    "MigrateReleaseOption",
    "NoWaitOption",
    "OutOption",
    "OutputOption",
    "OwnerOption",
    "ParallelismOption",
    "PlaceOption",
    "PoolOption",
    "ProbeImageOption",
    "ProbeOption",
    "ProbeScaleUpOption",
    "PruneOption",
    "ReplaceOption",
    "SandboxOption",
    "SetOption",
    "SkipClusterOption",
    "StrictOption",
    "TimeoutOption",
    "VerboseOption",
    "VerifyTimeoutOption",
    "YesOption",
    "choices",
]

DEFAULT_TIMEOUT_MIN = 60.0
DEFAULT_PARALLELISM = 8


@dataclass(frozen=True, slots=True)
class Common:
    """What stands before the command: `gpukube --sandbox -v pool ...`; and the whole line, to be run again."""

    sandbox: bool = False
    verbose: bool = False
    command: str = ""


@dataclass(frozen=True, slots=True)
class Choices:
    """All that the command line says, whichever command it is; what a command does not take stays at its default."""

    files: list[str] = field(default_factory=list)
    sets: list[str] = field(default_factory=list)
    clusters: list[str] = field(default_factory=list)
    pools: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    owners: list[str] = field(default_factory=list)
    plan_file: str = ""
    out: str = ""
    nodes: int | None = None
    minimum: int | None = None
    maximum: int | None = None
    skip_cluster: bool = False
    adopt: bool = False
    adopt_from: list[str] = field(default_factory=list)
    prune: bool = False
    replace: str = ""
    allow_disruption: bool = False
    migrate_release: bool = False
    adopt_release: bool = False
    no_wait: bool = False
    fail_fast: bool = False
    events: str = ""
    output: str = "table"
    chart: str = ""
    timeout: float = DEFAULT_TIMEOUT_MIN
    parallelism: int = DEFAULT_PARALLELISM
    yes: bool = False
    probe: bool = False
    probe_image: str = ""
    probe_scale_up: bool = False
    strict: bool = False
    sandbox: bool = False
    verbose: bool = False
    command: str = ""


def choices(context: typer.Context, given: Mapping[str, object]) -> Choices:
    """Collect a command's options, the same ones of the group before it (`plan -f X diff`), and the common ones.

    Args:
        context: The command's context.
        given: The command's parameters by name, as `locals()` has them; others are ignored.
    """
    names = {f.name for f in fields(Choices)}
    own = Choices(**{k: v for k, v in given.items() if k in names})  # type: ignore[arg-type]  # typer has checked them
    before = context.parent.obj if context.parent and isinstance(context.parent.obj, Choices) else Choices()
    merged = {name: getattr(own, name) for name in names}
    defaults = Choices()
    for name in names:
        if merged[name] == getattr(defaults, name):
            merged[name] = getattr(before, name)
    top = context.find_object(Common) or Common()
    joined = Choices(**merged)
    return replace(
        joined,
        sandbox=joined.sandbox or top.sandbox,
        verbose=joined.verbose or top.verbose,
        command=top.command,
    )


def _table() -> str:
    return "table"


def _hour() -> float:
    return DEFAULT_TIMEOUT_MIN


def _eight() -> int:
    return DEFAULT_PARALLELISM


FileOption = Annotated[
    list[str],
    typer.Option(
        "--file", "-f", default_factory=list, show_default=False, envvar="GPUKUBE_FILE", metavar="PATH",
        help="Spec file, directory, quoted pattern, or - for stdin; may be repeated.",
    ),
]  # fmt: skip
SetOption = Annotated[
    list[str],
    typer.Option(
        "--set", default_factory=list, show_default=False, metavar="PATH=VALUE",
        help="Override a value of the spec: pools[0].nodes.count=2.",
    ),
]  # fmt: skip
ClusterOption = Annotated[
    list[str],
    typer.Option(
        "--cluster", default_factory=list, show_default=False, metavar="GLOB",
        help="Only clusters whose key in the spec matches.",
    ),
]  # fmt: skip
PoolOption = Annotated[
    list[str],
    typer.Option(
        "--pool", default_factory=list, show_default=False, metavar="GLOB", help="Only pools whose name matches."
    ),
]  # fmt: skip
PlaceOption = Annotated[
    list[str],
    typer.Option(
        "--cluster", default_factory=list, show_default=False, metavar="GLOB|ADDRESS",
        help="Only clusters whose key in the spec matches; or, without a spec, eks:ACCOUNT/REGION/NAME, "
        "aks:SUBSCRIPTION/RESOURCEGROUP/NAME, gke:PROJECT/LOCATION/NAME.",
    ),
]  # fmt: skip
OwnerOption = Annotated[
    list[str],
    typer.Option(
        "--owner", default_factory=list, show_default=False, metavar="NAME",
        help="Without a spec: whose pools may be changed (metadata.name of their spec).",
    ),
]  # fmt: skip
AdoptOption = Annotated[
    bool,
    typer.Option(
        "--adopt", default_factory=bool, show_default=False,
        help="Take over pools of the right name that nobody owns: they get our marks; a later apply does the rest.",
    ),
]  # fmt: skip
AdoptFromOption = Annotated[
    list[str],
    typer.Option(
        "--adopt-from", default_factory=list, show_default=False, metavar="OWNER",
        help="As --adopt, and pools too whose labels lost their marks while their tags still name OWNER.",
    ),
]  # fmt: skip
PruneOption = Annotated[
    bool,
    typer.Option(
        "--prune", default_factory=bool, show_default=False,
        help="Delete pools of this owner that the spec no longer declares, on the clusters it lists.",
    ),
]  # fmt: skip
ReplaceOption = Annotated[
    str,
    typer.Option(
        "--replace", default_factory=str, show_default=False, metavar="HOW",
        help="recreate: where a field cannot change on a live pool, delete the pool and make it again.",
    ),
]  # fmt: skip
DisruptionOption = Annotated[
    bool,
    typer.Option(
        "--allow-disruption", default_factory=bool, show_default=False,
        help="Allow changes in place that running pods suffer from.",
    ),
]  # fmt: skip
MigrateReleaseOption = Annotated[
    bool,
    typer.Option(
        "--migrate-release", default_factory=bool, show_default=False,
        help="Where pools need the GPU Operator and our device-plugin chart is there, or the reverse: uninstall first.",
    ),
]  # fmt: skip
AdoptReleaseOption = Annotated[
    bool,
    typer.Option(
        "--adopt-release", default_factory=bool, show_default=False,
        help="Take over a device-plugin release made with Helm by hand: its values are merged into ours.",
    ),
]  # fmt: skip
NoWaitOption = Annotated[
    bool,
    typer.Option(
        "--no-wait", default_factory=bool, show_default=False,
        help="Return when the clouds have taken the calls; `gpukube pool wait` waits and proves.",
    ),
]  # fmt: skip
FailFastOption = Annotated[
    bool,
    typer.Option(
        "--fail-fast", default_factory=bool, show_default=False,
        help="After the first failure begin nothing more; what has begun is finished.",
    ),
]  # fmt: skip
EventsOption = Annotated[
    str,
    typer.Option(
        "--events", default_factory=str, show_default=False, envvar="GPUKUBE_EVENTS", metavar="FILE",
        help="Write what happens as JSON Lines to this file, or with - to stdout.",
    ),
]  # fmt: skip
OutOption = Annotated[
    str,
    typer.Option(
        "--out", default_factory=str, show_default=False, metavar="FILE",
        help="Save the plan, for `gpukube pool apply FILE`.",
    ),
]  # fmt: skip
OutputOption = Annotated[
    str,
    typer.Option(
        "--output", "-o", default_factory=_table, show_default=False, envvar="GPUKUBE_OUTPUT", metavar="FORMAT",
        help="table (default), json, yaml; by command also wide, name, markdown, github, junit.",
    ),
]  # fmt: skip
FindingsOption = Annotated[
    str,
    typer.Option(
        "--output", "-o", default_factory=_table, show_default=False, envvar="GPUKUBE_OUTPUT", metavar="FORMAT",
        help="text (default), json, yaml, sarif (code scanning), github (annotations of a workflow).",
    ),
]  # fmt: skip
StrictOption = Annotated[
    bool,
    typer.Option(
        "--strict", default_factory=bool, show_default=False, envvar="GPUKUBE_STRICT",
        help="Take warnings for errors; hints stay hints.",
    ),
]  # fmt: skip
ChartOption = Annotated[
    str,
    typer.Option(
        "--chart", default_factory=str, show_default=False, envvar="GPUKUBE_CHART", metavar="PLACE",
        help="Device-plugin chart: a directory, a .tgz, an oci:// reference or a repository URL.",
    ),
]  # fmt: skip
TimeoutOption = Annotated[
    float,
    typer.Option(
        "--timeout", default_factory=_hour, show_default=False, envvar="GPUKUBE_TIMEOUT", metavar="MINUTES", min=0,
        help="How long to wait for the cloud (default 60).",
    ),
]  # fmt: skip
VerifyTimeoutOption = Annotated[
    float,
    typer.Option(
        "--timeout", default_factory=float, show_default=False, metavar="MINUTES", min=0,
        help="How long to wait for nodes and devices (default 0: look once).",
    ),
]  # fmt: skip
ProbeOption = Annotated[
    bool,
    typer.Option(
        "--probe", default_factory=bool, show_default=False,
        help="Also run a pod on each pool that asks for one device and lists it with nvidia-smi; it is removed again.",
    ),
]  # fmt: skip
ProbeImageOption = Annotated[
    str,
    typer.Option(
        "--probe-image", default_factory=str, show_default=False, envvar="GPUKUBE_PROBE_IMAGE", metavar="IMAGE",
        help="Image for --probe, from a mirror for instance (default: a pinned nvcr.io/nvidia/cuda base image).",
    ),
]  # fmt: skip
ProbeScaleUpOption = Annotated[
    bool,
    typer.Option(
        "--probe-scale-up", default_factory=bool, show_default=False,
        help="Probe autoscaled pools also where the pod makes the autoscaler start a node.",
    ),
]  # fmt: skip
ParallelismOption = Annotated[
    int,
    typer.Option(
        "--parallelism", default_factory=_eight, show_default=False, envvar="GPUKUBE_PARALLELISM", min=1, max=64,
        help="Clusters at once (default 8).",
    ),
]  # fmt: skip
YesOption = Annotated[
    bool,
    typer.Option("--yes", "-y", default_factory=bool, show_default=False, envvar="GPUKUBE_YES", help="Do not ask."),
]
SkipClusterOption = Annotated[
    bool,
    typer.Option(
        "--skip-cluster", default_factory=bool, show_default=False,
        help="Look at the pool APIs only, not inside the clusters.",
    ),
]  # fmt: skip
SandboxOption = Annotated[
    bool,
    typer.Option(
        "--sandbox", default_factory=bool, show_default=False, help="Run against the emulated clouds on loopback."
    ),
]  # fmt: skip
VerboseOption = Annotated[
    bool,
    typer.Option(
        "--verbose", "-v", default_factory=bool, show_default=False, help="Say more: causes, exact requests."
    ),
]  # fmt: skip
