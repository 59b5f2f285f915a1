"""`gpukube-sandbox`: starts and inspects the sandbox, injects faults, and limits stock.

In scope: the command line, its output and exit codes. Out of scope: what a command does (`daemon`, `worldfile`,
`environment`). It imports little, and only from the standard library, because a shell waits for `env`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, NoReturn

from gpukube_sandbox import __version__, daemon
from gpukube_sandbox.faults import KINDS, SERVICES, parse_fault
from gpukube_sandbox.state import default_state_dir, find_loss
from gpukube_sandbox.stock import ANY, MARKETS, PROVIDERS, parse_entry

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpukube_sandbox.daemon import SandboxInfo

_ERROR, _BAD_INPUT, _INTERRUPTED = 1, 4, 130
"""Exit codes, the same as gpukube's."""
_ADDRESS: Final = {
    "eks": ("account", "region", "name"),
    "aks": ("subscription", "resourceGroup", "name"),
    "gke": ("project", "location", "name"),
}
_FORMS: Final = "eks:ACCOUNT/REGION/NAME, aks:SUBSCRIPTION/RESOURCEGROUP/NAME or gke:PROJECT/LOCATION/NAME"
_TYPES: Final = ("vmSize", "instanceType", "machineType")


class _Failure(Exception):
    def __init__(self, message: str, fix: str, exit_code: int = _ERROR) -> None:
        super().__init__(message)
        self.fix = fix
        self.exit_code = exit_code


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _Failure(message, f"{self.prog} --help", _BAD_INPUT)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: Command line; defaults to that of the process.

    Returns:
        The exit code: 0, 1 if the command failed, 4 if the command line or a file is invalid.
    """
    try:
        options = _parser().parse_args(arguments)
        options.run(options)
        sys.stdout.flush()
    except _Failure as failure:
        sys.stderr.write(f"error: {failure}\n    fix: {failure.fix}\n")
        return failure.exit_code
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:  # the reader exited; discard the buffer, or Python complains at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _ERROR
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="gpukube-sandbox",
        description="EKS, AKS and GKE emulated on loopback, with a Kubernetes API in each cluster.",
        epilog="State is kept in GPUKUBE_SANDBOX_STATE, by default below your user's state directory.",
    )
    parser.add_argument("--version", action="version", version=f"gpukube-sandbox {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    command = commands.add_parser("up", help="start the sandbox in the background", description=_up.__doc__)
    command.add_argument(
        "--cluster", action="append", default=[], metavar="ADDRESS", help=f"create a cluster: {_FORMS}; repeatable"
    )
    command.add_argument("--world", metavar="FILE", help="create the clusters, roles, subnets, ... in this file")
    command.add_argument("--speed", type=_Number(1, 10_000), default=60.0, help="speed-up of the sandbox's clock (60)")
    command.add_argument(
        "--idle-timeout", type=_Number(0), default=240.0, metavar="MINUTES",
        help="stop after this many minutes without a request (240); 0: never",
    )  # fmt: skip
    command.set_defaults(run=_up)

    command = commands.add_parser("env", help="print shell commands that point clients to it", description=_env.__doc__)
    command.set_defaults(run=_env)

    command = commands.add_parser("status", help="show clusters, pools and nodes", description=_status.__doc__)
    _add_output(command)
    command.add_argument("-v", "--verbose", action="store_true", help="show nodes too")
    command.set_defaults(run=_status)

    command = commands.add_parser(
        "fault", help="make requests and operations fail", description="Make requests and operations fail."
    )
    _add_fault_commands(command.add_subparsers(title="commands", metavar="COMMAND", required=True))

    command = commands.add_parser(
        "stock", help="limit the machines that a cloud has", description="Limit the machines that a cloud has."
    )
    _add_stock_commands(command.add_subparsers(title="commands", metavar="COMMAND", required=True))

    command = commands.add_parser("deny", help="refuse calls that need a permission", description=_deny.__doc__)
    command.add_argument(
        "permissions", nargs="*", metavar="PERMISSION",
        help="the cloud's name of it, or a Kubernetes verb and resource: 'create pods/eviction'",
    )  # fmt: skip
    command.set_defaults(run=_deny)

    command = commands.add_parser(
        "upgrade", help="upgrade a control plane or node images", description=_upgrade.__doc__
    )
    command.add_argument("cluster", metavar="CLUSTER", help="name; all clusters with this name are upgraded")
    command.add_argument("--kubernetes-version", default="", metavar="VERSION", help="version of the control plane")
    command.add_argument("--images", default="", metavar="YYYYMMDD", help="publish node images with this date")
    command.set_defaults(run=_upgrade)

    command = commands.add_parser("reset", help="delete all clusters and faults", description=_reset.__doc__)
    command.set_defaults(run=_reset)
    command = commands.add_parser("down", help="stop the sandbox and delete its content", description=_down.__doc__)
    command.set_defaults(run=_down)
    return parser


def _add_fault_commands(commands: argparse._SubParsersAction[_Parser]) -> None:
    kinds = "\n".join(f"  {kind:15} {text}" for kind, text in KINDS.items())
    add = commands.add_parser(
        "add", help="make the next match fail", description=_add_fault.__doc__, epilog=f"kinds:\n{kinds}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add.add_argument("kind", metavar="KIND", help="type of fault, see below")
    add.add_argument("--service", metavar="NAME", help=f"only requests to this service: {', '.join(SERVICES[1:])}")
    add.add_argument("--method", metavar="METHOD", help="only requests with this HTTP method")
    add.add_argument("--path", metavar="REGEX", help="only requests whose path, or path and query, contain a match")
    add.add_argument(
        "--cluster", metavar="REGEX", help="only operations and nodes of clusters whose name contains a match"
    )
    add.add_argument("--pool", metavar="REGEX", help="only operations and nodes of pools whose name contains a match")
    add.add_argument("--nth", type=int, metavar="N", help="the first match that fails (1)")
    add.add_argument("--times", type=int, metavar="N", help="how many matches fail, starting with the Nth (1); 0: all")
    add.add_argument("--status", type=int, metavar="STATUS", help="HTTP status for kind status (500)")
    add.add_argument(
        "--header", dest="headers", action="append", metavar="KEY=VALUE",
        help="header for kind status, such as Retry-After=5; repeatable",
    )  # fmt: skip
    add.add_argument("--code", metavar="CODE", help="the cloud's error code, for kinds status and operation")
    add.add_argument(
        "--seconds", type=float, metavar="S",
        help="for kind delay: the delay; for node pools: sandbox seconds of the delay, or until the pool is listed",
    )  # fmt: skip
    add.set_defaults(run=_add_fault)
    shown = commands.add_parser("list", help="show faults and their use", description=_list_faults.__doc__)
    _add_output(shown)
    shown.set_defaults(run=_list_faults)
    clear = commands.add_parser("clear", help="remove all faults", description=_clear_faults.__doc__)
    clear.set_defaults(run=_clear_faults)


def _add_stock_commands(commands: argparse._SubParsersAction[_Parser]) -> None:
    put = commands.add_parser("set", help="limit a type of machine", description=_set_stock.__doc__)
    put.add_argument("provider", metavar="PROVIDER", help=f"{', '.join(PROVIDERS)}, or '*'")
    put.add_argument("type", metavar="TYPE", help="machine type, or '*'")
    put.add_argument("--zone", default=ANY, metavar="ZONE", help="only in this zone, such as us-east-1a; default: each")
    put.add_argument("--kind", default=ANY, metavar="KIND", help=f"only bought as {', '.join(MARKETS)}; default: each")
    put.add_argument("--free", type=int, required=True, metavar="N", help="machines in total from now on")
    put.add_argument(
        "--then", action="append", default=[], metavar="S=N",
        help="machines in total from S sandbox seconds from now on; repeatable",
    )  # fmt: skip
    put.set_defaults(run=_set_stock)
    shown = commands.add_parser("list", help="show limits and their use", description=_list_stock.__doc__)
    _add_output(shown)
    shown.set_defaults(run=_list_stock)
    clear = commands.add_parser("clear", help="remove all limits", description=_clear_stock.__doc__)
    clear.set_defaults(run=_clear_stock)


def _add_output(command: argparse.ArgumentParser) -> None:
    command.add_argument("-o", "--output", choices=("table", "json"), default="table", help="table (default) or json")


class _Number:
    """A command-line number with bounds."""

    def __init__(self, minimum: float, maximum: float = float("inf")) -> None:
        self._minimum, self._maximum = minimum, maximum
        is_bounded = maximum < float("inf")
        self._name = f"a number from {minimum:g} to {maximum:g}" if is_bounded else f"a number, {minimum:g} or more"

    def __call__(self, text: str) -> float:
        with suppress(ValueError):
            number = float(text)
            if self._minimum <= number <= self._maximum:
                return number
        message = f'"{text}" is not {self._name}'
        raise argparse.ArgumentTypeError(message)


def _up(options: argparse.Namespace) -> None:
    """Start the sandbox in the background unless it is running, and create the requested clusters."""
    from gpukube_sandbox.worldfile import WorldError, populate, read_world  # noqa: PLC0415 - loads PyYAML

    clusters = [_address(text) for text in options.cluster]
    try:
        entries = read_world(options.world) if options.world else []
        loss = find_loss(default_state_dir())
        with _failures():
            info = daemon.up(default_state_dir(), options.speed, idle_timeout_s=options.idle_timeout * 60)
        if loss:
            sys.stderr.write(f"warning: {loss}\n")
        if info.version != __version__:
            message = f"the running sandbox has version {info.version or 'before 0.1'}, this command has {__version__}"
            raise _Failure(message, "run gpukube-sandbox down, which deletes its content, then retry")
        with _failures(f"write {_FORMS}", _BAD_INPUT):
            for cluster in clusters:
                daemon.call(info, "POST", "clusters", cluster)
            populate(info, entries)
    except WorldError as error:
        raise _Failure(str(error), error.mistakes[0].fix, _BAD_INPUT) from error
    _print(f"the sandbox is running; its state is in {info.state_dir}")
    if info.idle_timeout_s:
        _print(f"it stops after {info.idle_timeout_s / 60:g} minutes without a request")
    _print('use it: eval "$(gpukube-sandbox env)"')


def _address(text: str) -> dict[str, object]:
    provider, _, rest = text.partition(":")
    parts, names = rest.split("/"), _ADDRESS.get(provider, ())
    if len(parts) != len(names) or not all(parts):
        raise _Failure(f'"{text}" is not a cluster address', f"write {_FORMS}", _BAD_INPUT)
    return {"provider": provider, **dict(zip(names, parts, strict=True))}


def _env(_: argparse.Namespace) -> None:
    """Print shell commands that point aws, az, gcloud, kubectl, helm, and SDKs to the sandbox and hide credentials.

    Run them with: eval "$(gpukube-sandbox env)".
    """
    from gpukube_sandbox.environment import shell_lines  # noqa: PLC0415 - other commands do not need it

    with _failures():
        lines = shell_lines(_running(), os.environ)
    for line in lines:
        _print(line)


def _status(options: argparse.Namespace) -> None:
    """Show the emulated clusters and their node pools."""
    with _failures():
        document = daemon.status(_running())
    if options.output == "json":
        _print(json.dumps({"schemaVersion": 0, "kind": "Sandbox", **document}, indent=2))
        return
    clusters = document["clusters"]
    if not (isinstance(clusters, list) and clusters):
        _print(f"no clusters; gpukube-sandbox up --cluster creates one: {_FORMS}")
        return
    for cluster in clusters:
        _print(f"{cluster['name']}  {cluster['provider']}  {cluster['state']}")
        for pool in cluster["pools"]:
            machine = next((pool[key] for key in _TYPES if key in pool), "?")
            _print(f"  pool {pool['name']}  {pool['state']}  {pool['count']} x {machine}")
            for node in pool["nodes"] if options.verbose else ():
                _print(f"    node {node}")


def _add_fault(options: argparse.Namespace) -> None:
    """Make the next matching request, or the next matching operation on a node pool, fail."""
    given = {key: value for key, value in vars(options).items() if key not in ("run", "kind") and value is not None}
    if headers := given.get("headers"):
        pairs = [header.partition("=") for header in headers]
        if wrong := [header for header, (key, _, value) in zip(headers, pairs, strict=True) if not (key and value)]:
            raise _Failure(f'"{wrong[0]}" is not a header', "write KEY=VALUE", _BAD_INPUT)
        given["headers"] = {key: value for key, _, value in pairs}
    fault = {"action": options.kind, **given}
    try:
        parse_fault(fault)
    except ValueError as error:
        raise _Failure(str(error), "gpukube-sandbox fault add --help lists kinds and options", _BAD_INPUT) from error
    with _failures():
        number = daemon.call(_running(), "POST", "faults", fault)["number"]
    _print(f"added fault {number}; gpukube-sandbox fault clear removes all")


def _list_faults(options: argparse.Namespace) -> None:
    """Show all faults, how many requests or operations each matched, and into how many it was injected."""
    with _failures():
        faults = daemon.list_faults(_running())
    if options.output == "json":
        _print(json.dumps({"schemaVersion": 0, "kind": "SandboxFaults", "faults": faults}, indent=2))
        return
    if not faults:
        _print("no faults")
    for fault in faults:
        rest = {key: value for key, value in fault.items() if key not in ("number", "action", "seen", "struck")}
        details = " ".join(f"{key}={_format_value(value)}" for key, value in rest.items())
        _print(f"{fault['number']}  {fault['action']}  {details}")
        _print(f"   {fault['seen']} matched, {fault['struck']} struck")


def _format_value(value: object) -> str:
    return ",".join(f"{key}:{item}" for key, item in value.items()) if isinstance(value, dict) else f"{value}"


def _clear_faults(_: argparse.Namespace) -> None:
    """Remove all faults; hanging requests are answered."""
    with _failures():
        daemon.clear_faults(_running())
    _print("all faults removed")


def _set_stock(options: argparse.Namespace) -> None:
    """Limit a type of machine, per zone and way of buying; the same type, zone and kind again replaces the limit."""
    then: dict[str, int] = {}
    for text in options.then:
        at, _, count = text.partition("=")
        if not (at and count.isdigit()):
            raise _Failure(f'"{text}" is not a step', "write SECONDS=MACHINES, such as 600=4", _BAD_INPUT)
        then[at] = int(count)
    place = {key: getattr(options, key) for key in ("provider", "type", "zone", "kind")}
    entry = {**place, "free": options.free, "then": then}
    try:
        parse_entry(entry)
    except ValueError as error:
        raise _Failure(str(error), "gpukube-sandbox stock set --help lists clouds and kinds", _BAD_INPUT) from error
    with _failures():
        daemon.call(_running(), "POST", "stock", entry)
    _print("stock is limited; gpukube-sandbox stock clear removes all limits")


def _list_stock(options: argparse.Namespace) -> None:
    """Show all limits, how many machines there are in total now, and how many of them are taken."""
    with _failures():
        stock = daemon.list_stock(_running())
    if options.output == "json":
        _print(json.dumps({"schemaVersion": 0, "kind": "SandboxStock", "stock": stock}, indent=2))
        return
    if not stock:
        _print("no limits")
    for entry in stock:
        rest = {key: value for key, value in entry.items() if key not in ("provider", "type", "now", "taken")}
        details = " ".join(f"{key}={_format_value(value)}" for key, value in rest.items() if value not in ({}, ANY))
        _print(f"{entry['provider']}  {entry['type']}  {details}")
        _print(f"   {entry['now']} in total, {entry['taken']} taken")


def _clear_stock(_: argparse.Namespace) -> None:
    """Remove all limits; every type has machines again."""
    with _failures():
        daemon.clear_stock(_running())
    _print("all limits removed")


def _deny(options: argparse.Namespace) -> None:
    """Refuse calls that need one of these permissions, replacing the previous list; without any, allow all calls."""
    with _failures("spell it as in the cloud's error message; docs/sandbox.md, Permissions, has examples", _BAD_INPUT):
        daemon.deny_permissions(_running(), *options.permissions)
    _print(f"now denied: {', '.join(options.permissions)}" if options.permissions else "everything is allowed")


def _upgrade(options: argparse.Namespace) -> None:
    """Upgrade a cluster's control plane immediately, or publish newer node images; node pools stay unchanged."""
    with _failures(
        "gpukube-sandbox status lists the clusters; versions look like 1.35 or 1.35.1, dates like 20260915",
        _BAD_INPUT,
    ):
        daemon.upgrade_cluster(
            _running(), options.cluster, kubernetes_version=options.kubernetes_version, images=options.images
        )
    _print("done; node pools are unchanged")


def _reset(_: argparse.Namespace) -> None:
    """Delete all clusters and faults; the sandbox keeps running."""
    with _failures():
        daemon.reset(_running())
    _print("all clusters deleted")


def _down(_: argparse.Namespace) -> None:
    """Stop the sandbox and delete its content, including keys and credentials."""
    with _failures():
        stopped = daemon.down(default_state_dir())
    _print("stopped" if stopped else "the sandbox was not running")


def _running() -> SandboxInfo:
    info = daemon.load_info(default_state_dir())
    if info is None:
        loss = find_loss(default_state_dir())
        raise _Failure("the sandbox is not running" + (f": {loss}" if loss else ""), "gpukube-sandbox up")
    return info


@contextmanager
def _failures(fix: str = "gpukube-sandbox down, then try again", refused: int = _ERROR) -> Iterator[None]:
    """Convert sandbox errors to one-line failures with a fix.

    Args:
        fix: Fix for a command that the sandbox refuses.
        refused: Exit code for a refused command.
    """
    try:
        yield
    except daemon.Refused as error:
        raise _Failure(str(error), fix, refused) from error
    except daemon.SandboxError as error:
        raise _Failure(str(error), "gpukube-sandbox down, then try again") from error
    except OSError as error:
        message = f"{default_state_dir()}: {(error.strerror or str(error)).lower()}"
        raise _Failure(message, "set GPUKUBE_SANDBOX_STATE to a writable directory") from error


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
