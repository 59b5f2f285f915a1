"""Lines as values: text in pieces with styles, lines that hang, tables. Drawn on a terminal by rich (console).

In a pipe the plain text of most lines is all that is needed, and rich need not be imported.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpukube.visible import visible

if TYPE_CHECKING:
    from collections.abc import Sequence


class Text:
    """Text in pieces, each with its style.

    Args:
        text: One piece.
        style: As rich names it: "bold red".
    """

    __slots__ = ("pieces",)

    def __init__(self, text: str = "", style: str = "") -> None:
        self.pieces: tuple[tuple[str, str], ...] = ((text, style),)

    @classmethod
    def assemble(cls, *parts: str | tuple[str, str]) -> Text:
        """Join strings without a style and strings with one."""
        made = cls()
        pieces = [(part, "") if isinstance(part, str) else part for part in parts]
        made.pieces = tuple(pieces)
        return made

    @property
    def plain(self) -> str:
        """The text without styles."""
        return "".join(text for text, _ in self.pieces)

    def __str__(self) -> str:
        """Return the text without styles."""
        return self.plain


@dataclass(frozen=True, slots=True)
class Hung:
    """A line whose further rows, where it must be broken, begin below its body."""

    prefix: Text
    body: Text

    @property
    def plain(self) -> str:
        """The text without styles."""
        return self.prefix.plain + self.body.plain


@dataclass(frozen=True, slots=True)
class Table:
    """A table that breaks long cells and cuts none.

    Attributes:
        titles: Of its columns.
        padding: Blanks between columns.
        rows: Its cells.
    """

    titles: Sequence[str]
    padding: int = 2
    rows: list[tuple[Text, ...]] = field(default_factory=list)

    def add_row(self, *cells: str | Text) -> None:
        """Fill a row."""
        self.rows.append(tuple(Text(cell) if isinstance(cell, str) else cell for cell in cells))


Line = str | Text | Table | Hung


def record(line: str | Text | Hung) -> str:
    """Write a line without styles, safe to show: what is in no document was not cleaned before."""
    text = line if isinstance(line, str) else line.plain
    return "\n".join(map(visible, text.split("\n")))
