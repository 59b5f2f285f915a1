"""Build the docs site: `python -m tools.docs_site` writes build/site from docs/ and README.md, and checks it.

The Markdown is what GitHub shows. Here it is copied, with the links that leave docs/ changed: files of the repository
become pages of the site. The navigation is docs/README.md's lists. An error ends the build: a link or anchor without a
target, a page that no list has, Markdown that the site renders as something else than GitHub does.
"""

from __future__ import annotations

import json
import posixpath
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urldefrag

import yaml
from markdown_it import MarkdownIt

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).resolve().parents[1]
ASSETS: Final = ROOT / "tools" / "site"
INDEX: Final = "docs/README.md"
QUICKSTART: Final = "README.md"
PICTURE: Final = ".png"
LINK: Final = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)\s]+)(?=\))")
CODE: Final = re.compile(r"(^ *```.*?^ *```|`[^`\n]+`)", re.MULTILINE | re.DOTALL)
FRONT: Final = re.compile(r"\A---\n(.*?\n)---\n+", re.DOTALL)
UNLISTED: Final = "---\nsearch:\n  exclude: true\n---\n\n"
COUNTED: Final = ("h1", "h2", "h3", "h4", "table", "tr", "ul", "ol", "li", "pre")
"""Elements that the site and GitHub must have equally many of."""


class SiteError(Exception):
    """What is wrong with the pages, one problem per line."""


class Page(HTMLParser):
    """What a page of the site has: its anchors, what it refers to, and how many of which elements its text has."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.targets: list[str] = []
        self.counts: dict[str, int] = dict.fromkeys(COUNTED, 0)
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what one element has."""
        if tag in self.counts:
            self.counts[tag] += 1
        for name, value in attrs:
            if name == "id" and value:
                self.anchors.add(value)
            elif name in {"href", "src"} and value and not re.match(r"[a-z]+:|//", value):
                self.targets.append(value)


def split_front(text: str) -> tuple[dict[str, object], str]:
    """Split a page into its front matter and its Markdown."""
    front = FRONT.match(text)
    return (yaml.safe_load(front[1]), text[front.end() :]) if front else ({}, text)


def pages(root: Path) -> list[str]:
    """List the pages of docs/, as paths in the repository."""
    return sorted(page.relative_to(root).as_posix() for page in (root / "docs").rglob("*.md"))


def sections(index: str) -> dict[str, list[tuple[str, str]]]:
    """Return the lists of the index: for each heading the titles and pages, as paths in the repository."""
    found: dict[str, list[tuple[str, str]]] = {}
    for part in re.split(r"^## ", index, flags=re.MULTILINE)[1:]:
        title, _, text = part.partition("\n")
        listed = re.findall(r"^- \[([^\]]+)\]\(([^)]+)\)", text, re.MULTILINE)
        found[title] = [(name, posixpath.normpath(f"docs/{target}")) for name, target in listed]
    return found


def place(path: str) -> str:
    """Return where a file of the repository is among the site's sources."""
    if path == QUICKSTART:
        return "quickstart.md"
    if path.startswith("docs/") and path.endswith((".md", PICTURE)):
        return path.removeprefix("docs/")
    shown = f"files/{path}".replace("/.", "/")  # zensical skips hidden files
    return shown if path.endswith(".md") else f"{shown}.md"


class Sources:
    """Copies the pages, and every file that they link to, into a folder that zensical reads."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = root
        self.folder = folder
        self.problems: list[str] = []
        self.done: set[str] = set()

    def copy(self) -> None:
        """Copy all pages and what they link to.

        Raises:
            SiteError: A link goes nowhere.
        """
        waiting = [QUICKSTART, *pages(self.root)]
        while waiting:
            path = waiting.pop()
            if path not in self.done:
                self.done.add(path)
                if path.endswith(PICTURE):
                    self._picture(path)
                    continue
                text, linked = self._page(path)
                target = self.folder / place(path)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text, "utf-8")
                waiting += linked
        if self.problems:
            raise SiteError("\n".join(self.problems))

    def _picture(self, path: str) -> None:
        target = self.folder / place(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(self.root / path, target)

    def _page(self, path: str) -> tuple[str, list[str]]:
        """Return a page for a file or folder of the repository, and the paths that it links to."""
        file = self.root / path
        if file.is_dir():
            names = sorted(child.name for child in file.iterdir() if child.is_file())
            listed = "".join(f"- [{name}]({name})\n" for name in names)
            return self._linked(f"{path}/_", f"{UNLISTED}# {path}\n\n{listed}", place(path))
        if file.suffix != ".md":
            fence = file.suffix.removeprefix(".") or "text"
            return f"{UNLISTED}# {path}\n\n````{fence}\n{file.read_text('utf-8').rstrip()}\n````\n", []
        listed = path == QUICKSTART or (path.startswith("docs/") and path != INDEX)
        unlisted = "" if listed else UNLISTED
        return self._linked(path, unlisted + file.read_text("utf-8"), place(path))

    def _linked(self, path: str, text: str, here: str) -> tuple[str, list[str]]:
        """Return a page with links to other pages of the site, and the paths that it links to."""
        linked: list[str] = []

        def change(link: re.Match[str]) -> str:
            target, anchor = urldefrag(link[1])
            wanted = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
            if wanted.startswith("..") or not (self.root / wanted).exists():
                self.problems.append(f"{path}: {link[1]} does not exist")
                return link[1]
            if (self.root / wanted / "README.md").is_file():
                wanted += "/README.md"
            linked.append(wanted)
            to = posixpath.relpath(place(wanted), posixpath.dirname(here))
            return f"{to}#{anchor}" if anchor else to

        parts = CODE.split(text)
        parts[::2] = [LINK.sub(change, part) for part in parts[::2]]
        return "".join(parts), linked


def title_of(page: Path) -> str:
    """Return a page's own title."""
    (title, *_) = re.findall(r"^# (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return str(title).replace("`", "")


def navigation(root: Path) -> list[dict[str, list[object]]]:
    """Return the tree of the pages by the lists of the index; a folder's pages are below its README.

    Raises:
        SiteError: A page of docs/ is in no list.
    """
    tree: list[dict[str, list[object]]] = []
    missing = set(pages(root)) - {INDEX}
    for heading, listed in sections((root / INDEX).read_text("utf-8")).items():
        entries: list[object] = [] if tree else [{"All pages": place(INDEX)}]
        for name, path in listed:
            missing.discard(path)
            folder = posixpath.dirname(path) if path.endswith("/README.md") else None
            below = sorted(page for page in missing if posixpath.dirname(page) == folder)
            missing.difference_update(below)
            tree_below = [place(path), *({title_of(root / page): place(page)} for page in below)]
            entries.append({name: tree_below if below else place(path)})
        tree.append({heading: entries})
    if missing:
        raise SiteError("\n".join(f"{INDEX}: {page} is in no list" for page in sorted(missing)))
    return tree


def differences(sources: Path, site: Path) -> Iterator[str]:
    """Compare what the site shows of each page with what GitHub's Markdown makes of it."""
    github = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    for source in sorted(sources.rglob("*.md")):
        name = source.relative_to(sources)
        html = site / name.parent / ("index.html" if name.name == "README.md" else f"{name.stem}.html")
        _, text = split_front(source.read_text("utf-8"))
        article = html.read_text("utf-8").partition("<article")[2].partition("</article>")[0]
        expected, shown = Page(github.render(text)).counts, Page(article).counts
        for tag in COUNTED:
            if expected[tag] != shown[tag]:
                yield f"{name}: {shown[tag]} <{tag}> on the site, {expected[tag]} on GitHub"


def broken(site: Path) -> Iterator[str]:
    """Follow every link of every page."""
    shown = {file: Page(file.read_text("utf-8")) for file in sorted(site.rglob("*.html"))}
    for file, page in shown.items():
        if file.name == "404.html":
            continue  # its links are absolute, for whatever address was not found
        for target in dict.fromkeys(page.targets):
            path, anchor = urldefrag(unquote(target))
            to = (file.parent / path).resolve() if path else file
            to = to / "index.html" if to.is_dir() else to
            if not to.is_file():
                yield f"{file.relative_to(site)}: {target} does not exist"
            elif anchor and to in shown and anchor not in shown[to].anchors:
                yield f"{file.relative_to(site)}: {target} has no such heading"


def add_search(sources: Path, site: Path) -> None:
    """Put the pages' keywords into the index, and our questions in front of the engine."""
    file = site / "search.json"
    index = json.loads(file.read_text("utf-8"))
    heads = {item["location"]: item for item in index["items"] if item["level"] == 1}
    for source in sources.rglob("*.md"):
        front, _ = split_front(source.read_text("utf-8"))
        name = source.relative_to(sources)
        words = front.get("keywords")
        if isinstance(words, list):
            head = heads[(name.parent / ("index.html" if name.name == "README.md" else f"{name.stem}.html")).as_posix()]
            head["text"] = f"<p>{', '.join(words)}</p>{head['text']}"
    file.write_text(json.dumps(index, separators=(",", ":")), "utf-8")
    (engine,) = (site / "assets/javascripts/workers").glob("search.*.js")
    engine.rename(engine.with_name("engine.js"))
    shutil.copy(ASSETS / "search.js", engine)


def build(root: Path, target: Path) -> Path:
    """Build the site.

    Args:
        root: The repository.
        target: A folder for the site and what it is made from.

    Returns:
        Where the site is.

    Raises:
        SiteError: The pages have problems.
    """
    sources, site = target / "docs", target / "site"
    for folder in (sources, site):
        shutil.rmtree(folder, ignore_errors=True)
    sources.mkdir(parents=True)
    Sources(root, sources).copy()
    config = target / "zensical.toml"
    settings = (ASSETS / "zensical.toml").read_text("utf-8")
    config.write_text(settings.replace("[project]\n", f"[project]\nnav = {toml(navigation(root))}\n", 1), "utf-8")
    done = subprocess.run(  # noqa: S603 - this interpreter
        [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "--config-file", str(config)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SiteError(re.sub(r"\x1b\[[\d;]*m", "", done.stdout + done.stderr))
    add_search(sources, site)
    if problems := [*differences(sources, site), *broken(site)]:
        raise SiteError("\n".join(problems))
    return site


def toml(value: object) -> str:
    """Write lists and single-key tables of texts as TOML does."""
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{json.dumps(key)} = {toml(item)}' for key, item in value.items())} }}"
    return json.dumps(value)


if __name__ == "__main__":
    try:
        print(build(ROOT, ROOT / "build"))
    except SiteError as error:
        sys.exit(str(error))
