"""`gpukube docs`: which page a topic finds, and what is shown of it."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from gpukube.__main__ import main
from gpukube.cli.pages import Page, find_pages, folder, list_pages, name_links, read_page
from gpukube.cli.rendering.pages import Document

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def docs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("COLUMNS", "80")

    def run(*words: str) -> tuple[int, str, str]:
        code = main(["docs", *words])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run


def test_pages_when_listed_then_every_file_is_one_of_them() -> None:
    files = {file.relative_to(folder()).as_posix() for file in folder().rglob("*.md")} - {"README.md"}
    topics = [page.topic for page in list_pages()]
    assert sorted(topics) == sorted({*(re.sub(r"(/README)?\.md$", "", file) for file in files), "first-run"})


def test_list_when_shown_then_by_task_and_within_80_columns(docs: Run) -> None:
    code, out, _ = docs()
    assert code == 0
    assert re.findall(r"^(\w+):$", out, re.MULTILINE) == ["Start", "Guides", "Clouds", "Reference", "Internals"]
    assert "\n  migrate          Adopt existing pools: from eksctl, az, gcloud or Terraform,\n" in out
    assert max(map(len, out.splitlines())) <= 80
    assert "diagnostics/eks" not in out, "the folder's own page leads to them"


@pytest.mark.parametrize(
    ("words", "topic"),
    [
        ("migrate", "migrate"),
        ("Share GPUs", "sharing"),
        ("docs/eks.md", "eks"),
        ("diagnostics/eks", "diagnostics/eks"),
        ("kubernetes-client", "decisions/kubernetes-client"),
        ("scale zero", "autoscaling"),
        ("first-run", "first-run"),
    ],
)
def test_topic_when_named_in_any_way_then_the_page_is_found(words: str, topic: str, docs: Run) -> None:
    assert [page.topic for page in find_pages(words)] == [topic]
    code, out, _ = docs(*words.split())
    assert code == 0
    assert out.startswith("# "), "Markdown without front matter in a pipe"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("sharin", None),
        ("migrat3", 'no page is called "migrat3"\n    fix: did you mean gpukube docs migrate?\n'),
        ("qqqq", 'no page is called "qqqq"\n    fix: gpukube docs lists all pages\n'),
        ("terraform", "fix: choose one: migrate, export\n"),
    ],
)
def test_topic_when_not_one_page_then_the_nearest_are_named(words: str, message: str | None, docs: Run) -> None:
    code, _, err = docs(words)
    assert (code, message in err if message else err) == ((4, True) if message else (0, ""))


def test_links_when_named_then_by_topic_or_path() -> None:
    page = Page("diagnostics/eks", "Rules", "", "")
    text = "[a](README.md#x) [b](../spec.md) [spec.md](../spec.md) [c](../../examples/a.yaml) [d](#e) [f](https://g)"
    assert name_links(text, page) == "[a](diagnostics) [b](spec) spec.md [c](examples/a.yaml) d [f](https://g)"
    assert name_links("`[i](j.md)`", page) == "`[i](j.md)`"


@pytest.mark.parametrize("page", list_pages(), ids=lambda page: page.topic)
def test_page_when_drawn_on_a_narrow_terminal_then_nothing_is_cut(page: Page) -> None:
    text = read_page(page)
    console = Console(file=io.StringIO(), width=48, highlight=False)
    console.print(Document(name_links(text, page), hyperlinks=False))
    assert isinstance(console.file, io.StringIO)
    drawn = console.file.getvalue()
    assert drawn.count("…") == text.count("…")
    assert max(map(len, map(str.rstrip, drawn.splitlines()))) <= 48
