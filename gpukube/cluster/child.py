"""Child processes with a deadline: the one place that starts any.

Lives here: running a command in a process group of its own, and ending the group. Must not live here: what it is for.
"""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["DeadlinePassed", "Ended", "run_child"]

_GRACE_S: Final = 2.0


class DeadlinePassed(Exception):
    """The child was ended because its time was up."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a child ended: its exit code (negative: a signal) and what it wrote."""

    code: int
    out: str
    err: str


def run_child(
    command: Sequence[str], *, stdin: str, environ: Mapping[str, str], deadline_s: float, keeps: Sequence[int] = ()
) -> Ended:
    """Run a command to its end.

    It gets a session of its own: Ctrl-C does not reach it, and it and all it started can be ended together. A
    parent that is killed leaves it to finish what it began.

    Args:
        command: Program (a path) and arguments.
        stdin: Text to give it.
        environ: Its whole environment.
        deadline_s: Seconds after which the group is told to end, and soon after is killed.
        keeps: Open files that it inherits.

    Raises:
        DeadlinePassed: The deadline passed; nothing of the group runs any more.
        OSError: The program cannot be started.
    """
    child = subprocess.Popen(  # noqa: S603 -- the command is ours: helm, or this Python
        list(command),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(environ),
        text=True,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
        pass_fds=tuple(keeps),
    )
    with child:
        try:
            out, err = child.communicate(stdin, timeout=deadline_s)
        except subprocess.TimeoutExpired as error:
            _end(child)
            raise DeadlinePassed(f"no end after {deadline_s:g} s") from error
        except BaseException:  # Ctrl-C too: nothing of ours may be left running
            _end(child)
            raise
    return Ended(child.returncode, out, err)


def _end(child: subprocess.Popen[str]) -> None:
    for sign, grace_s in ((signal.SIGTERM, _GRACE_S), (signal.SIGKILL, None)):
        with suppress(ProcessLookupError):
            os.killpg(child.pid, sign)
        with suppress(subprocess.TimeoutExpired):
            child.communicate(timeout=grace_s)
            return
