"""Progress on a terminal: a row for each cluster and pool, redrawn in place."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from rich.live import Live
from rich.text import Text

from gpukube.cli.console import clean

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType

    from rich.console import Console

    from gpukube.engine.run.events import Event

STYLES: Final = {"done": "green", "failed": "red", "wait": "yellow", "verify": "cyan"}
LEAST_ROWS: Final = 2
_HANGING: Final = " " * 4


class LiveRows:
    """One row per cluster and pool, redrawn in place: phase, elapsed time, the latest message from the cloud."""

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
        """Stop drawing, before the result is printed."""
        self._live.__exit__(kind, error, trace)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Pause drawing during a prompt, which the next redraw would overwrite."""
        self._live.stop()
        try:
            yield
        finally:
            self._live.start()

    def __call__(self, event: Event) -> None:
        """Store the subject's latest event."""
        with self._lock:
            self._since.setdefault(event.subject, event.at)
            self._rows[event.subject] = event

    def _draw(self) -> Text:
        with self._lock:
            rows = [_Row(event, self._since[subject]) for subject, event in self._rows.items()]
        now = time.time()
        shown, hidden = _fitting(rows, max(LEAST_ROWS, self._console.height - 1))
        width = min(max((len(row.event.subject) for row in shown), default=0), self._console.width // 2)
        lines = [self._line(row, now, width) for row in shown]
        if hidden:
            lines.append(Text(_counted(hidden), style="dim"))
        return Text("\n").join(self._fitted(lines))

    def _fitted(self, lines: Sequence[Text]) -> Iterator[Text]:
        """Wrap long lines at words while the screen has room for more rows; cut the others."""
        room = self._console.height - 1 - len(lines)
        for line in lines:
            rows = line.wrap(self._console, self._console.width - len(_HANGING))
            if line.cell_len > self._console.width and len(rows) - 1 <= room:
                room -= len(rows) - 1
                for row in rows:
                    row.rstrip()
                yield Text(f"\n{_HANGING}").join(rows)
            else:
                line.truncate(self._console.width, overflow="ellipsis")
                yield line

    def _line(self, row: _Row, now: float, width: int) -> Text:
        event = row.event
        message = " ".join(event.message.split())
        return clean(
            Text.assemble(
                f"{_cut(event.subject, width):<{width}}  ",
                (f"{event.phase:<8}", STYLES.get(event.phase, "")),
                f"{_clock(row.seconds(now)):>6}  ",
                message,
            )
        )


@dataclass(frozen=True, slots=True)
class _Row:
    """The latest event of a subject, and the time of its first one."""

    event: Event
    since: float

    @property
    def ended(self) -> bool:
        return self.event.phase in ("done", "failed")

    def seconds(self, now: float) -> float:
        """Return the seconds it has taken so far, or took in total."""
        return (self.event.at if self.ended else now) - self.since


def _fitting(rows: Sequence[_Row], height: int) -> tuple[list[_Row], list[_Row]]:
    """Choose rows for a screen that cannot show all: running ones first, then failed ones.

    Returns:
        Rows to show, in their order, and rows that a single line counts.
    """
    if len(rows) <= height:
        return list(rows), []
    rank = {"failed": 1, "done": 2}
    order = sorted(range(len(rows)), key=lambda place: rank.get(rows[place].event.phase, 0))
    kept = set(order[: height - 1])
    return [rows[i] for i in sorted(kept)], [row for i, row in enumerate(rows) if i not in kept]


def _counted(rows: Sequence[_Row]) -> str:
    counts: dict[str, int] = {}
    for row in rows:
        name = row.event.phase if row.ended else "in progress"
        counts[name] = counts.get(name, 0) + 1
    return "and " + ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))


def _cut(subject: str, width: int) -> str:
    """Shorten a name in the middle, so that both cluster and pool stay recognizable."""
    if len(subject) <= width:
        return subject
    head = (width - 1) // 2
    return f"{subject[:head]}…{subject[len(subject) - (width - 1 - head) :]}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(max(0, int(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
