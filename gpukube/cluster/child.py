"""Child processes with a deadline: the one place that starts any.

Lives here: running a command in a process group of its own, and ending the group. Must not live here: what it is for.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["DeadlinePassed", "Ended", "Stop", "run_child"]

_GRACE_S: Final = 2.0
_LOOK_S: Final = 0.2
"""Between two looks at whether the run was stopped; the end of the child is noticed at once."""


class DeadlinePassed(Exception):
    """The child was ended because its time was up."""


@dataclass(frozen=True, slots=True)
class Stop:
    """How a run is stopped before its deadline.

    Attributes:
        asked: Whether it is to stop.
        grace_s: Seconds that the child then still has.
    """

    asked: Callable[[], bool]
    grace_s: float


@dataclass(frozen=True, slots=True)
class Ended:
    """How a child ended: its exit code (negative: a signal) and what it wrote."""

    code: int
    out: str
    err: str


def run_child(  # noqa: PLR0913 -- what a child gets, by name
    command: Sequence[str],
    *,
    stdin: str,
    environ: Mapping[str, str],
    deadline_s: float,
    keeps: Sequence[int] = (),
    stop: Stop | None = None,
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
        stop: Brings the deadline nearer when the user asks to stop.

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
            out, err = _follow(child, stdin, time.monotonic() + deadline_s, stop)
        except subprocess.TimeoutExpired as error:
            _end(child)
            raise DeadlinePassed(f"no end after {deadline_s:g} s") from error
        except BaseException:  # Ctrl-C too: nothing of ours may be left running
            _end(child)
            raise
    return Ended(child.returncode, out, err)


def _follow(child: subprocess.Popen[str], stdin: str, end: float, stop: Stop | None) -> tuple[str, str]:
    """Wait for the end; TimeoutExpired when it comes too late."""
    given: str | None = stdin
    hurried = False
    while True:
        if stop and not hurried and stop.asked():
            end, hurried = min(end, time.monotonic() + stop.grace_s), True
        left = max(0.0, end - time.monotonic())
        look_s = left if stop is None or hurried else min(_LOOK_S, left)
        try:
            return child.communicate(given, timeout=look_s)
        except subprocess.TimeoutExpired:
            if time.monotonic() >= end:
                raise
        given = None  # it has been taken over by the first call


def _end(child: subprocess.Popen[str]) -> None:
    for sign, grace_s in ((signal.SIGTERM, _GRACE_S), (signal.SIGKILL, None)):
        with suppress(ProcessLookupError):
            os.killpg(child.pid, sign)
        with suppress(subprocess.TimeoutExpired):
            child.communicate(timeout=grace_s)
            return
