"""Lines as values: styled text, lines with hanging indent, tables. rich draws them on a terminal (console).

In a pipe, plain text is enough for most lines, so rich need not be imported.
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
        text: First piece.
        style: Style in rich's syntax: "bold red".
    """

    __slots__ = ("pieces",)

    def __init__(self, text: str = "", style: str = "") -> None:
        self.pieces: tuple[tuple[str, str], ...] = ((text, style),)

    @classmethod
    def assemble(cls, *parts: str | tuple[str, str]) -> Text:
        """Join strings with and without a style."""
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
    """A line whose continuation rows align with its body."""

    prefix: Text
    body: Text

    @property
    def plain(self) -> str:
        """The text without styles."""
        return self.prefix.plain + self.body.plain


@dataclass(frozen=True, slots=True)
class Table:
    """A table that wraps long cells and cuts none.

    Attributes:
        titles: Column titles.
        padding: Spaces between columns.
        rows: Cells by row.
    """

    titles: Sequence[str]
    padding: int = 2
    rows: list[tuple[Text, ...]] = field(default_factory=list)

    def add_row(self, *cells: str | Text) -> None:
        """Add a row."""
        self.rows.append(tuple(Text(cell) if isinstance(cell, str) else cell for cell in cells))


Line = str | Text | Table | Hung


def record(line: str | Text | Hung) -> str:
    """Return a line without styles, safe to show: text that is in no document has not been cleaned yet."""
    text = line if isinstance(line, str) else line.plain
    return "\n".join(map(visible, text.split("\n")))
