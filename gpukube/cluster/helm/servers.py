"""The processes that hold the embedded Helm: started when one is needed, and used again until the run ends.

In scope: which process answers a request, its environment and directory, its end. Out of scope: what is asked
(embedded), how a process is waited for and ended (process.child).

A process has one request at a time, so that one that hangs can be killed and disturbs no other; runs in parallel
threads have a process each. Starting one costs 0.15 s of the processor, most requests less.

Nothing of the surroundings decides which cluster is meant: the library would mix a kubeconfig of the environment into
what it is given, so each request names a complete kubeconfig of ours, and the process has no Helm settings.
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
_keepers = 0
"""How many blocks of `kept` are open."""


class Crashed(Exception):
    """The process ended instead of answering.

    Attributes:
        code: Its exit code (negative: a signal).
        log: The last of what it wrote.
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
        except OSError:  # a second Ctrl-C kills the process and removes the directory while its thread still looks
            return ""
        return log.strip()[-300:]

    def end(self) -> None:
        self.server.end()
        self.directory.remove()  # also what the library leaves behind when it is killed


@contextmanager
def kept() -> Iterator[None]:
    """Keep processes for later requests while a block runs; at its end, the outermost one's, they are ended."""
    global _keepers  # noqa: PLW0603 -- the processes are this process's, as they are of no engine alone
    with _guard:
        _keepers += 1
    try:
        yield
    finally:
        left: list[_Process] = []
        with _guard:
            _keepers -= 1
            if not _keepers:
                left = [process for processes in _idle.values() for process in processes]
                _idle.clear()
        for process in left:
            process.end()


def ask(
    environ: Mapping[str, str],
    request: str,
    *,
    deadline_s: float,
    keeps: Sequence[int] = (),
    stop: Stop | None = None,
) -> str:
    """Return the answer of the embedded Helm to a request, a line of JSON both.

    Args:
        environ: The user's environment.
        request: See child.Request.
        deadline_s: Seconds after which the process is ended.
        keeps: Open files that it holds while it works.
        stop: Brings the deadline nearer when the user asks to stop.

    Raises:
        DeadlinePassed: The deadline passed; nothing that was asked goes on.
        Crashed: The process ended by itself.
    """
    key = frozenset(embedded_environ(environ, "").items())
    process = _take(key) or _start(environ)
    try:
        answer = process.server.ask(request, deadline_s=deadline_s, keeps=keeps, stop=stop)
    except ServerEnded as ended:
        raise Crashed(ended.args[0], process.end_of_log()) from ended
    else:
        with _guard:
            if _keepers:
                _idle.setdefault(key, []).append(process)
                return answer
        process.end()
        return answer
    finally:
        if not process.server.is_running:
            process.end()


def embedded_environ(environ: Mapping[str, str], directory: str) -> dict[str, str]:
    """Drop every Helm and kubeconfig setting; give Helm a directory of its own for cache and temporary files.

    The process lives as long as its run: collecting garbage costs a sixth of its time and gains nothing, until its
    memory nears the limit (Go's runtime: GOGC, GOMEMLIMIT).
    """
    kept = {name: value for name, value in environ.items() if name != "KUBECONFIG" and not name.startswith("HELM_")}
    homes = {f"HELM_{kind}_HOME": f"{directory}/{kind.lower()}" for kind in ("CACHE", "CONFIG", "DATA")}
    return {**kept, **homes, "TMPDIR": directory, "GOGC": "off", "GOMEMLIMIT": "256MiB"}


def _take(key: _Key) -> _Process | None:
    """Take a process that waits for work; one that has ended meanwhile (the machine's memory) is cleared away."""
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
