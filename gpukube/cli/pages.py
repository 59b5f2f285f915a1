"""The documentation as shipped: its pages by task, and finding one by name or by words.

In a wheel the pages are below the package, in a checkout beside it. Standard library only: for completion.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

_PACKAGE: Final = Path(__file__).parents[1]
FIRST_RUN: Final = "first-run"
"""Topic of the README, which is outside the folder of the pages."""
_FRONT: Final = re.compile(r"\A---\n(.*?)^---\n+", re.DOTALL | re.MULTILINE)
_ENTRY: Final = re.compile(r"^- \[([^\]]+)\]\(([^)]+)\): (.+)$", re.MULTILINE)
_LINK: Final = re.compile(r"\[([^\]]+)\]\((?![a-z]+:)([^)#\s]*)(?:#[^)\s]*)?\)")


@dataclass(frozen=True, slots=True)
class Page:
    """A page.

    Attributes:
        topic: Its name: the file's, below the folder of the pages.
        title: What it is called in the list.
        about: What it is about, in a line.
        task: Heading of its part of the list.
        family: Whether it is in the list as part of its folder only.
    """

    topic: str
    title: str
    about: str
    task: str
    family: bool = False

    def words(self) -> str:
        """Return what finds the page, in lower case: its names and its keywords."""
        front = _FRONT.match(_file(self.topic).read_text("utf-8"))
        return f"{self.topic} {self.title} {self.about} {front[1] if front else ''}".lower()


def folder() -> Path:
    """Return where the pages are."""
    shipped = _PACKAGE / "docs"
    return shipped if shipped.is_dir() else _PACKAGE.parent / "docs"


@cache
def list_pages() -> tuple[Page, ...]:
    """Return all pages, in the order of the list; the pages of a folder follow its own."""
    pages: list[Page] = []
    index = (folder() / "README.md").read_text("utf-8")
    for part in re.split(r"^## ", index, flags=re.MULTILINE)[1:]:
        task = part.partition("\n")[0]
        for title, target, about in _ENTRY.findall(part):
            pages.append(Page(_topic(target), title, about, task))
            if posixpath.basename(target) == "README.md" and "/" in target.removeprefix("../"):
                below = sorted((folder() / target).parent.glob("[!R]*.md"))
                pages += [
                    Page(f"{_topic(target)}/{page.stem}", f"{title}: {page.stem}", about, task, family=True)
                    for page in below
                ]
    return tuple(pages)


def find_pages(words: str) -> list[Page]:
    """Return the page of this topic, or those of this title, or those that have all the words."""
    pages = list_pages()
    name = words.strip().lower().removesuffix(".md").removeprefix("docs/")
    by_topic = [page for page in pages if page.topic == name]
    by_title = [page for page in pages if name in (page.title.lower(), posixpath.basename(page.topic))]
    return by_topic or by_title or [page for page in pages if all(word in page.words() for word in name.split())]


def read_page(page: Page) -> str:
    """Return a page's Markdown, without its front matter."""
    return _FRONT.sub("", _file(page.topic).read_text("utf-8"))


def name_links(text: str, page: Page) -> str:
    """Return Markdown in which links to other pages name their topics, and links to files their paths."""

    def named(link: re.Match[str]) -> str:
        shown, target = link[1], link[2]
        if not target:  # to a heading of the same page
            return shown
        base = "." if page.topic == FIRST_RUN else posixpath.join("docs", posixpath.dirname(page.topic))
        path = posixpath.normpath(posixpath.join(base, target))
        inside = path.startswith("docs/") and path.endswith(".md")
        name = _topic(path.removeprefix("docs/")) if inside else path
        return shown if name in (shown, shown.removesuffix(".md")) else f"[{shown}]({name})"

    parts = re.split(r"(^ *```.*?^ *```|`[^`\n]+`(?!\]))", text, flags=re.MULTILINE | re.DOTALL)
    parts[::2] = [_LINK.sub(named, part) for part in parts[::2]]
    return "".join(parts)


def _topic(target: str) -> str:
    if target in {"../README.md", "README.md"}:
        return FIRST_RUN if target.startswith("..") else "README"
    return target.removesuffix(".md").removesuffix("/README")


def _file(topic: str) -> Path:
    if topic == FIRST_RUN:
        return folder().parent / "README.md"
    file = folder() / f"{topic}.md"
    return file if file.is_file() else folder() / topic / "README.md"
