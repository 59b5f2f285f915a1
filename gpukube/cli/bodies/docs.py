"""Body of `gpukube docs`: the list of pages, or one page; drawn on a terminal, Markdown in a pipe."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from typing import TYPE_CHECKING, Final

from gpukube.cli.pages import find_pages, list_pages, name_links, read_page
from gpukube.errors import SpecError, Where

if TYPE_CHECKING:
    from gpukube.cli.pages import Page

_WIDEST: Final = 100
"""Columns of text: longer lines are hard to read."""
_TOPIC: Final = 15
"""Columns of topics in the list; the text of a longer one begins on the next line."""
_SUGGESTED: Final = 5
_PLAIN: Final = {"markdown.code": "bold cyan", "markdown.code_block": "cyan"}
"""Code without rich's black background, which is for dark terminals only."""


def show_topic(words: str) -> None:
    """Show a page, or without a topic the list of all.

    Args:
        words: Name of the page, or words from its title, description and keywords.

    Raises:
        SpecError: no-topic: none or several pages have the words.
    """
    if not words:
        _show_list()
        return
    found = find_pages(words)
    if len(found) != 1:
        raise SpecError(_problem(words, found), where=Where("TOPIC"), fix=_fix(words, found), code="no-topic")
    _show_page(found[0])


def _problem(words: str, found: list[Page]) -> str:
    from gpukube.spec.wording import quoted

    return f"{len(found)} pages have the words {quoted(words)}" if found else f"no page is called {quoted(words)}"


def _fix(words: str, found: list[Page]) -> str:
    from gpukube.spec.wording import nearest

    names = [page.topic for page in found[:_SUGGESTED]]
    if not names:
        near = nearest(words, [name for page in list_pages() for name in (page.topic, page.title)])
        names = [page.topic for page in list_pages() if near in (page.topic, page.title)]
    if not names:
        return "gpukube docs lists all pages"
    return f"choose one: {', '.join(names)}" if len(names) > 1 else f"did you mean gpukube docs {names[0]}?"


def _show_list() -> None:
    pages = [page for page in list_pages() if not page.family]
    indent = " " * (_TOPIC + 4)
    columns = min(shutil.get_terminal_size().columns, _WIDEST)
    task = ""
    for page in pages:
        if page.task != task:
            print(f"{chr(10) if task else ''}{page.task}:")  # noqa: T201 - the command's output
            task = page.task
        about = f"{page.title}: {page.about.replace('`', '')}"
        first = f"  {page.topic}".ljust(len(indent))
        if len(page.topic) > _TOPIC:
            print(first)  # noqa: T201 - as above
            first = indent
        print(textwrap.fill(about, columns, initial_indent=first, subsequent_indent=indent))  # noqa: T201 - as above
    print("\ngpukube docs TOPIC shows a page.")  # noqa: T201 - as above


def _show_page(page: Page) -> None:
    text = read_page(page)
    if not sys.stdout.isatty():
        sys.stdout.write(text)
        return
    from rich.console import Console
    from rich.theme import Theme

    from gpukube.cli.rendering.pages import Document

    console = Console(highlight=False, theme=Theme(_PLAIN))
    console.width = min(console.width, _WIDEST)
    os.environ.setdefault("LESS", "FRX")  # as git does: no pager for less than a screen, colors, the text stays
    with console.pager(styles=True):
        console.print(Document(name_links(text, page), code_theme="ansi_dark", hyperlinks=False))
