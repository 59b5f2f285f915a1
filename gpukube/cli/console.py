"""Lines for people on a stream, by rich: colour and breaking where it is a terminal, records where it is not.

Colour and live rows only on a terminal (rich honours NO_COLOR and FORCE_COLOR). Must not live here: what the lines say
(rendering), formats (output).
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final, TextIO

from rich.console import Console
from rich.text import Text

from gpukube.cli.rendering.lines import Hung, clean

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpukube.cli.rendering.lines import Line

PIPE_WIDTH: Final = 200
LEAST_WIDTH: Final = 16
"""Columns that the body of a line gets at least, however narrow the terminal."""


def stderr_console() -> Console:
    """Make the console for progress; a terminal only where stderr is one and CI does not say otherwise."""
    return console_on(sys.stderr)


def write_lines(lines: Iterable[Line], console: Console, *, wrap: bool) -> None:
    """Write lines for people.

    Args:
        lines: What to write.
        console: Where to.
        wrap: Break long lines at words, below their beginning; otherwise a line is a record and kept whole.
    """
    for line in lines:
        shown = Text(line) if isinstance(line, str) else line
        if isinstance(shown, Text):
            shown = Hung(Text(), shown)
        if isinstance(shown, Hung):
            shown = _hang(shown, console) if wrap else clean(Text.assemble(shown.prefix, shown.body))
        if isinstance(shown, Text) and console.color_system is None:  # ten times faster, for fleets in a pipe
            console.file.write(f"{shown.plain}\n")
            continue
        console.print(shown, soft_wrap=isinstance(shown, Text))


def _hang(line: Hung, console: Console) -> Text:
    """Break a line so that its further rows begin below its body."""
    indent = line.prefix.cell_len
    rows = clean(line.body.copy()).wrap(console, max(LEAST_WIDTH, console.width - indent), overflow="fold")
    for row in rows:
        row.rstrip()
    broken = Text("\n" + " " * indent).join(rows)
    return Text.assemble(clean(line.prefix.copy()), broken)


def console_on(stream: TextIO) -> Console:
    """Make a console; in a pipe lines are as long as they are, so tables get room.

    FORCE_COLOR asks for colour in a pipe, not for a terminal's width and redrawing, which rich would take it for.
    """
    live = stream.isatty() and not os.environ.get("CI")
    console = Console(file=stream, highlight=False, force_interactive=None if live else False, emoji=False)
    if not stream.isatty():
        console.width = PIPE_WIDTH
    return console
