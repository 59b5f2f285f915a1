"""The docs site: built strictly from the pages, and its search answers questions that were written before it."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING, Final

import pytest
import yaml

from tools.docs_site import ASSETS, ROOT, SiteError, build, navigation, pages, split_front

if TYPE_CHECKING:
    from pathlib import Path

QUESTIONS: Final[dict[str, str]] = yaml.safe_load((ROOT / "tests" / "docs" / "questions.yaml").read_text("utf-8"))
FILES: Final = {
    "README.md": "# First run\n\nAll pages: [docs](docs/README.md).\n",
    "docs/README.md": "# Documentation\n\n## Start\n\n- [First run](../README.md): now\n- [Page](page.md): one\n",
    "docs/page.md": "---\nkeywords: [sought]\n---\n\n# A page\n\n## Part\n\n[Up](#part), [spec](../examples/a.yaml).\n",
    "examples/a.yaml": "kind: GPUNodePools\n",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def answers(site: Path) -> dict[str, list[str]]:
    node = shutil.which("node")
    if node is None:
        pytest.skip("the site's search runs in node: https://nodejs.org/")
    asked = json.dumps([*QUESTIONS, "scale", "qqqqqqqq", "how do I", "fabrics RDMA", "state file", "tests of rules"])
    done = subprocess.run(
        [node, str(ASSETS / "ask.mjs"), str(site)], input=asked, capture_output=True, text=True, check=True
    )
    return dict(zip(json.loads(asked), json.loads(done.stdout), strict=True))


def tree(folder: Path, changed: dict[str, str]) -> Path:
    """Write a small repository."""
    for name, text in {**FILES, **changed}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    return folder


def test_questions_when_listed_then_twenty_about_pages_that_exist() -> None:
    assert len(QUESTIONS) == 20
    assert {f"docs/{page}" for page in QUESTIONS.values()} <= set(pages(ROOT))


@pytest.mark.parametrize("question", QUESTIONS)
def test_search_when_asked_as_people_ask_then_the_page_is_among_the_first_three(
    question: str, answers: dict[str, list[str]]
) -> None:
    page = QUESTIONS[question].replace(".md", ".html")
    assert page in [location.partition("#")[0] for location in answers[question][:3]], answers[question][:5]


@pytest.mark.parametrize(
    "page", [page for page in pages(ROOT) if "keywords" in split_front((ROOT / page).read_text())[0]]
)
def test_keywords_when_read_then_no_question_was_pasted(page: str) -> None:
    front, _ = split_front((ROOT / page).read_text("utf-8"))
    words = front["keywords"]
    assert isinstance(words, list)
    assert not {str(word).lower() for word in words} & {question.lower() for question in QUESTIONS}
    assert len(words) == len(set(words)) <= 12


def test_search_when_words_are_few_unknown_or_fillers_then_still_answers(answers: dict[str, list[str]]) -> None:
    assert len(answers["scale"]) == 10, "a page of results"
    assert answers["qqqqqqqq"] == []
    assert answers["how do I"], "fillers alone are words like others"
    assert "large-pools.html" in answers["fabrics RDMA"], "one word fits, the other is dropped"


def test_search_when_it_finds_how_gpukube_is_made_then_after_how_it_is_used(answers: dict[str, list[str]]) -> None:
    assert answers["state file"][0] == "decisions/no-state-file.html"
    made = [location.startswith(("testing", "architecture")) for location in answers["tests of rules"]]
    assert any(made)
    assert made[:3] == [False, False, False]


def test_site_when_opened_then_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    html = (site / "index.html").read_text("utf-8")
    assert 'src="http' not in html
    assert 'rel="stylesheet" href="http' not in html
    assert 'data-md-color-scheme="slate"' in html, "dark mode"


def test_site_when_built_from_few_pages_then_has_them_and_the_files_that_they_link_to(tmp_path: Path) -> None:
    site = build(tree(tmp_path / "root", {}), tmp_path / "build")
    assert "GPUNodePools" in (site / "files/examples/a.yaml.html").read_text("utf-8")
    (head,) = [
        item for item in json.loads((site / "search.json").read_text())["items"] if item["location"] == "page.html"
    ]
    assert head["text"].startswith("<p>sought</p>")


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"docs/page.md": "# A page\n\n[gone](gone.md)\n"}, "docs/page.md: gone.md does not exist"),
        ({"docs/page.md": "# A page\n\n[out](../../x.md)\n"}, "docs/page.md: ../../x.md does not exist"),
        ({"docs/page.md": "# A page\n\n[part](README.md#gone)\n"}, "gone"),
        ({"docs/page.md": "# A page\n\n[up](#gone)\n"}, "gone"),
        ({"docs/other.md": "# Other\n"}, "docs/README.md: docs/other.md is in no list"),
        ({"docs/page.md": "# A page\n\n- a\n  - b\n"}, "page.md: 1 <ul> on the site, 2 on GitHub"),
    ],
    ids=["link", "link out of the repository", "anchor", "anchor of the same page", "orphan", "other Markdown"],
)
def test_site_when_a_page_has_a_problem_then_is_not_built(
    changed: dict[str, str], problem: str, tmp_path: Path
) -> None:
    with pytest.raises(SiteError) as refused:
        build(tree(tmp_path / "root", changed), tmp_path / "build")
    assert problem in str(refused.value)


def test_navigation_when_read_then_five_parts_by_task() -> None:
    assert [part for entry in navigation(ROOT) for part in entry] == [
        "Start",
        "Guides",
        "Clouds",
        "Reference",
        "Internals",
    ]
