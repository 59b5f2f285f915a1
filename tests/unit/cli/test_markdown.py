"""Markdown for pull requests: nothing formats, mentions or breaks out, and it fits into a comment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpukube.cli.formats.markdown import ROOM, code, markdown, prose
from gpukube.engine.documents.plan import plan_document
from tests.screens.scenes import PLANS

if TYPE_CHECKING:
    from gpukube.engine.documents.shapes.plan import PlanDocument

CODE = {
    "plain": ("v1", "`v1`", "`v1`"),
    "pipe": ("a|b", "`a|b`", "`a\\|b`"),
    "backtick": ("a`b", "``a`b``", "``a`b``"),
    "backtick at the end": ("a`", "`` a` ``", "`` a` ``"),
    "two backticks": ("a``b", "```a``b```", "```a``b```"),
    "lines": ("a\nb", "`a b`", "`a b`"),
    "nothing": ("", "", ""),
}


@pytest.mark.parametrize("name", CODE)
def test_code_when_quoted_then_whatever_is_in_it_stays_in_it(name: str) -> None:
    value, alone, cell = CODE[name]
    assert (code(value), code(value, cell=True)) == (alone, cell)


PROSE = {
    "pipe": ("a|b", "a\\|b"),
    "HTML": ("<script>", "\\<script\\>"),
    "link": ("[x](y)", "\\[x\\](y)"),
    "mention": ("ask @team", "ask @\u200bteam"),
    "emphasis": ("*a* _b_ `c`", "\\*a\\* \\_b\\_ \\`c\\`"),
    "lines": ("a\n\n# b", "a \\# b"),
    "entity": ("a &lt; b", "a &amp;lt; b"),
}


@pytest.mark.parametrize("name", PROSE)
def test_prose_when_escaped_then_only_words(name: str) -> None:
    text, escaped = PROSE[name]
    assert prose(text) == escaped


@given(st.text())
def test_cell_when_anything_is_in_it_then_one_line_and_no_bare_pipe(value: str) -> None:
    for cell in (code(value, cell=True), prose(value)):
        assert len(cell.splitlines()) <= 1
        assert "|" not in cell.replace("\\|", "")


def big(count: int) -> PlanDocument:
    document = plan_document(PLANS, ())
    (cluster, *_) = document["clusters"]
    return {**document, "clusters": [{**cluster, "pools": cluster["pools"] * count}]}


def test_plan_when_too_long_for_a_comment_then_without_details_and_it_says_so() -> None:
    small, large = "\n".join(markdown(big(1))), "\n".join(markdown(big(20)))
    assert "<details>" in small
    assert "<details>" not in large
    assert "no-op" not in large
    assert large.endswith("The details are too long for a comment; `-o json` has them.")
    assert len(large) < ROOM


def test_plan_when_requests_hold_backticks_then_their_fence_is_longer() -> None:
    document = big(1)
    document["clusters"][0]["pools"][1]["requests"][0]["params"] = {"x": "```\n</details>"}
    lines = list(markdown(document))
    assert lines.count("````json") == 1
    assert lines.count("````") == 1


def test_plan_when_even_its_table_is_too_long_then_cut_between_lines() -> None:
    lines = list(markdown(big(400)))
    assert sum(len(line) + 1 for line in lines) < ROOM + 100
    assert lines[-1] == "The rest is too long for a comment; `-o json` has all of it."
    assert any(line.startswith("> [!CAUTION]") for line in lines)
    assert all(line.endswith(" |") for line in lines if line.startswith("| "))
