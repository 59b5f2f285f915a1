"""Child processes with a deadline; the only module that starts any.

In scope: running a command in its own process group, once or as a server of requests, and ending the group. Out of
scope: what the command does, and how it ends when this process is killed (tether).
"""

from __future__ import annotations

import errno
import os
import select
import signal
import socket
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
"""Seconds between SIGTERM and SIGKILL."""
_POLL_S: Final = 0.2
"""Seconds between checks whether the run was stopped; the end of the child is noticed immediately."""

_GONE: Final = (ProcessLookupError, PermissionError)
"""Raised by killpg for a group that has ended and was not waited for yet: ESRCH on Linux, EPERM on macOS."""

_guard = threading.Lock()
_living: set[subprocess.Popen[str]] = set()


class DeadlinePassed(Exception):
    """The child was ended because its deadline passed."""


@dataclass(frozen=True, slots=True)
class Stop:
    """A request to stop a run before its deadline.

    Attributes:
        requested: Returns whether the run should stop.
        grace_s: Seconds that the child may still run after that.
        report: Called once when this grace period starts.
    """

    requested: Callable[[], bool]
    grace_s: float
    report: Callable[[], None] = lambda: None

    def at_once(self) -> Stop:
        """Return the same without grace, for a child that changes nothing."""
        return replace(self, grace_s=0.0, report=lambda: None)


class ServerEnded(Exception):
    """A server process ended instead of answering; the argument is its exit code (negative: a signal)."""


@dataclass(slots=True)
class _Patience:
    """How long to wait for a child: until its deadline, which a stop of the run moves forward."""

    end: float
    stop: Stop | None
    hurried: bool = False

    def poll_s(self) -> float:
        """Return the seconds until the next check for a stop, or until the deadline."""
        if self.stop and not self.hurried and self.stop.requested():
            self.end, self.hurried = min(self.end, time.monotonic() + self.stop.grace_s), True
            self.stop.report()
        left = max(0.0, self.end - time.monotonic())
        return left if self.stop is None or self.hurried else min(_POLL_S, left)

    @property
    def is_over(self) -> bool:
        """Whether the deadline has passed."""
        return time.monotonic() >= self.end


@dataclass(frozen=True, slots=True)
class Ended:
    """Result of a child: its exit code (negative: a signal) and output."""

    code: int
    out: str
    err: str


def run_child(  # noqa: PLR0913 -- named inputs of a child
    command: Sequence[str],
    *,
    stdin: str,
    environ: Mapping[str, str],
    deadline_s: float,
    keeps: Sequence[int] = (),
    stop: Stop | None = None,
) -> Ended:
    """Run a command until it exits.

    It gets its own session: Ctrl-C does not reach it, and it can be ended together with all that it started. It also
    ends if this process exits first, killed or not.

    Args:
        command: Program (a path) and arguments.
        stdin: Text for its standard input.
        environ: Its complete environment.
        deadline_s: Seconds after which the group gets SIGTERM, and soon after SIGKILL.
        keeps: Open files that it inherits.
        stop: Moves the deadline forward when the user requests a stop.

    Raises:
        DeadlinePassed: The deadline passed; no process of the group is running anymore.
        OSError: The program cannot be started.
    """
    if not os.access(command[0], os.X_OK):
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), command[0])
    child, lifeline = _start(command, environ, keeps)
    try:
        with child:
            return _attend(child, stdin, deadline_s, stop)
    finally:
        _forget(child, lifeline)


class Server:
    """A child that answers requests one after another, each a line on its standard input, which is a Unix socket.

    Used by one thread at a time. Like any child, it ends with this process.

    Args:
        command: Program (a path) and arguments.
        environ: Its complete environment.
        log: File that receives its standard output and error.

    Raises:
        OSError: The program cannot be started.
    """

    def __init__(self, command: Sequence[str], environ: Mapping[str, str], log: Path) -> None:
        self._channel, theirs = socket.socketpair()
        with theirs, log.open("ab") as output:
            self._child, self._lifeline = _start(command, environ, stdin=theirs.fileno(), output=output.fileno())
        self._channel.settimeout(0.0)  # all waiting uses poll

    @property
    def is_running(self) -> bool:
        """Whether the server is still running."""
        return self._child.poll() is None

    def send(self, request: str, *, deadline_s: float, keeps: Sequence[int] = (), stop: Stop | None = None) -> str:
        """Send a request and return the answer. After any exception the server has ended.

        Args:
            request: One line.
            deadline_s: Seconds after which the group gets SIGTERM, and soon after SIGKILL.
            keeps: Open files that it keeps while it works on this request.
            stop: Moves the deadline forward when the user requests a stop.

        Raises:
            DeadlinePassed: The deadline passed; no process of the group is running anymore.
            ServerEnded: It ended without an answer.
        """
        patience = _Patience(time.monotonic() + deadline_s, stop)
        try:
            answer = self._exchange(request.encode() + b"\n", keeps, patience)
        except BaseException:  # Ctrl-C too: leave no process running
            _end(self._child)
            self.end()
            raise
        if answer is None:
            code = self._child.wait()
            self.end()
            raise ServerEnded(code)
        return answer

    def _exchange(self, line: bytes, keeps: Sequence[int], patience: _Patience) -> str | None:
        """Write a line and read one; return None if the server has ended."""
        poll = select.poll()
        answer = bytearray()
        try:
            # The files are sent with the first byte; the rest is written as the socket has room.
            rest = memoryview(line)[socket.send_fds(self._channel, [line], keeps) :]
            while not answer.endswith(b"\n"):
                poll.register(self._channel, select.POLLIN | (select.POLLOUT if rest else 0))
                for _, event in poll.poll(patience.poll_s() * 1000):
                    if event & ~select.POLLOUT:
                        if not (part := self._channel.recv(1 << 16)):
                            return None
                        answer += part
                    elif rest:
                        rest = rest[self._channel.send(rest) :]
                if not answer.endswith(b"\n") and patience.is_over:
                    raise DeadlinePassed("no answer in time")
        except ConnectionError:
            return None
        return answer.decode("utf-8", "replace")

    def end(self) -> None:
        """End the server immediately, with all that it started; calling it again is harmless."""
        if self._channel.fileno() < 0:
            return
        self._channel.close()
        _kill(self._child)
        self._child.wait()
        _forget(self._child, self._lifeline)


def kill_all() -> None:
    """Kill every running child of this process and all that it started, because this process is exiting."""
    with _guard:
        for child in _living:
            if child.poll() is None:
                _kill(child)


def _start(
    command: Sequence[str],
    environ: Mapping[str, str],
    keeps: Sequence[int] = (),
    *,
    stdin: int = subprocess.PIPE,
    output: int = subprocess.PIPE,
) -> tuple[subprocess.Popen[str], int]:
    """Start a command on a tether; return it and this end of the lifeline."""
    theirs, lifeline = os.pipe()
    try:
        child = subprocess.Popen(  # noqa: S603 -- only gpukube's own commands: helm, or this Python
            [sys.executable, "-I", "-S", str(Path(tether.__file__)), str(theirs), *command],
            stdin=stdin,
            stdout=output,
            stderr=output,
            env=dict(environ),
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
            pass_fds=(theirs, *keeps),
        )
    except BaseException:
        os.close(lifeline)
        raise
    finally:
        os.close(theirs)
    with _guard:
        _living.add(child)
    return child, lifeline


def _forget(child: subprocess.Popen[str], lifeline: int) -> None:
    with _guard:
        _living.discard(child)
    os.close(lifeline)


def _attend(child: subprocess.Popen[str], stdin: str, deadline_s: float, stop: Stop | None) -> Ended:
    try:
        out, err = _follow(child, stdin, _Patience(time.monotonic() + deadline_s, stop))
    except subprocess.TimeoutExpired as error:
        _end(child)
        raise DeadlinePassed(f"no end after {deadline_s:g} s") from error
    except BaseException:  # Ctrl-C too: leave no process running
        _end(child)
        raise
    return Ended(child.returncode, out, err)


def _follow(child: subprocess.Popen[str], stdin: str, patience: _Patience) -> tuple[str, str]:
    """Wait for the end; raise TimeoutExpired if it comes too late."""
    given: str | None = stdin
    # communicate() keeps what it read before a timeout, so it can be called again after each check for a stop.
    while True:
        try:
            return child.communicate(given, timeout=patience.poll_s())
        except subprocess.TimeoutExpired:
            if patience.is_over:
                raise
        given = None  # the first call has sent it


def _kill(child: subprocess.Popen[str]) -> None:
    with suppress(*_GONE):
        os.killpg(child.pid, signal.SIGKILL)


def _end(child: subprocess.Popen[str]) -> None:
    for sign, grace_s in ((signal.SIGTERM, _GRACE_S), (signal.SIGKILL, None)):
        with suppress(*_GONE):
            os.killpg(child.pid, sign)
        with suppress(subprocess.TimeoutExpired):
            child.communicate(timeout=grace_s)
            return
