"""`gpukube-sandbox`: starting the sandbox, looking at it, and letting it fail.

In scope: the command line, as texts and exit codes. Out of scope: what a command does (`daemon`, `worldfile`,
`environment`). Standard library only, and little of it: a shell waits for `env`.
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

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpukube_sandbox.daemon import SandboxInfo

_ERROR, _BAD_INPUT, _INTERRUPTED = 1, 4, 130
"""Exit codes, as gpukube's."""
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
        arguments: Those of the process unless given.

    Returns:
        The exit code: 0, 1 where the command failed, 4 where the command line or a file is wrong.
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
    except BrokenPipeError:  # the reader has gone; what is left in the buffer shall not complain at the end
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
        "--cluster", action="append", default=[], metavar="ADDRESS", help=f"declare a cluster: {_FORMS}; repeatable"
    )
    command.add_argument("--world", metavar="FILE", help="declare what this file lists: clusters, roles, subnets ...")
    command.add_argument("--speed", type=_Number(1, 10_000), default=60.0, help="how many times faster time runs (60)")
    command.add_argument(
        "--idle-timeout", type=_Number(0), default=240.0, metavar="MINUTES",
        help="stop after so many minutes without a request (240); 0: never",
    )  # fmt: skip
    command.set_defaults(run=_up)

    command = commands.add_parser("env", help="print shell lines that lead clients into it", description=_env.__doc__)
    command.set_defaults(run=_env)

    command = commands.add_parser("status", help="show clusters, pools and nodes", description=_status.__doc__)
    _add_output(command)
    command.add_argument("-v", "--verbose", action="store_true", help="show the nodes too")
    command.set_defaults(run=_status)

    command = commands.add_parser(
        "fault", help="make requests and operations fail", description="Make requests and operations fail."
    )
    _add_fault_commands(command.add_subparsers(title="commands", metavar="COMMAND", required=True))

    command = commands.add_parser("deny", help="refuse calls that need a permission", description=_deny.__doc__)
    command.add_argument(
        "permissions", nargs="*", metavar="PERMISSION",
        help="as its cloud writes it, or a verb and a resource of Kubernetes: 'create pods/eviction'",
    )  # fmt: skip
    command.set_defaults(run=_deny)

    command = commands.add_parser(
        "upgrade", help="upgrade a control plane or node images", description=_upgrade.__doc__
    )
    command.add_argument("cluster", metavar="CLUSTER", help="its name; all clusters of that name are upgraded")
    command.add_argument("--kubernetes-version", default="", metavar="VERSION", help="of the control plane")
    command.add_argument("--images", default="", metavar="YYYYMMDD", help="publish node images of this date")
    command.set_defaults(run=_upgrade)

    command = commands.add_parser("reset", help="delete all clusters and faults", description=_reset.__doc__)
    command.set_defaults(run=_reset)
    command = commands.add_parser("down", help="stop it and delete everything in it", description=_down.__doc__)
    command.set_defaults(run=_down)
    return parser


def _add_fault_commands(commands: argparse._SubParsersAction[_Parser]) -> None:
    kinds = "\n".join(f"  {kind:12} {text}" for kind, text in KINDS.items())
    add = commands.add_parser(
        "add", help="make the next match fail", description=_add_fault.__doc__, epilog=f"kinds:\n{kinds}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add.add_argument("kind", metavar="KIND", help="what goes wrong: see below")
    add.add_argument("--service", metavar="NAME", help=f"only one: {', '.join(SERVICES[1:])}")
    add.add_argument("--method", metavar="METHOD", help="only requests of this HTTP method")
    add.add_argument("--path", metavar="REGEX", help="only requests whose path, or path and query, match somewhere")
    add.add_argument("--cluster", metavar="REGEX", help="only operations on clusters of such a name")
    add.add_argument("--pool", metavar="REGEX", help="only operations on node pools of such a name")
    add.add_argument("--nth", type=int, metavar="N", help="the first match that fails (1)")
    add.add_argument("--times", type=int, metavar="N", help="how many matches fail from there on (1); 0: all")
    add.add_argument("--status", type=int, metavar="STATUS", help="of kind status: the HTTP status (500)")
    add.add_argument(
        "--header", dest="headers", action="append", metavar="KEY=VALUE",
        help="of kind status: a header, such as Retry-After=5; repeatable",
    )  # fmt: skip
    add.add_argument("--code", metavar="CODE", help="of kinds status and operation: the cloud's error code")
    add.add_argument(
        "--seconds", type=float, metavar="S",
        help="of kind delay: how much later; of node pools, in the sandbox's time: how much longer, how long unlisted",
    )  # fmt: skip
    add.set_defaults(run=_add_fault)
    shown = commands.add_parser("list", help="show faults, and how often each struck", description=_list_faults.__doc__)
    _add_output(shown)
    shown.set_defaults(run=_list_faults)
    clear = commands.add_parser("clear", help="remove all faults", description=_clear_faults.__doc__)
    clear.set_defaults(run=_clear_faults)


def _add_output(command: argparse.ArgumentParser) -> None:
    command.add_argument("-o", "--output", choices=("table", "json"), default="table", help="table (default) or json")


class _Number:
    """A number with bounds."""

    def __init__(self, least: float, most: float = float("inf")) -> None:
        self._least, self._most = least, most
        self._name = f"a number from {least:g} to {most:g}" if most < float("inf") else f"a number, {least:g} or more"

    def __call__(self, text: str) -> float:
        with suppress(ValueError):
            number = float(text)
            if self._least <= number <= self._most:
                return number
        message = f'"{text}" is not {self._name}'
        raise argparse.ArgumentTypeError(message)


def _up(options: argparse.Namespace) -> None:
    """Start the sandbox in the background unless it is running, and declare what exists in it."""
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
            message = f"the running sandbox is of version {info.version or 'before 0.1'}, and this is {__version__}"
            raise _Failure(message, "gpukube-sandbox down, then run this again; everything in it is gone then")
        with _failures(f"write {_FORMS}", _BAD_INPUT):
            for cluster in clusters:
                daemon.call(info, "POST", "clusters", cluster)
            populate(info, entries)
    except WorldError as error:
        raise _Failure(str(error), error.mistakes[0].fix, _BAD_INPUT) from error
    _say(f"the sandbox is running; its state is in {info.state_dir}")
    if info.idle_timeout_s:
        _say(f"it stops after {info.idle_timeout_s / 60:g} minutes without a request")
    _say('use it: eval "$(gpukube-sandbox env)"')


def _address(text: str) -> dict[str, object]:
    provider, _, rest = text.partition(":")
    parts, names = rest.split("/"), _ADDRESS.get(provider, ())
    if len(parts) != len(names) or not all(parts):
        raise _Failure(f'"{text}" is not the address of a cluster', f"write {_FORMS}", _BAD_INPUT)
    return {"provider": provider, **dict(zip(names, parts, strict=True))}


def _env(_: argparse.Namespace) -> None:
    """Print shell lines that lead aws, az, gcloud, kubectl, helm and SDKs into the sandbox, and hide real credentials.

    Use them as: eval "$(gpukube-sandbox env)".
    """
    from gpukube_sandbox.environment import shell_lines  # noqa: PLC0415 - not needed by the others

    with _failures():
        lines = shell_lines(_running(), os.environ)
    for line in lines:
        _say(line)


def _status(options: argparse.Namespace) -> None:
    """Show the emulated clusters with their node pools."""
    with _failures():
        document = daemon.status(_running())
    if options.output == "json":
        _say(json.dumps({"schemaVersion": 0, "kind": "Sandbox", **document}, indent=2))
        return
    clusters = document["clusters"]
    if not (isinstance(clusters, list) and clusters):
        _say(f"no clusters; gpukube-sandbox up --cluster declares one: {_FORMS}")
        return
    for cluster in clusters:
        _say(f"{cluster['name']}  {cluster['provider']}  {cluster['state']}")
        for pool in cluster["pools"]:
            machine = next((pool[key] for key in _TYPES if key in pool), "?")
            _say(f"  pool {pool['name']}  {pool['state']}  {pool['count']} x {machine}")
            for node in pool["nodes"] if options.verbose else ():
                _say(f"    node {node}")


def _add_fault(options: argparse.Namespace) -> None:
    """Make the next request, or the next operation on a node pool, that matches fail."""
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
    _say(f"added fault {number}; gpukube-sandbox fault clear removes all")


def _list_faults(options: argparse.Namespace) -> None:
    """Show all faults, how many requests or operations each matched, and how many it struck."""
    with _failures():
        faults = daemon.list_faults(_running())
    if options.output == "json":
        _say(json.dumps({"schemaVersion": 0, "kind": "SandboxFaults", "faults": faults}, indent=2))
        return
    if not faults:
        _say("no faults")
    for fault in faults:
        rest = {key: value for key, value in fault.items() if key not in ("number", "action", "seen", "struck")}
        _say(
            f"{fault['number']}  {fault['action']}  {' '.join(f'{key}={_plain(value)}' for key, value in rest.items())}"
        )
        _say(f"   {fault['seen']} matched, {fault['struck']} struck")


def _plain(value: object) -> str:
    return ",".join(f"{key}:{item}" for key, item in value.items()) if isinstance(value, dict) else f"{value}"


def _clear_faults(_: argparse.Namespace) -> None:
    """Remove all faults; requests that hang are answered."""
    with _failures():
        daemon.clear_faults(_running())
    _say("all faults removed")


def _deny(options: argparse.Namespace) -> None:
    """Refuse calls that need one of these permissions, in place of those refused before; none: allow everything."""
    with _failures("spell it as in the cloud's error message; docs/sandbox.md, Permissions, has examples", _BAD_INPUT):
        daemon.deny_permissions(_running(), *options.permissions)
    _say(f"now denied: {', '.join(options.permissions)}" if options.permissions else "everything is allowed")


def _upgrade(options: argparse.Namespace) -> None:
    """Upgrade the control plane of a cluster at once, or publish newer node images; its node pools stay as they are."""
    with _failures(
        "gpukube-sandbox status lists the clusters; write a version as 1.35 or 1.35.1, a date as 20260915", _BAD_INPUT
    ):
        daemon.upgrade_cluster(
            _running(), options.cluster, kubernetes_version=options.kubernetes_version, images=options.images
        )
    _say("done; node pools are unchanged")


def _reset(_: argparse.Namespace) -> None:
    """Delete all clusters and faults; the sandbox keeps running."""
    with _failures():
        daemon.reset(_running())
    _say("all clusters deleted")


def _down(_: argparse.Namespace) -> None:
    """Stop the sandbox; everything in it is gone, its keys and credentials too."""
    with _failures():
        stopped = daemon.down(default_state_dir())
    _say("stopped" if stopped else "the sandbox was not running")


def _running() -> SandboxInfo:
    info = daemon.load_info(default_state_dir())
    if info is None:
        loss = find_loss(default_state_dir())
        raise _Failure("the sandbox is not running" + (f": {loss}" if loss else ""), "gpukube-sandbox up")
    return info


@contextmanager
def _failures(fix: str = "gpukube-sandbox down, then try again", refused: int = _ERROR) -> Iterator[None]:
    """Tell of what the sandbox reports in one line, with what to do.

    Args:
        fix: What to do where it refuses what a command says.
        refused: The exit code then.
    """
    try:
        yield
    except daemon.Refused as error:
        raise _Failure(str(error), fix, refused) from error
    except daemon.SandboxError as error:
        raise _Failure(str(error), "gpukube-sandbox down, then try again") from error
    except OSError as error:
        message = f"{default_state_dir()}: {(error.strerror or str(error)).lower()}"
        raise _Failure(message, "set GPUKUBE_SANDBOX_STATE to a directory that you may write to") from error


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
