"""Markdown for pull requests: nothing formats, mentions or breaks out, and it fits into a comment."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpukube.cli.formats.markdown import code, comment, markdown, prose
from tests.big import copied

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


def test_plan_when_requests_hold_backticks_then_their_fence_is_longer() -> None:
    document = copied("Plan")
    document["clusters"][0]["pools"][1]["requests"][0]["params"] = {"x": "```\n</details>"}
    lines = list(markdown(document))
    assert lines.count("````json") == 1
    assert lines.count("````") == 1


LEAVING: dict[str, Any] = {
    "pods": 9,
    "seconds": 180.0,
    "blocked": [
        {"pod": f"research/train-{n}", "node": "n1", "why": "budget a/b allows none", "fix": "raise it", "budgets": []}
        for n in range(7)
    ],
    "waiting": [],
    "needing": [],
    "turns": [{"budget": "web/b", "pods": 3, "allowed": 1, "seconds": 60.0}],
    "gangs": [],
    "queues": [],
    "homeless": [],
    "pins": [],
    "unread": ["jobs"],
}


def test_plan_when_a_pool_is_replaced_then_how_and_which_pods_do_not_leave() -> None:
    document = copied("Plan")
    (pool,) = [pool for pool in document["clusters"][0]["pools"] if pool["action"] == "replace"]
    pool["leaving"] = LEAVING
    pool["replacement"]["unknown"] = ["whether there is room"]
    text = "\n".join(markdown(document))
    assert (
        "- `train-aks/a100cut` surge: a100cutb is created and its GPUs are verified; then a100cut is drained and "
        "deleted (you pay for both pools meanwhile)\n"
        "  - unknown: whether there is room\n"
        "- `train-aks/a100cut` drain: 9 pods leave; 7 of them never do so on their own\n"
        "  - research/train-0 on n1 never leaves: budget a/b allows none; raise it\n"
    ) in text
    assert "  - ... and 2 more like it (-o json)\n  - budget web/b: 3 pods, 1 at a time\n  - not read" in text
    obstacle = {**document["warnings"][0], "message": "quota is too small"}
    pool["replacement"] = {**pool["replacement"], "obstacles": [obstacle], "unknown": []}
    assert "- `train-aks/a100cut` surge: impossible: quota is too small\n" in "\n".join(markdown(document))


@pytest.mark.parametrize(
    ("scope", "shard", "marker"),
    [
        ({"owners": ["ml-platform"], "filters": []}, None, "gpukube:ml-platform"),
        ({"owners": ["a", "b"], "filters": ["--cluster=eu-*"]}, None, "gpukube:a,b cluster=eu-*"),
        (
            {"owners": ["a"], "filters": []},
            {"index": 3, "total": 16, "clusters": {}, "of": 300},
            "gpukube:a shard=3/16",
        ),
        ({"owners": [], "filters": []}, None, "gpukube:plan"),
        (None, None, "gpukube:plan"),
        ({"owners": ["x --> <b>@me"], "filters": []}, None, "gpukube:x - -b--me"),
    ],
)
def test_comment_when_written_then_its_first_line_says_whose_it_is(scope: object, shard: object, marker: str) -> None:
    document = copied("Plan") | ({"scope": scope} if scope else {}) | ({"shard": shard} if shard else {})
    first, second, *_ = comment(document)
    assert (first, second.partition(":")[0]) == (f"<!-- {marker} -->", "### gpukube plan")


@pytest.mark.parametrize(
    ("link", "shown"),
    [
        ("https://example.org/a?b=1#c", "([no-plugin](https://example.org/a?b=1#c))"),
        ("javascript:x", "(no-plugin)"),
        ("https://example.org) [x](y", "(no-plugin)"),
    ],
)
def test_doctor_when_the_link_is_none_then_not_linked(link: str, shown: str) -> None:
    document = copied("Doctor")
    document["clusters"][0]["ailments"][0]["link"] = link
    assert any(shown in line for line in markdown(document))


def test_validation_when_written_then_each_finding_with_its_place_and_what_the_spec_accepts() -> None:
    text = "\n".join(markdown(copied("Validation")))
    assert text.startswith("### gpukube validate: 2 errors, 1 warning, 1 hint, 1 finding silenced\n")
    first = "- `pools.yaml:4:2` **error\\[GPK120 type\\]**: pools\\[0\\].x is 1\n"
    assert f"{first}  - why: because\n  - fix: write y" in text
    assert "<details><summary>1 finding silenced</summary>\n\n- `more.yaml:3:1` GPK502 aks-name-length: known\n" in text


def test_drain_when_written_then_as_any_report() -> None:
    assert next(iter(markdown(copied("Apply") | {"kind": "Drain"}))).startswith("### gpukube drain: ")
