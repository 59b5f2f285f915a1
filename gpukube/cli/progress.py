"""Progress on stderr: live rows on a terminal, timestamped lines without one."""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self, TextIO

from gpukube.cli.rendering.text import record

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from gpukube.cli.live_rows import LiveRows
    from gpukube.engine.run.events import Event


def progress_on(stream: TextIO) -> LiveRows | PlainLines:
    """Choose the form for the stream: rows need a terminal that can redraw them, outside CI."""
    if stream.isatty() and not os.environ.get("CI"):
        from gpukube.cli.console import console_on  # rich, which plain lines do not need
        from gpukube.cli.live_rows import LiveRows

        console = console_on(stream)
        if console.is_interactive:
            return LiveRows(console)
    return PlainLines(stream)


class PlainLines:
    """One line per event with news: for pipes, logs, and CI."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._last: dict[str, str] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        """Start; nothing to prepare."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End; nothing to clean up."""

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Do nothing: plain lines do not interfere with a prompt."""
        yield

    def __call__(self, event: Event) -> None:
        """Write the event unless it repeats the subject's last one."""
        line = f"{event.phase}: {event.message}"
        with self._lock:
            if self._last.get(event.subject) == line:
                return
            self._last[event.subject] = line
            stamp = time.strftime("%H:%M:%S", time.localtime(event.at))
            text = " ".join(f"{stamp} {event.subject} {line}".split())
            self._stream.write(f"{record(text)}\n")
            self._stream.flush()
