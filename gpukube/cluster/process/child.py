"""Child processes with a deadline: the one place that starts any.

Lives here: running a command in a process group of its own, and ending the group. Must not live here: what it is for,
how it ends when this process is killed (tether).
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpukube.cluster.process import tether

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_GRACE_S: Final = 2.0
"""Between SIGTERM and SIGKILL."""
_LOOK_S: Final = 0.2
"""Between two looks at whether the run was stopped; the end of the child is noticed at once."""

_guard = threading.Lock()
_living: set[subprocess.Popen[str]] = set()


class DeadlinePassed(Exception):
    """The child was ended because its time was up."""


@dataclass(frozen=True, slots=True)
class Stop:
    """How a run is stopped before its deadline.

    Attributes:
        requested: Whether it is to stop.
        grace_s: Seconds that the child then still has.
        report: Told once when the child is given these seconds.
    """

    requested: Callable[[], bool]
    grace_s: float
    report: Callable[[], None] = lambda: None

    def at_once(self) -> Stop:
        """Give no grace: for a child that changes nothing."""
        return replace(self, grace_s=0.0, report=lambda: None)


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

    It gets a session of its own: Ctrl-C does not reach it, and it and all it started can be ended together. When this
    process ends before it, killed or not, it is ended too.

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
    if not os.access(command[0], os.X_OK):
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), command[0])
    lifeline, ours = os.pipe()
    try:
        child = _start(command, environ, (lifeline, *keeps))
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(lifeline)
    try:
        with child:
            return _attend(child, stdin, deadline_s, stop)
    finally:
        with _guard:
            _living.discard(child)
        os.close(ours)


def kill_all() -> None:
    """Kill every child of this process that still runs, at once, with all that it started: the process ends."""
    with _guard:
        for child in _living:
            if child.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)


def _start(command: Sequence[str], environ: Mapping[str, str], keeps: Sequence[int]) -> subprocess.Popen[str]:
    """Start a command on a tether, whose end is the first of the files it keeps."""
    child = subprocess.Popen(  # noqa: S603 -- the command is ours: helm, or this Python
        [sys.executable, "-I", "-S", str(Path(tether.__file__)), str(keeps[0]), *command],
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
    with _guard:
        _living.add(child)
    return child


def _attend(child: subprocess.Popen[str], stdin: str, deadline_s: float, stop: Stop | None) -> Ended:
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
    # communicate() keeps what it has read when it times out, so it can be called again between looks at the stop.
    while True:
        if stop and not hurried and stop.requested():
            end, hurried = min(end, time.monotonic() + stop.grace_s), True
            stop.report()
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
