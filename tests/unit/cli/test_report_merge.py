"""`gpukube report merge`: the documents of shards from files, and files that are missing, cut off or not theirs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

import pytest

from gpukube.__main__ import main
from gpukube.cli.app import command_line
from gpukube.cli.kinds import FORMATS
from gpukube.engine.documents.schema import SCHEMA_NAMES, document_schema
from gpukube.engine.merging import KINDS
from tests.unit.cli.test_completion import commands
from tests.unit.engine.fleets import fleet_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Literal

    Merge = Callable[..., tuple[int, str, str]]

FLEET = fleet_of(12, trouble=0.0)
WHOLE, CODE = FLEET.whole("Diff")


@pytest.fixture
def merge(capsys: pytest.CaptureFixture[str]) -> Merge:
    """Run the command in this process: its exit code, stdout and stderr."""

    def run(*words: object) -> tuple[int, str, str]:
        code = main(["report", "merge", *map(str, words)])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Write the documents of three shards."""
    made = []
    for document in FLEET.shards(3, "Diff"):
        made.append(tmp_path / f"{document['shard']['index']}.json")
        made[-1].write_text(json.dumps(document))
    return made


def test_merge_when_all_are_there_then_the_document_and_the_code_of_one_run(files: list[Path], merge: Merge) -> None:
    code, out, err = merge(*files[::-1], "-o", "json")
    document = json.loads(out)
    how = document.pop("merged")
    assert (code, err, how["missing"]) == (CODE, "", [])
    assert document == WHOLE
    _, table, _ = merge(*files)
    _, same, _ = merge(*files[::-1])
    assert table == same
    assert "partial" not in table


def test_merge_when_files_are_missing_or_cut_off_then_the_rest_marked_as_partial(
    files: list[Path], merge: Merge
) -> None:
    files[0].write_text("")
    files[1].write_text(files[1].read_text()[:-20])
    code, out, err = merge(*files, "-o", "json")
    assert (code, json.loads(out)["merged"]["missing"]) == (1, [1, 2])
    assert f"{files[0]}: warning[report-cut]: it is empty\n    fix: " in err
    assert f"{files[1]}: warning[report-cut]: it is truncated: " in err
    assert "error[merge-missing]: partial: 2 of 3 shards missing: 1, 2\n    fix: run these shards again" in err
    code, out, _ = merge(files[2])
    assert (code, out.splitlines()[-1]) == (1, "partial: 2 of 3 shards missing: 1, 2")


UNMARKED = ("codequality", "gitlab-terraform", "name", "terraform-json")
"""Formats of other tools, which have no place for it; the exit code and stderr tell."""


@pytest.mark.parametrize("kind", ["Plan", "Diff"])
def test_merge_when_partial_then_each_format_marks_it(
    kind: Literal["Plan", "Diff"], tmp_path: Path, merge: Merge
) -> None:
    (tmp_path / "1.json").write_text(json.dumps(FLEET.shards(3, kind)[0]))
    for form in FORMATS[kind]:
        code, out, err = merge(tmp_path / "1.json", "-o", form)
        assert (code, "partial: 2 of 3 shards missing: 2, 3" in err) == (1, True), form
        marks = ("partial: 2 of 3 shards missing: 2, 3", '"missing": [\n      2,', "missing:\n  - 2\n  - 3")
        assert any(mark in out for mark in marks) != (form in UNMARKED), form


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("", "report-cut"),
        ("{", "report-cut"),
        ("kind: Diff", "report-document"),
        ('{"kind": "SavedPlan"}', "report-document"),
    ],
)
def test_merge_when_no_file_is_of_a_shard_then_four_and_nothing_written(
    content: str, code: str, tmp_path: Path, merge: Merge
) -> None:
    (tmp_path / "a.json").write_text(content)
    done, out, err = merge(tmp_path / "a.json", "-o", "json")
    assert (done, out) == (4, "")
    assert f"a.json: error[{code}]: " in err


def test_merge_when_one_file_is_foreign_then_four_though_others_are_right(files: list[Path], merge: Merge) -> None:
    files[1].write_text('{"items": []}')
    code, out, err = merge(*files)
    assert (code, out) == (4, "")
    assert "2.json: error[report-document]: it is not a gpukube document" in err
    code, out, err = merge(files[0], files[1].with_name("none.json"))
    assert (code, out) == (4, "")
    assert "none.json: error[report-file]: it cannot be read: no such file" in err


def test_merge_when_the_format_is_of_other_kinds_then_four(files: list[Path], merge: Merge) -> None:
    code, out, err = merge(*files, "-o", "sarif")
    assert (code, out, "error[output-format]" in err) == (4, "", True)


def test_merge_when_parts_contradict_each_other_then_four_and_no_traceback(files: list[Path], merge: Merge) -> None:
    document: dict[str, Any] = json.loads(files[0].read_text())
    document["clusters"][0]["pools"] = [{}]
    files[0].write_text(json.dumps(document))
    code, out, err = merge(*files)
    assert (code, out, "Traceback" in err) == (4, "", False)


def test_shards_when_a_command_takes_them_then_its_documents_can_be_merged() -> None:
    kinds = dict(PAIRS)
    takers = {
        kinds[" ".join(path)]
        for path, command in commands(command_line())
        if any(parameter.name == "shard" for parameter in command.params)
    }
    assert takers == set(KINDS)
    for kind in KINDS:
        properties = cast("dict[str, object]", document_schema(SCHEMA_NAMES[kind])["properties"])
        assert properties.keys() >= {"shard", "merged"}


PAIRS = (
    *(("pool plan", "Plan"), ("pool plan diff", "Diff"), ("pool create", "Create"), ("pool apply", "Apply")),
    *(("pool wait", "Wait"), ("pool list", "PoolList"), ("pool verify", "Verify"), ("doctor", "Doctor")),
    *(("pool map", "Map"), ("pool usage", "Usage")),
)
"""Commands that take --shard, and their documents."""
