"""GitLab's code quality report: its five keys, paths of the repository, fingerprints that survive other edits."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest
from jsonschema import Draft202012Validator

from gpukube.cli.formats import places
from gpukube.cli.formats.codequality import codequality_lines
from gpukube.cli.formats.github import github_lines
from gpukube.cli.formats.terraform import gitlab_lines
from gpukube.cli.kinds import FORMATS
from gpukube.visible import visible_tree
from tests.big import big_validation, copied
from tests.documents import DOCUMENTS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FORMAT: Final = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["description", "check_name", "fingerprint", "severity", "location"],
        "additionalProperties": False,
        "properties": {
            "description": {"type": "string", "minLength": 1},
            "check_name": {"type": "string", "minLength": 1},
            "fingerprint": {"type": "string", "minLength": 1},
            "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
            "location": {
                "type": "object",
                "required": ["path", "lines"],
                "properties": {
                    "path": {"type": "string", "pattern": "^[^./]"},
                    "lines": {"required": ["begin"], "properties": {"begin": {"type": "integer", "minimum": 1}}},
                },
            },
        },
    },
}
"""docs.gitlab.com/ci/testing/code_quality "Code Quality report format": relative paths without ./ before them."""


def issues(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads("\n".join(codequality_lines(visible_tree(document))))
    Draft202012Validator(FORMAT).validate(found)
    assert len({one["fingerprint"] for one in found}) == len(found)
    return found


@pytest.mark.parametrize("name", [name for name, one in DOCUMENTS.items() if "codequality" in FORMATS[one["kind"]]])
def test_document_when_written_then_in_gitlabs_format(name: str) -> None:
    assert bool(issues(DOCUMENTS[name])) == (name != "same")


def test_findings_when_written_then_with_rule_severity_and_place() -> None:
    first, second, third = issues(DOCUMENTS["Validation"])  # what is in no file has no place in this format
    assert (first["check_name"], first["severity"], first["location"]) == (
        "GPK120",
        "critical",
        {"path": "pools.yaml", "lines": {"begin": 4}},
    )
    assert first["description"] == "gpukube [GPK120 type]: pools[0].x is 1\nwhy: because\nfix: write y"
    assert (second["severity"], third["severity"]) == ("minor", "info")


def test_fingerprints_when_lines_and_pools_move_then_the_same() -> None:
    before = {one["fingerprint"] for one in issues(DOCUMENTS["Validation"])}
    document = copied("Validation")
    for found in (*document["errors"], *document["warnings"], *document["hints"]):
        found["message"] = found["message"].replace("pools[0]", "pools[7]")
        if found["position"]:
            found["position"]["line"] += 40
            found["where"] = f"{found['position']['file']}:{found['position']['line']}:{found['position']['column']}"
    assert {one["fingerprint"] for one in issues(document)} == before


def test_fingerprints_when_there_are_10000_findings_then_all_differ() -> None:
    document = big_validation(10_000)
    document["errors"][1] = {**document["errors"][0]}  # twice the same, as from two documents of one file
    assert len(issues(document)) == 10_000


def test_paths_when_run_below_the_top_of_the_repository_then_from_its_top(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    below = tmp_path / "clusters" / "eu"
    below.mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(below)
    (first, *_) = issues(DOCUMENTS["Validation"])
    assert first["location"]["path"] == "clusters/eu/pools.yaml"
    assert next(github_lines(DOCUMENTS["Validation"])).startswith("::error file=clusters/eu/pools.yaml,line=4,col=2,")
    assert places.repository_path(str(tmp_path / "a.yaml")) == "a.yaml"
    assert places.repository_path("../../../elsewhere.yaml") == "../../../elsewhere.yaml"


def test_gitlabs_terraform_report_when_written_then_three_numbers_with_releases_and_replacements_twice() -> None:
    assert json.loads("\n".join(gitlab_lines(copied("Plan")))) == {"create": 2, "update": 4, "delete": 2}  # type: ignore[arg-type]
    assert json.loads("\n".join(gitlab_lines(copied("same")))) == {"create": 0, "update": 0, "delete": 0}  # type: ignore[arg-type]
