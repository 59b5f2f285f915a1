"""What gpukube uses of the sandbox, found by the entry point `door` of the group `gpukube.sandbox`.

In scope: that face, and its number. Out of scope: what anything of it does.

`PROTOCOL` counts up when something that gpukube uses goes or changes its meaning: a gpukube that knows another number
refuses this package. What takes time to load is loaded by the function that needs it.
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
    """Name the variables that lead clients into a sandbox, as `environment.env`."""
    from gpukube_sandbox import environment  # noqa: PLC0415

    return environment.env(info)


def names_to_unset(environ: Mapping[str, str], given: Mapping[str, str]) -> list[str]:
    """Name variables of real credentials, as `environment.names_to_unset`."""
    from gpukube_sandbox import environment  # noqa: PLC0415

    return environment.names_to_unset(environ, given)


def fault_kinds() -> list[str]:
    """Name what can go wrong."""
    from gpukube_sandbox.faults import KINDS  # noqa: PLC0415

    return list(KINDS)


def fault_services() -> list[str]:
    """Name the services that requests go to."""
    from gpukube_sandbox.faults import SERVICES  # noqa: PLC0415

    return list(SERVICES)


def check_fault(fault: dict[str, object]) -> None:
    """Check a fault without a sandbox.

    Raises:
        ValueError: It is none.
    """
    from gpukube_sandbox.faults import parse_fault  # noqa: PLC0415

    parse_fault(fault)


def read_world(path: str) -> tuple[list[object], list[tuple[str, int, int, str, str]]]:
    """Read a world file; gives its entries, and its mistakes: file, line, column, message, fix."""
    from gpukube_sandbox import worldfile  # noqa: PLC0415 - loads PyYAML

    try:
        return list(worldfile.read_world(path)), []
    except worldfile.WorldError as error:
        return [], [(one.file, one.line, one.column, one.message, one.fix) for one in error.mistakes]


def declare_world(info: SandboxInfo, entries: list[object]) -> list[tuple[str, int, int, str, str]]:
    """Declare entries of a world file; gives the mistake that it ended with, as `read_world`.

    Raises:
        SandboxError: It does not answer.
    """
    from gpukube_sandbox import worldfile  # noqa: PLC0415

    try:
        worldfile.populate(info, [entry for entry in entries if isinstance(entry, worldfile.Entry)])
    except worldfile.WorldError as error:
        return [(one.file, one.line, one.column, one.message, one.fix) for one in error.mistakes]
    return []
