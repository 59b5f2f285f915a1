"""Documents as HTML pages of one file that loads nothing. Only the style and the script are read from files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def html_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """Return a document as a page; the code for each kind is imported when it is shown."""
    if document["kind"] == "Map":
        from gpukube.cli.formats.html.map import map_page

        yield map_page(document)  # type: ignore[arg-type]  # its kind says so
    else:
        from gpukube.cli.formats.html.plan import plan_page

        yield plan_page(document)  # type: ignore[arg-type]  # as above
