"""What CI systems take at most: sizes to the byte, the worst first, and nothing broken in the middle."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import pytest

from gpukube.cli.formats.cutting import Block, Frame, fitted
from gpukube.cli.formats.github import SHOWN, github_lines
from gpukube.cli.formats.junit import junit_lines
from gpukube.cli.formats.markdown import COMMENT, SUMMARY, comment, markdown
from gpukube.visible import visible_tree
from tests.big import big_plan, big_report, big_validation
from tests.documents import DOCUMENTS

if TYPE_CHECKING:
    from collections.abc import Callable

DOCUMENTS_OF: Final[dict[str, Callable[[], dict[str, Any]]]] = {
    "a plan of 3,000 pools": lambda: big_plan(3000),
    "10,000 findings": lambda: big_validation(10_000),
    "a report of 3,000 pools": lambda: big_report(3000),
}
LEFT_OUT: Final = re.compile(r"\*\*Truncated, most severe first\.\*\* Omitted: (.*?)\. ")


@cache
def text_of(name: str, form: str) -> str:
    document = visible_tree(DOCUMENTS_OF[name]())
    lines = comment(document) if form == "comment" else markdown(document)
    return "".join(f"{line}\n" for line in lines)


def require_whole(text: str) -> None:
    """Check that no table, fence, folded part or list item is broken."""
    lines = text.splitlines()
    columns, fence, depth = 0, "", 0
    for line in lines:
        if fence:
            fence = "" if line == fence else fence
            continue
        if opened := re.match(r"`{3,}", line):
            fence = opened[0]
        elif line.startswith("<details><summary>"):
            assert line.endswith("</summary>")
            depth += 1
        elif line == "</details>":
            depth -= 1
        elif line.startswith("|"):
            cells = len(re.findall(r"(?<!\\)\|", line)) - 1
            assert line.endswith("|"), line
            assert columns in (0, cells), line
            columns = cells
        else:
            columns = 0
        assert depth in (0, 1)
    assert (fence, depth) == ("", 0)


@pytest.mark.parametrize("name", DOCUMENTS_OF)
def test_comment_when_too_long_then_65536_characters_at_most_however_they_are_counted(name: str) -> None:
    text = text_of(name, "comment")
    units = len(text.encode("utf-16-le")) // 2
    assert COMMENT * 0.9 < units <= COMMENT == 65_536
    assert len(text) <= units  # code points, which GitHub may count instead
    assert text.startswith("<!-- gpukube:")
    require_whole(text)


@pytest.mark.parametrize("name", DOCUMENTS_OF)
def test_summary_when_too_long_then_one_mebibyte_of_utf8_at_most(name: str) -> None:
    size = len(text_of(name, "markdown").encode())
    assert size <= SUMMARY == 1_048_576
    assert size > SUMMARY * 0.9 or "Cut to fit" not in text_of(name, "markdown")
    require_whole(text_of(name, "markdown"))


@pytest.mark.parametrize("form", ["comment", "markdown"])
def test_plan_when_cut_then_what_is_destroyed_is_kept_first_and_the_rest_is_counted(form: str) -> None:
    text = text_of("a plan of 3,000 pools", form)
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("|") and line.count(" | ") == 8][2:]
    actions = [re.sub(r"\W", "", row[3]) for row in rows]
    order = ("delete", "replace", "conflict", "unknown", "update", "create", "adopt", "noop")
    assert actions == sorted(actions, key=order.index)
    found = LEFT_OUT.search(text)
    assert found
    assert found.start() < text.index("| --- |")  # before what is cut
    total = 3000 + sum(len(one["pools"]) + len(one["unplanned"]) for one in DOCUMENTS["Plan"]["clusters"][1:])
    assert [int(count.replace(",", "")) for count in re.findall(r"([\d,]+) pools", found[1])] == (
        [total - len(actions)] if len(actions) < total else []
    )
    assert "error\\[no-cluster\\]" in text  # however many pools are destroyed
    assert len(actions) > 100


@pytest.mark.parametrize("form", ["comment", "markdown"])
def test_findings_when_cut_then_errors_are_kept_first_and_the_rest_is_counted(form: str) -> None:
    text = text_of("10,000 findings", form)
    kept = re.findall(r"^- .*\*\*(error|warning|hint)", text, flags=re.MULTILINE)
    assert kept == sorted(kept, key=("error", "warning", "hint").index)
    assert set(kept[:100]) == {"error"}
    found = LEFT_OUT.search(text)
    assert found
    assert f"{10_000 - len(kept):,} findings" in found[1]


def test_report_when_cut_then_the_pools_that_failed_are_kept() -> None:
    text = text_of("a report of 3,000 pools", "comment")
    assert text.count("| failed |") == 30
    assert "`-o markdown`, for a job summary, has more; `-o json` has everything." in text


def test_details_when_only_they_are_too_long_then_left_out_alone() -> None:
    text = "".join(f"{line}\n" for line in comment(big_plan(150)))
    found = LEFT_OUT.search(text)
    assert found
    assert re.fullmatch(r"\d+ folded parts", found[1])
    assert "<details>" in text


@pytest.mark.parametrize("name", DOCUMENTS)
def test_document_when_it_fits_then_nothing_is_said_of_cuts(name: str) -> None:
    if name in ("Pool", "Map"):  # no Markdown
        return
    text = "".join(f"{line}\n" for line in comment(DOCUMENTS[name]))
    assert "Cut to fit" not in text
    require_whole(text)


@pytest.mark.parametrize("room", range(0, 400, 7))
def test_blocks_when_the_room_is_any_then_never_more_and_whole_frames(room: int) -> None:
    table = Frame(("| a |", "| --- |"))
    blocks = [Block(("# title", ""))]
    blocks += [Block((f"| {'ü' * number} |",), "row", number % 3, table) for number in range(1, 12)]
    blocks += [Block(("```", "x" * 30, "```", ""), "fence", 9)] * 3
    lines = list(fitted(blocks, room, lambda line: len(line.encode()) + 1, "Elsewhere."))
    least = ["# title", "", "**Truncated, most severe first.** Omitted: 11 rows, 3 fences. Elsewhere.", ""]
    assert sum(len(line.encode()) + 1 for line in lines) <= max(room, sum(len(line.encode()) + 1 for line in least))
    require_whole("\n".join(lines))
    rows = [line for line in lines if line.startswith("| ü")]
    assert bool(rows) == ("| --- |" in lines)


def test_annotations_when_there_are_10000_findings_then_ten_of_a_level_the_worst_and_all_in_the_log() -> None:
    lines = list(github_lines(visible_tree(big_validation(10_000))))
    commands = [line for line in lines if line.startswith("::")]
    assert len(commands) == 3 * SHOWN <= 50
    for level, rest in (("error", 91), ("warning", 4891), ("notice", 4991)):
        of_level = [line for line in commands if line.startswith(f"::{level} ")]
        assert len(of_level) == SHOWN
        assert of_level[-1].endswith(f"::{rest} more of this level are in the log of this step")
        assert sum(line.startswith(f"{level}: ") for line in lines) == rest
    assert all(len(line.splitlines()) == 1 for line in lines)


def test_annotations_when_a_diff_has_3000_pools_then_deletions_come_first() -> None:
    commands = [line for line in github_lines(big_plan(3000, "Diff")) if line.startswith("::error")]
    assert len(commands) == SHOWN
    assert all("%3A delete::" in line for line in commands[:-1])


def test_document_when_shards_are_missing_then_every_format_tells() -> None:
    part = {"total": 16, "missing": [4, 9], "spec": "sha256:0", "exitCode": 1}
    document = {**DOCUMENTS["same"], "merged": part}
    line = "partial: 2 of 16 shards missing: 4, 9"
    assert f"**{line}**" in list(comment(document))[:8]
    assert next(iter(github_lines(document))) == f"::error title=gpukube::{line}"
    assert f'<error message="{line}" type="shards-missing" />' in "".join(junit_lines(document))
    assert line not in "".join(github_lines({**document, "merged": {**part, "missing": []}}))
