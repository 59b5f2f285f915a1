"""Progress on stderr: live rows on a terminal, timestamped lines without one."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from rich.live import Live
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from rich.console import Console

    from gpukube.engine.events import Event

__all__ = ["LiveRows", "PlainLines", "progress_on"]

STYLES = {"done": "green", "failed": "red", "wait": "yellow", "verify": "cyan"}


def progress_on(console: Console) -> LiveRows | PlainLines:
    """Choose the form that fits the stream."""
    return LiveRows(console) if console.is_interactive else PlainLines(console)


class PlainLines:
    """One line per event that says something new: for pipes, logs and CI."""

    def __init__(self, console: Console) -> None:
        self._console = console
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
        """Leave the screen to a question; lines do not stand in its way."""
        yield

    def __call__(self, event: Event) -> None:
        """Write the event unless it repeats the subject's last one."""
        line = f"{event.phase}: {event.message}"
        with self._lock:
            if self._last.get(event.subject) == line:
                return
            self._last[event.subject] = line
            stamp = time.strftime("%H:%M:%S", time.localtime(event.at))
            self._console.print(Text(f"{stamp} {event.subject} {line}"))


class LiveRows:
    """One row per cluster and pool, redrawn in place: phase, elapsed time, the cloud's last word."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._rows: dict[str, Event] = {}
        self._since: dict[str, float] = {}
        self._lock = threading.Lock()
        self._live = Live(console=console, get_renderable=self._draw, refresh_per_second=4, transient=True)

    def __enter__(self) -> Self:
        """Start drawing."""
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop drawing and leave the screen to the result."""
        self._live.__exit__(kind, error, trace)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave the screen to a question, which the next drawing would overwrite."""
        self._live.stop()
        try:
            yield
        finally:
            self._live.start()

    def __call__(self, event: Event) -> None:
        """Remember the subject's latest event."""
        with self._lock:
            self._since.setdefault(event.subject, event.at)
            self._rows[event.subject] = event

    def _draw(self) -> Text:
        with self._lock:
            rows = [(subject, event, event.at - self._since[subject]) for subject, event in self._rows.items()]
        now = time.time()
        width = max((len(subject) for subject, _, _ in rows), default=0)
        drawn = []
        for subject, event, took in rows:
            ended = event.phase in ("done", "failed")
            seconds = took if ended else now - self._since[subject]
            clock = f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
            row = Text.assemble(
                f"{subject:<{width}}  ",
                (f"{event.phase:<8}", STYLES.get(event.phase, "")),
                f"{clock:>6}  ",
                event.message,
            )
            row.truncate(self._console.width, overflow="ellipsis")
            drawn.append(row)
        return Text("\n").join(drawn)
