"""A picture that is drawn again and again on a terminal, on its alternate screen."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Self, TextIO

from rich.console import Group
from rich.live import Live
from rich.segment import Segment, Segments
from rich.style import Style

from gpukube.cli.console import console_on, drawn_line

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from gpukube.cli.rendering.text import Line


class Screen:
    """The alternate screen of a terminal; what does not fit is cut at the bottom, and counted there.

    Args:
        stream: The terminal.
    """

    def __init__(self, stream: TextIO) -> None:
        self._console = console_on(stream)
        self._live = Live(
            console=self._console,
            screen=True,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def __enter__(self) -> Self:
        """Switch to the screen."""
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Switch back, however the run ends."""
        self._live.__exit__(kind, error, trace)

    def draw(self, lines: Iterable[Line]) -> None:
        """Replace the picture."""
        console = self._console
        picture = Group(*(drawn_line(line, console) for line in lines))
        rows = console.render_lines(picture, pad=False, new_lines=True)
        if (hidden := len(rows) - console.height) > 0:
            words = f"and {hidden + 1} more rows: enlarge the window or choose with --pool"
            rows[console.height - 1 :] = [[Segment(words[: console.width], Style(dim=True))]]
        self._live.update(Segments(chain.from_iterable(rows)), refresh=True)
