"""The sandbox's interface for gpukube, registered as entry point `door` in the group `gpukube.sandbox`.

In scope: the interface and its version. Out of scope: the implementation.

`PROTOCOL` increases when something that gpukube uses is removed or changes its meaning; gpukube rejects a package with
another number. Slow imports are inside the functions that need them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube_sandbox import __version__, daemon
from gpukube_sandbox.daemon import NotInstalled, SandboxError, SandboxInfo
from gpukube_sandbox.state import default_state_dir, find_loss

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "PROTOCOL",
    "VERSION",
    "NotInstalled",
    "SandboxError",
    "SandboxInfo",
    "check_fault",
    "daemon",
    "declare_world",
    "default_state_dir",
    "env",
    "fault_kinds",
    "fault_services",
    "find_loss",
    "names_to_unset",
    "read_world",
]

PROTOCOL = 1
VERSION = __version__


def env(info: SandboxInfo) -> dict[str, str]:
    """Return the variables that point clients to a sandbox, see `environment.env`."""
    from gpukube_sandbox import environment  # noqa: PLC0415

    return environment.env(info)


def names_to_unset(environ: Mapping[str, str], given: Mapping[str, str]) -> list[str]:
    """Return the names of variables with real credentials, see `environment.names_to_unset`."""
    from gpukube_sandbox import environment  # noqa: PLC0415

    return environment.names_to_unset(environ, given)


def fault_kinds() -> list[str]:
    """Return the kinds of faults."""
    from gpukube_sandbox.faults import KINDS  # noqa: PLC0415

    return list(KINDS)


def fault_services() -> list[str]:
    """Return the services that requests can go to."""
    from gpukube_sandbox.faults import SERVICES  # noqa: PLC0415

    return list(SERVICES)


def check_fault(fault: dict[str, object]) -> None:
    """Validate a fault without a running sandbox.

    Raises:
        ValueError: The fault is invalid.
    """
    from gpukube_sandbox.faults import parse_fault  # noqa: PLC0415

    parse_fault(fault)


def read_world(path: str) -> tuple[list[object], list[tuple[str, int, int, str, str]]]:
    """Read a world file; return its entries and its mistakes (file, line, column, message, fix)."""
    from gpukube_sandbox import worldfile  # noqa: PLC0415 - loads PyYAML

    try:
        return list(worldfile.read_world(path)), []
    except worldfile.WorldError as error:
        return [], [(one.file, one.line, one.column, one.message, one.fix) for one in error.mistakes]


def declare_world(info: SandboxInfo, entries: list[object]) -> list[tuple[str, int, int, str, str]]:
    """Declare entries of a world file; return the mistake that stopped it, if any, in the format of `read_world`.

    Raises:
        SandboxError: It does not respond.
    """
    from gpukube_sandbox import worldfile  # noqa: PLC0415

    try:
        worldfile.populate(info, [entry for entry in entries if isinstance(entry, worldfile.Entry)])
    except worldfile.WorldError as error:
        return [(one.file, one.line, one.column, one.message, one.fix) for one in error.mistakes]
    return []
