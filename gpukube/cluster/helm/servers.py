"""The processes with the embedded Helm: started on demand, and reused until the run ends.

In scope: which process answers a request, its environment and directory, and its end. Out of scope: the requests
(embedded), waiting for a process and ending it (process.child).

A process has one request at a time, so that a hanging one can be killed without affecting others; runs in parallel
threads have a process each. Starting one costs 0.15 s of CPU, most requests less.

The environment never decides which cluster is used: the library would merge a kubeconfig from the environment into its
input, so each request names a complete kubeconfig, and the process has no Helm settings.
"""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpukube.cluster.process.child import Server, ServerEnded
from gpukube.cluster.process.scratch import Scratch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpukube.cluster.process.child import Stop

_Key = frozenset[tuple[str, str]]
_LOG: Final = "log"

_guard = threading.Lock()
_idle: dict[_Key, list[_Process]] = {}
_open_blocks = 0
"""Number of open `kept` blocks."""


class Crashed(Exception):
    """The process ended instead of answering.

    Attributes:
        code: Its exit code (negative: a signal).
        log: End of its output.
    """

    def __init__(self, code: int, log: str) -> None:
        super().__init__(code)
        self.code = code
        self.log = log


@dataclass(frozen=True, slots=True)
class _Process:
    server: Server
    directory: Scratch

    def end_of_log(self) -> str:
        try:
            log = (self.directory.path / _LOG).read_text(encoding="utf-8", errors="replace")
        except OSError:  # a second Ctrl-C deletes the directory while its thread still reads
            return ""
        return log.strip()[-300:]

    def end(self) -> None:
        self.server.end()
        self.directory.remove()  # including what a killed library leaves behind


@contextmanager
def kept() -> Iterator[None]:
    """Keep processes for later requests while a block runs; end them after the outermost block."""
    global _open_blocks  # noqa: PLW0603 -- shared by all engines of this process
    with _guard:
        _open_blocks += 1
    try:
        yield
    finally:
        left: list[_Process] = []
        with _guard:
            _open_blocks -= 1
            if not _open_blocks:
                left = [process for processes in _idle.values() for process in processes]
                _idle.clear()
        for process in left:
            process.end()


def request_helm(
    environ: Mapping[str, str],
    request: str,
    *,
    deadline_s: float,
    keeps: Sequence[int] = (),
    stop: Stop | None = None,
) -> str:
    """Send a request to the embedded Helm and return its answer, a line of JSON each.

    Args:
        environ: The user's environment.
        request: See child.Request.
        deadline_s: Seconds after which the process is ended.
        keeps: Open files that it keeps while it works.
        stop: Moves the deadline forward when the user requests a stop.

    Raises:
        DeadlinePassed: The deadline passed; nothing of the request is running anymore.
        Crashed: The process ended on its own.
    """
    key = frozenset(embedded_environ(environ, "").items())
    process = _take_idle(key) or _start(environ)
    try:
        answer = process.server.send(request, deadline_s=deadline_s, keeps=keeps, stop=stop)
    except ServerEnded as ended:
        raise Crashed(ended.args[0], process.end_of_log()) from ended
    else:
        with _guard:
            if _open_blocks:
                _idle.setdefault(key, []).append(process)
                return answer
        process.end()
        return answer
    finally:
        if not process.server.is_running:
            process.end()


def embedded_environ(environ: Mapping[str, str], directory: str) -> dict[str, str]:
    """Return the environment without Helm and kubeconfig settings, and with private directories for Helm.

    The process lives as long as its run: garbage collection costs a sixth of its time for nothing until its memory
        nears the limit (Go's runtime: GOGC, GOMEMLIMIT).
    """
    kept = {name: value for name, value in environ.items() if name != "KUBECONFIG" and not name.startswith("HELM_")}
    homes = {f"HELM_{kind}_HOME": f"{directory}/{kind.lower()}" for kind in ("CACHE", "CONFIG", "DATA")}
    return {**kept, **homes, "TMPDIR": directory, "GOGC": "off", "GOMEMLIMIT": "256MiB"}


def _take_idle(key: _Key) -> _Process | None:
    """Return an idle process; clean up one that has ended in the meantime (out of memory)."""
    while True:
        with _guard:
            waiting = _idle.get(key)
            process = waiting.pop() if waiting else None
        if process is None or process.server.is_running:
            return process
        process.end()


def _start(environ: Mapping[str, str]) -> _Process:
    directory = Scratch("helm")
    try:
        command = [sys.executable, "-P", str(Path(__file__).with_name("child.py"))]
        server = Server(command, embedded_environ(environ, str(directory.path)), directory.path / _LOG)
    except BaseException:
        directory.remove()
        raise
    return _Process(server, directory)
