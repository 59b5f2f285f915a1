"""gpukube on a terminal of 80 columns, for what it does there only: asking, live rows, color.

In scope: a pseudo-terminal around one process. Out of scope: assertions about what it shows.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

from sandbox_tests.waiting import PATIENCE_S, wait_for
from tests.cli.harness import ROOT, environment

if TYPE_CHECKING:
    from gpukube_sandbox.daemon import SandboxInfo

_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def _take_terminal() -> None:
    """Make standard input the controlling terminal, so that its Ctrl-C reaches the process, and counts.

    Tests that were started in the background of a script have inherited that it does not.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    """A terminal in which one command line runs.

    Args:
        info: The sandbox; None for a command that is run outside.
        words: The command line behind `gpukube --sandbox`, or `gpukube`.
        environ: Variables to add, or with "" to take away.
    """

    def __init__(self, info: SandboxInfo | None, *words: str | Path, **environ: str) -> None:
        self.seen = ""
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        variables = environment(info.state_dir if info else os.devnull, {"TERM": "xterm", **environ})
        self._process = subprocess.Popen(
            [sys.executable, "-m", "gpukube", *(["--sandbox"] if info else []), *map(str, words)],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={name: value for name, value in variables.items() if value and name != "COLUMNS"},
            cwd=ROOT,
            preexec_fn=_take_terminal,  # noqa: PLW1509 - no other thread runs here while it forks
        )
        os.close(slave)

    def __enter__(self) -> Self:
        """Hand out the terminal."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the process, should it still run."""
        self._process.kill()
        self._process.wait(PATIENCE_S)
        os.close(self._master)

    @property
    def text(self) -> str:
        """What was written, without codes for colors and movements."""
        return _CODES.sub("", self.seen).replace("\r", "")

    @property
    def line(self) -> str:
        """What stands in the line of the cursor: whatever was written after it was last cleared."""
        return _CODES.sub("", re.split(r"\n|\x1b\[2K", self.seen)[-1]).replace("\r", "")

    def wait_for_redrawing(self) -> None:
        """Wait longer than live rows stand still (a quarter of a second)."""
        until = time.monotonic() + 0.6
        while time.monotonic() < until:
            self._read()

    def wait_for_reading(self) -> None:
        """Wait until the process waits for a key: a signal just before would be seen with the next key only."""
        wait_for(self._is_reading, lambda: self.text)

    def _is_reading(self) -> bool:
        """Return whether the process sleeps in a call whose first argument is standard input."""
        self._read()
        about = Path("/proc") / str(self._process.pid)
        state = (about / "stat").read_text().rpartition(")")[2].split()[0]
        return state == "S" and (about / "syscall").read_text().split()[1:2] == ["0x0"]

    def expect(self, words: str) -> None:
        """Read until something is shown."""

        def is_shown() -> bool:
            goes_on = self._read()
            assert goes_on or words in self.text, self.text
            return words in self.text

        wait_for(is_shown, lambda: self.text)

    def type(self, words: str) -> None:
        """Answer."""
        os.write(self._master, words.encode())

    def end(self) -> int:
        """Read to the end and give the exit code."""
        wait_for(lambda: not self._read(), lambda: self.text)
        return self._process.wait(PATIENCE_S)

    def _read(self) -> bool:
        """Read what there is; False once the process has closed the terminal."""
        is_over = self._process.poll() is not None  # asked first: what it wrote before its end is read below
        ready, _, _ = select.select([self._master], [], [], 0.2)
        if not ready:
            return not is_over
        try:
            piece = os.read(self._master, 65536)
        except OSError:  # Linux says EIO when the last writer has gone
            return False
        self.seen += piece.decode(errors="replace")
        return bool(piece)
