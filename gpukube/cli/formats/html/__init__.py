"""Documents as HTML pages of one file that loads nothing. Only the style and the script are read from files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def html_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """Return a document as a page."""
    from gpukube.cli.formats.html.map import map_page  # each kind of page is imported when it is shown

    yield map_page(document)  # type: ignore[arg-type]  # its kind was checked against FORMATS
