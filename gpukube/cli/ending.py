"""Ending a run from outside: Ctrl-C, SIGTERM from a CI job or a machine, SIGHUP from a closed terminal.

In scope: what the first and second signal do, and ending the process if the report takes too long. Out of scope: how
calls and waits notice a stop (engine.calls, engine.wait).

The first signal stops the run: waits end, calls are abandoned, and the report is written. The second, or the time limit
for the report, ends the process at once, but cleanly: children killed, temporary files removed, the cursor shown.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from gpukube.cluster.process import child, scratch
from gpukube.engine.run.calls import are_left
from gpukube.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from gpukube.engine.run.clock import Clock

_CODES: Final[dict[int, ExitCode]] = {
    signal.SIGINT: ExitCode.INTERRUPTED,
    signal.SIGTERM: ExitCode.TERMINATED,
    signal.SIGHUP: ExitCode.HUNG_UP,
}
_LIMIT_S: Final = 14.0
"""Seconds from the first signal to the end of the process: 5 for the report, and about 10 more if Helm is running."""
_SHOW_CURSOR: Final = "\x1b[?25h"
_OVER: Final = 0
"""Sentinel in place of a signal: the run has ended."""


class Ending:
    """Handler for the signals of a run.

    Args:
        clock: Clock of the run; a signal stops it.
        resume: The command that resumes the run.
    """

    def __init__(self, clock: Clock, resume: str) -> None:
        self._clock = clock
        self._resume = resume
        self._number = 0
        # A handler may interrupt code that holds a lock, even one that stopping the clock needs. Putting into this
        # queue is safe there (docs: queue.SimpleQueue.put is reentrant), and a thread does the rest.
        self._came: queue.SimpleQueue[int] = queue.SimpleQueue()

    @property
    def exit_code(self) -> ExitCode:
        """The exit code by shell convention: 128 plus the signal."""
        return _CODES.get(self._number, ExitCode.INTERRUPTED)

    @property
    def is_hangup(self) -> bool:
        """Whether the terminal is gone, so that nobody reads further output."""
        return self._number == signal.SIGHUP

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Handle the signals while the block runs."""

        def handle(number: int, _frame: FrameType | None) -> None:
            self._came.put(number)

        watcher = threading.Thread(target=self._watch, name="gpukube-signals", daemon=True)
        watcher.start()
        with _handled_by(handle):
            try:
                yield
            finally:
                self._came.put(_OVER)

    @contextmanager
    def at_question(self) -> Iterator[None]:
        """End the process cleanly at a signal: a prompt has no work to wait for, and no answer means no."""

        def end(number: int, frame: FrameType | None) -> None:
            if number == signal.SIGINT:
                signal.default_int_handler(number, frame)
            sys.stderr.write("\n")
            raise SystemExit(_CODES[number])

        with _handled_by(end):
            yield

    def _watch(self) -> None:
        first = self._came.get()
        if first == _OVER:
            return
        self._number = first
        self._clock.stop()
        try:
            second = self._came.get(timeout=_LIMIT_S)
        except queue.Empty:
            second = first
        if second != _OVER:
            self._break_off()

    def _break_off(self) -> None:
        child.kill_all()
        scratch.remove_all()
        cursor = _SHOW_CURSOR if os.isatty(2) else ""
        message = f"{cursor}\ngpukube: interrupted; the cloud keeps working. To resume: {self._resume}\n"
        try:
            os.write(2, message.encode())  # not through sys.stderr: another writer may hold its lock
        finally:
            os._exit(self.exit_code)


@contextmanager
def _handled_by(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Handle the signals with a function; a SIGHUP that the user ignores (nohup) stays ignored."""
    before = {
        number: signal.signal(number, handler)
        for number in _CODES
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)


def leave(code: int) -> None:
    """End the process, skipping interpreter shutdown if calls were abandoned: it would wait for their threads."""
    if not are_left():
        return
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            continue  # the reader is gone, or the stream was closed because of that
    os._exit(code)
