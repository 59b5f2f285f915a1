"""Markdown on a terminal, of which nothing is cut."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.markdown import Markdown, MarkdownElement, TableElement
from rich.table import Table

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult


class _Folded(TableElement):
    """A table whose long words continue on the next row; rich would cut them."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for part in super().__rich_console__(console, options):
            if isinstance(part, Table):
                for column in part.columns:
                    column.overflow = "fold"
            yield part


class Document(Markdown):
    """A page."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {**Markdown.elements, "table_open": _Folded}
