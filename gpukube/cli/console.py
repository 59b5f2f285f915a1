"""Human-readable lines on a stream: rich draws on a terminal, in color, and for tables; else plain-text records.

Color and live rows appear only on a terminal (rich honors NO_COLOR and FORCE_COLOR). Out of scope: the content of
lines (rendering), formats (output).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, TextIO

from rich.console import Console
from rich.table import Table as DrawnTable
from rich.text import Text as DrawnText

from gpukube.cli.rendering.text import Hung, Table, Text
from gpukube.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpukube.cli.rendering.text import Line

PIPE_WIDTH: Final = 200
LEAST_WIDTH: Final = 16
"""Minimum columns for the body of a line, however narrow the terminal."""


def write_lines(lines: Iterable[Line], console: Console, *, wrap: bool) -> None:
    """Write human-readable lines.

    Args:
        lines: Lines to write.
        console: Output console.
        wrap: Break long lines at words and indent continuation rows; otherwise each line is a record, kept whole.
    """
    for line in lines:
        if isinstance(line, Table):
            console.print(draw_table(line))
            continue
        hung = line if isinstance(line, Hung) else Hung(Text(), Text(line) if isinstance(line, str) else line)
        shown = _hang(hung, console) if wrap else clean(DrawnText.assemble(draw(hung.prefix), draw(hung.body)))
        if console.color_system is None:  # ten times faster, for fleets in a pipe
            console.file.write(f"{shown.plain}\n")
        else:
            console.print(shown, soft_wrap=True)


def drawn_line(line: Line, console: Console) -> DrawnText | DrawnTable:
    """Convert a line to its rich equivalent, wrapped to the width of a terminal."""
    if isinstance(line, Table):
        return draw_table(line)
    return _hang(
        line if isinstance(line, Hung) else Hung(Text(), Text(line) if isinstance(line, str) else line), console
    )


def draw(text: Text) -> DrawnText:
    """Convert a text to its rich equivalent."""
    (first, style), *others = text.pieces
    return DrawnText.assemble(*text.pieces) if others else DrawnText(first, style=style)


def draw_table(table: Table) -> DrawnTable:
    """Convert a table to its rich equivalent."""
    drawn = DrawnTable(box=None, pad_edge=False, padding=(0, table.padding, 0, 0), header_style="bold")
    for title in table.titles:
        drawn.add_column(title, overflow="fold")
    for row in table.rows:  # rich parses a string as markup, which would change labels[team]
        drawn.add_row(*(clean(draw(cell)) for cell in row))
    return drawn


def clean(text: DrawnText) -> DrawnText:
    """Make a text safe to show: text that is in no document (progress, prompts) has not been cleaned yet."""
    cleaned = "\n".join(map(visible, text.plain.split("\n")))
    if cleaned != text.plain:
        text.plain = cleaned
    return text


def _hang(line: Hung, console: Console) -> DrawnText:
    """Wrap a line so that continuation rows align with its body."""
    prefix = clean(draw(line.prefix))
    rows = clean(draw(line.body)).wrap(console, max(LEAST_WIDTH, console.width - prefix.cell_len), overflow="fold")
    for row in rows:
        row.rstrip()
    broken = DrawnText("\n" + " " * prefix.cell_len).join(rows)
    return DrawnText.assemble(prefix, broken)


def console_on(stream: TextIO) -> Console:
    """Create a console; in a pipe lines are not wrapped, so tables can be wide.

    FORCE_COLOR requests color in a pipe, but rich would also assume a terminal's width and redrawing.
    """
    live = stream.isatty() and not os.environ.get("CI")
    console = Console(file=stream, highlight=False, force_interactive=None if live else False, emoji=False)
    if not stream.isatty():
        console.width = PIPE_WIDTH
    return console
