"""`gpukube sandbox ...`, and running a command inside the sandbox, through the package gpukube-sandbox."""

from __future__ import annotations

import os
import shlex
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from gpukube import __version__
from gpukube.cli.options import SPEC, Choices, option, takes
from gpukube.cli.stderr import write_stderr
from gpukube.errors import CloudError, Finding, MissingExtra, SpecError, Where

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from gpukube.core.values import ClusterRef, Desired, Settings
    from gpukube.engine.plan.prepare import Prepared

PLACE = ("subscription", "resourceGroup", "account", "region", "project", "location")
"""Identity fields that locate a cluster in its cloud; the others select the credentials."""
SPEED = 60.0
"""Sandbox seconds per second: a pool that takes five minutes takes five seconds."""
IDLE_MINUTES = 240.0
"""Minutes without a request after which a sandbox stops on its own."""
KUBE_TIMEOUT_S = 60.0
"""Timeout of the Kubernetes API: one process serves all clusters, so a busy machine is slow but always answers."""

app = typer.Typer(help="Run emulated clouds on loopback: no account, no cost.", no_args_is_help=True)
fault_app = typer.Typer(help="Make requests and operations in the sandbox fail.", no_args_is_help=True)
app.add_typer(fault_app, name="fault")

SpeedOption = Annotated[float, typer.Option("--speed", min=1, max=10000, help="How many times faster time runs.")]
IdleOption = Annotated[
    float,
    typer.Option(
        "--idle-timeout", min=0, metavar="MINUTES", help="Stop after this many minutes without a request; 0: never."
    ),
]

WorldOption = Annotated[
    str,
    typer.Option(
        "--world",
        metavar="PATH",
        help="Create what this file declares: clusters, roles, subnets ... (docs/sandbox.md, What exists).",
    ),
]


def _complete_kind(incomplete: str) -> list[str]:
    return [kind for kind in _door().fault_kinds() if kind.startswith(incomplete)]


def _complete_service(incomplete: str) -> list[str]:
    return [name for name in _door().fault_services() if name.startswith(incomplete)]


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultOptions:
    """What a fault matches and does; options not given use the sandbox's defaults."""

    service: str = option(
        "--service", default="", metavar="NAME", autocompletion=_complete_service,
        help="Only one service: aws, arm, gke, kube or charts.",
    )  # fmt: skip
    method: str = option("--method", default="", metavar="METHOD", help="Only requests of this HTTP method.")
    path: str = option(
        "--path", default="", metavar="REGEX", help="Only requests whose path and query contain a match."
    )
    cluster: str = option(
        "--cluster", default="", metavar="REGEX", help="Only operations on clusters whose name matches."
    )
    pool: str = option("--pool", default="", metavar="REGEX", help="Only operations on pools whose name matches.")
    nth: int = option("--nth", default=1, min=1, metavar="N", help="Number of the first match that fails (default 1).")
    times: int = option(
        "--times", default=1, min=0, metavar="N", help="How many matches fail, starting there (default 1); 0: all."
    )
    status: int = option("--status", default=0, metavar="STATUS", help="With status: the HTTP status (default 500).")
    headers: tuple[str, ...] = option(
        "--header", default=(), metavar="KEY=VALUE", help="With status: a header, such as Retry-After=5; repeatable."
    )
    code: str = option("--code", default="", metavar="CODE", help="With status, operation: the cloud's error code.")
    seconds: float = option(
        "--seconds", default=0.0, min=0, metavar="S",
        help="With delay: how much later. For node pools, in sandbox time: how much longer, or how long unlisted.",
    )  # fmt: skip


class Info(Protocol):
    """The fields of a running sandbox that gpukube reads."""

    @property
    def endpoints(self) -> dict[str, str]:
        """Provider -> endpoint of its emulated cloud."""

    @property
    def charts_url(self) -> str:
        """URL of the chart repository with the emulated charts."""

    @property
    def secret(self) -> str:
        """Secret that the emulated clouds require."""

    @property
    def sandbox_id(self) -> str:
        """Identifier that is new at each start."""

    @property
    def version(self) -> str:
        """Version of the package that runs."""

    @property
    def idle_timeout_s(self) -> float:
        """Seconds without a request until it stops on its own; 0: never."""


class Shelter:
    """A running sandbox, as a command sees it.

    Args:
        info: Endpoints and secret of the sandbox.
    """

    def __init__(self, info: Info) -> None:
        self._info = info

    @property
    def settings(self) -> Settings:
        """Return settings that reach the emulated clouds, with dummy credentials only."""
        from gpukube.core.values import Settings

        return Settings(
            endpoints=self._info.endpoints, sandbox=True, secret=self._info.secret, kube_timeout_s=KUBE_TIMEOUT_S
        )

    @property
    def chart(self) -> str:
        """URL of the chart repository with the emulated charts."""
        return self._info.charts_url

    def environment(self) -> dict[str, str]:
        """Return the environment for child processes: no credentials, no access beyond loopback."""
        from gpukube.guard import child_environment

        return child_environment(os.environ)

    def register(self, prepared: Prepared) -> None:
        """Declare missing clusters of specs and the objects that their pools name; print what was created on stderr.

        A cluster that is named only by its address is not declared: the emulated cloud answers whether it exists.

        Raises:
            SpecError: The sandbox cannot create a cluster: its cloud is not emulated, or its location is invalid.
            MissingExtra: Its cloud is emulated with the cloud's own library, which is not installed.
        """
        if prepared.addressed:
            return
        for key, cluster in prepared.clusters.items():
            made = self._declare(cluster, prepared.desired[key])
            if made:
                write_stderr(f"sandbox: declared {', '.join(made)}")

    def populate(self, entries: list[object]) -> None:
        """Declare the entries of a world file.

        Raises:
            SpecError: The sandbox rejects an entry.
        """
        with _sandbox_errors():
            _require_right(_door().declare_world(self._info, entries))

    def _declare(self, cluster: ClusterRef, pools: Iterable[Desired]) -> list[str]:
        """Declare one cluster and the objects that its pools name; return descriptions of those created."""
        provider = cluster.provider
        place = {key: value for key, value in cluster.identity.items() if key in PLACE}
        try:
            answer = _daemon().call(
                self._info, "POST", "clusters", {"provider": provider, "name": cluster.name, **place}
            )
            made = [f"cluster {cluster.key}"] if answer["created"] else []
            place["cluster"] = cluster.name
            # In one call: a fleet's thousands of pools would take longer to declare than to read.
            each = [{"zones": list(pool.target.zones), "request": dict(pool.create.params)} for pool in pools]
            if each:
                made += _daemon().declare(self._info, provider, **place, each=each)
        except _daemon().NotInstalled as error:
            from gpukube.installed import install_command

            fix = install_command(provider)
            raise MissingExtra(str(error), where=cluster.where, fix=fix) from error
        except _daemon().SandboxError as error:
            raise SpecError(
                str(error),
                where=cluster.where,
                fix="exclude the cluster with --cluster, or run against the real cloud",
                code="sandbox-cluster",
            ) from error
        return made


def enter() -> Shelter:
    """Start the sandbox unless it is running, and block every connection beyond loopback in this process.

    Raises:
        CloudError: The shell has the variables of a sandbox that has stopped.
    """
    from gpukube import guard

    guard.refuse_non_loopback()  # before anything of the sandbox is read
    _require_own()
    return Shelter(_up(SPEED, IDLE_MINUTES))


@app.command()
@takes(*SPEC, "speed", "idle_timeout", "world")
def up(
    choices: Choices, *, speed: SpeedOption = SPEED, idle_timeout: IdleOption = IDLE_MINUTES, world: WorldOption = ""
) -> None:
    """Start the sandbox in the background. With -f or --world: also create what a spec or world file declares."""
    from gpukube.engine import offline
    from gpukube.engine.plan.prepare import prepare

    entries, mistakes = _door().read_world(world) if world else ([], [])
    _require_right(mistakes)
    info = _up(speed, idle_timeout)
    shelter = Shelter(info)
    shelter.populate(entries)
    if choices.files:
        shelter.register(prepare(offline.load(choices.files, sets=choices.sets)))
    typer.echo(f"the sandbox is running; its state is in {_state_dir()}")
    if info.idle_timeout_s:
        typer.echo(f"it stops after {_duration(info.idle_timeout_s)} without a request")
    typer.echo('use it: gpukube --sandbox ..., or eval "$(gpukube sandbox env)"')


@app.command()
def down() -> None:
    """Stop the sandbox and delete everything in it."""
    with _sandbox_errors():
        stopped = _daemon().down(_state_dir())
    typer.echo("stopped" if stopped else "the sandbox was not running")


@app.command()
@takes("output", "verbose")
def status(choices: Choices) -> None:
    """Show the emulated clusters with their pools and nodes."""
    from gpukube.cli import output as out

    out.require_format(choices.output, "Sandbox")
    with _sandbox_errors():
        document = {"schemaVersion": 0, "kind": "Sandbox", **_daemon().status(_running())}
    out.show(document, choices.output, verbose=choices.verbose)


@app.command()
def env() -> None:
    """Print shell lines that point tools at the sandbox. For gpukube, az, kubectl, helm; hides real credentials."""
    with _sandbox_errors():
        exports = {"GPUKUBE_SANDBOX": "1", **_door().env(_running())}
    for name in _door().names_to_unset(os.environ, exports):
        typer.echo(f"unset {name}")
    for name, value in exports.items():
        typer.echo(f"export {name}={shlex.quote(value)}")


@app.command()
def reset() -> None:
    """Delete all clusters and pools; the sandbox keeps running."""
    with _sandbox_errors():
        _daemon().reset(_running())
    typer.echo("all clusters deleted")


@app.command()
@takes()
def upgrade(
    _: Choices,
    cluster: Annotated[
        str, typer.Argument(metavar="CLUSTER", show_default=False, help="Name of the cluster in its cloud.")
    ],
    *,
    kubernetes_version: str = option(
        "--kubernetes-version", default="", metavar="VERSION", help="New version of the control plane; node pools stay."
    ),
    images: str = option(
        "--images",
        default="",
        metavar="YYYYMMDD",
        help="Publish node images with this date, newer than the running ones.",
    ),
) -> None:
    """Upgrade a control plane or publish newer node images. Pools are then outdated: `pool apply --upgrade`."""
    info = _running()
    try:
        _daemon().upgrade_cluster(info, cluster, kubernetes_version=kubernetes_version, images=images)
    except _daemon().SandboxError as error:
        fix = "gpukube sandbox status lists the clusters; versions look like 1.35 or 1.35.1, dates like 20260915"
        raise SpecError(str(error), where=Where("sandbox upgrade"), fix=fix, code="sandbox-upgrade") from error
    typer.echo("done; node pools are unchanged")


@app.command()
@takes()
def deny(
    _: Choices,
    permissions: Annotated[
        list[str],
        typer.Argument(
            metavar="[PERMISSION]...",
            show_default=False,
            help="Permission as the cloud spells it, or a Kubernetes verb and resource: 'create pods/eviction'.",
        ),
    ] = [],  # noqa: B006 - typer requires a list; nobody mutates it
) -> None:
    """Deny calls that need one of these permissions. Replaces earlier denials; without arguments, allows everything."""
    info = _running()
    try:
        _daemon().deny_permissions(info, *permissions)
    except _daemon().SandboxError as error:
        fix = "spell it as in the cloud's error message; docs/sandbox.md, Permissions, has examples"
        raise SpecError(str(error), where=Where("sandbox deny"), fix=fix, code="sandbox-permission") from error
    typer.echo(f"now denied: {', '.join(permissions)}" if permissions else "everything is allowed")


@fault_app.command()
@takes()
def add(
    _: Choices,
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            show_default=False,
            autocompletion=_complete_kind,
            help="Requests: status, drop-before, drop-after, delay, hang, hang-after. "
            "Node pools: stock-out, quota, operation, unlisted. "
            "NVIDIA's DRA driver: late-driver, slices-lost, incomplete-pool, tainted-device, stale-slice.",
        ),
    ],
    *,
    options: FaultOptions,
) -> None:
    """Make the next matching request or operation fail. docs/sandbox.md describes each KIND."""
    fault = _fault(kind, options)
    try:
        _door().check_fault(fault)
    except ValueError as error:
        fix = "use a kind and options that docs/sandbox.md lists"
        raise SpecError(str(error), where=Where("sandbox fault add"), fix=fix, code="sandbox-fault") from error
    with _sandbox_errors():
        number = _daemon().call(_running(), "POST", "faults", fault)["number"]
    typer.echo(f"added fault {number}; gpukube sandbox fault clear removes all")


def _fault(kind: str, options: FaultOptions) -> dict[str, object]:
    """Return a fault in the form that the control API reads."""
    headers = {}
    for text in options.headers:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise SpecError(
                f'"{text}" is not a header', where=Where("--header"), fix="write KEY=VALUE", code="sandbox-fault"
            )
        headers[name] = value
    given = {
        "service": options.service,
        "method": options.method,
        "path": options.path,
        "cluster": options.cluster,
        "pool": options.pool,
        "status": options.status,
        "headers": headers,
        "code": options.code,
        "seconds": options.seconds,
    }
    chosen = {key: value for key, value in given.items() if value}
    return {"action": kind, "nth": options.nth, "times": options.times, **chosen}


@fault_app.command("list")
@takes("output", "verbose")
def list_faults(choices: Choices) -> None:
    """List pending faults and how often each has struck."""
    from gpukube.cli import output as out

    out.require_format(choices.output, "SandboxFaults")
    with _sandbox_errors():
        document = {"schemaVersion": 0, "kind": "SandboxFaults", "faults": _daemon().list_faults(_running())}
    out.show(document, choices.output, verbose=choices.verbose)


@fault_app.command()
def clear() -> None:
    """Remove all faults; hanging requests are answered."""
    with _sandbox_errors():
        _daemon().clear_faults(_running())
    typer.echo("all faults removed")


def _state_dir() -> Path:
    directory: Path = _door().default_state_dir()
    return directory


def _up(speed: float, idle_minutes: float) -> Info:
    loss = _door().find_loss(_state_dir())
    with _sandbox_errors():
        info: Info = _daemon().up(_state_dir(), speed, idle_timeout_s=idle_minutes * 60)
    if loss:
        write_stderr(f"warning: {loss}")
    if info.version != __version__:
        raise CloudError(
            f"the running sandbox is from gpukube {info.version or 'before 0.1'}, but this is {__version__}",
            where="sandbox",
            why="the emulated clouds of two versions answer differently",
            fix="run gpukube sandbox down, which deletes everything in the sandbox, then run this again",
            code="sandbox-version",
        )
    return info


def _duration(seconds: float) -> str:
    """Format a duration: "4 hours", "1.5 hours", "20 minutes"."""
    number, unit = (seconds / 3600, "hour") if seconds >= 3600 else (seconds / 60, "minute")  # noqa: PLR2004 - an hour
    return f"{number:g} {unit}{'' if number == 1 else 's'}"


def _require_own() -> None:
    """Check that the sandbox whose variables this shell has is still running.

    Without this, gpukube would start an empty sandbox and answer "no pools", while aws, az and kubectl in the same
    shell would call ports that nobody listens on.
    """
    own = os.environ.get("GPUKUBE_SANDBOX_ID")
    if not own:
        return
    info = _daemon().load_info(_state_dir())
    if info is None or info.sandbox_id != own:
        raise CloudError(
            "the sandbox of this shell has stopped",
            where="sandbox",
            why=f"GPUKUBE_SANDBOX_ID is {own}, "
            + ("and no sandbox is running" if info is None else f"and the running one is {info.sandbox_id}"),
            fix='gpukube sandbox up && eval "$(gpukube sandbox env)"',
            code="sandbox-gone",
        )


@contextmanager
def _sandbox_errors() -> Iterator[None]:
    """Convert an error of the sandbox to a gpukube error."""
    try:
        yield
    except _daemon().SandboxError as error:
        raise CloudError(str(error), where="sandbox", fix="run gpukube sandbox down, then try again") from error


def _running() -> Info:
    info: Info | None = _daemon().load_info(_state_dir())
    if info is None:
        raise CloudError("the sandbox is not running", where="sandbox", fix="gpukube sandbox up")
    return info


def _require_right(mistakes: list[tuple[str, int, int, str, str]]) -> None:
    """Raise if a world file has mistakes."""
    if mistakes:
        raise SpecError.of(
            [
                Finding("sandbox-world", Where(file, line, column), message, fix=fix)
                for file, line, column, message, fix in mistakes
            ]
        )


def _door() -> Any:  # noqa: ANN401 - a module of a package that gpukube cannot import types from
    from gpukube.installed import load_sandbox

    return load_sandbox()


def _daemon() -> Any:  # noqa: ANN401 - as above
    return _door().daemon
