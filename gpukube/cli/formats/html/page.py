"""The frame of a page, and the builder of its markup.

Everything that is not `Markup` is text: it is escaped, and cut if it is long. The page is ASCII, the same in every
encoding of stdout. Its policy (Content-Security-Policy) forbids to load or run anything but its own style and script,
which it names by their hashes. It forbids style attributes too, so lengths are classes.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

NAME: Final = 100
"""Characters of a name beyond which it is cut: any text may claim to be one."""
SENTENCE: Final = 800
"""Characters of any text beyond which it is cut."""
NONE: Final = "-"
"""Content of an empty cell."""
_VOID: Final = ("br", "input", "meta")


class Markup(str):
    """Markup, which is not escaped again."""

    __slots__ = ()


def tag(kind: str, /, *content: str, **attributes: str) -> Markup:
    """Return an element.

    Args:
        kind: Its name.
        content: Text, which is escaped, and markup.
        attributes: Its attributes: `class_` is class, `aria_label` is aria-label.
    """
    opening = kind + "".join(_attribute(key, value) for key, value in attributes.items())
    if kind in _VOID:
        return Markup(f"<{opening}>")
    return Markup(f"<{opening}>{joined(content)}</{kind}>")


def joined(parts: Iterable[str], between: str = "") -> Markup:
    """Join text and markup."""
    return Markup(between.join(part if isinstance(part, Markup) else escape(cut(part, SENTENCE)) for part in parts))


def cut(text: str, length: int = NAME) -> str:
    """Cut long text, and say how much is missing."""
    return text if len(text) <= length else f"{text[:length]}… ({len(text) - length:,} more characters)"


def lines_of(lines: Iterable[str]) -> Markup:
    """Return lines of a block of code."""
    return joined(lines, "\n")


def page(title: str, head: Markup, body: Markup) -> str:
    """Return a whole page.

    Args:
        title: Its title.
        head: What is above its main part.
        body: Its main part.
    """
    style, script = _asset("page.css") + _lengths(), _asset("page.js")
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = (
        Markup('<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        Markup(f"<style>{style}</style>\n</head>\n<body>\n"),
        tag("a", "Skip to the content", class_="skip", href="#content"),
        tag("header", head),
        Markup("\n"),
        tag("main", body, id="content", tabindex="-1"),
        Markup(f"\n<script>{script}</script>\n</body>\n</html>"),
    )
    return joined(parts).encode("ascii", "xmlcharrefreplace").decode()


def bar(parts: Iterable[tuple[str, int]]) -> Markup:
    """Return a bar of parts, each with the class of its state; the counts beside it say the same."""
    shown = [(state, count) for state, count in parts if count > 0]
    total = sum(count for _, count in shown)
    pieces = (tag("i", class_=f"{state} w{max(1, round(100 * count / total))}") for state, count in shown)
    return tag("span", *pieces, class_="bar", aria_hidden="true")


def table(caption: str, titles: Iterable[str], rows: Iterable[Iterable[str]]) -> Markup:
    """Return a table that scrolls on a narrow screen; the first cell of a row is its heading."""
    head = tag("thead", tag("tr", *(tag("th", title, scope="col") for title in titles)))
    body = tag("tbody", joined(map(_row, rows), "\n"))
    inner = tag("table", tag("caption", caption), head, body)
    return tag("div", inner, class_="scroll", role="region", aria_label=caption, tabindex="0")


def sentence(text: str) -> str:
    """Return a text as a sentence, with a capital letter and an end."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def _row(cells: Iterable[str]) -> Markup:
    first, *others = cells
    return tag("tr", tag("th", first, scope="row"), *(tag("td", cell) for cell in others))


def _attribute(key: str, value: str) -> str:
    return f' {key.rstrip("_").replace("_", "-")}="{escape(cut(value, SENTENCE))}"'


@cache
def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text("ascii")


def _lengths() -> str:
    return "".join(f".w{share}{{flex:{share} 0 0}}" for share in range(1, 101))


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
