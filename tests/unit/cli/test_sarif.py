"""SARIF logs: valid against the schema, and what GitHub's code scanning asks for beyond it."""

from __future__ import annotations

import json
from email.message import Message
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

from gpukube import api
from gpukube.cli.formats.sarif import sarif_lines, sarif_log
from gpukube.codes import FAMILIES
from gpukube.engine.documents.validation import lint_document, validation_document
from gpukube.engine.plan.prepare import Validation
from gpukube.engine.plan.silencing import Silenced
from gpukube.errors import Finding, Where
from gpukube.rule_ids import rule_title
from gpukube.spec.source.files import Source
from gpukube.workload.lint.check import lint
from gpukube_aks.codes import CODES as AKS_CODES
from gpukube_eks.codes import CODES as EKS_CODES
from gpukube_gke.codes import CODES as GKE_CODES
from tools.message_cases import WORKLOADS as PAGES
from tools.message_cases import message_cases

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SCHEMA = json.loads((Path(__file__).parent / "data" / "sarif-2.1.0.json").read_text("utf-8-sig"))
"""Of microsoft/sarif-sdk, src/Sarif/Schemata/sarif-2.1.0.json (MIT, see the license beside it)."""

TYPE = Finding("type", Where("a.yaml", 4, 2), "pools[0].x is 1", fix="write y", why="because")
NAME = Finding("aks-name-length", Where("a.yaml", 9, 7), '"abcdefghijkl" is long', fix="shorten", severity="warning")
UNUSED = Finding("silence-unused", Where("a.yaml", 12, 1), "unused", fix="remove it", severity="hint")
MISSING = Finding("file-missing", Where("b.yaml"), "does not exist", fix="check the path")
SET = Finding("set-path", Where("--set pools.x"), "no pool", fix="check -f")


def log_of(
    found: Sequence[Finding], silenced: Sequence[Silenced] = (), fields: Mapping[Where, str] | None = None
) -> dict[str, Any]:
    document = validation_document(Validation(1, 1, tuple(found), tuple(silenced), fields or {}))
    log = json.loads(json.dumps(sarif_log(document)))
    Draft202012Validator(SCHEMA).validate(log)
    assert isinstance(log, dict)
    return log


def run_of(found: Sequence[Finding], silenced: Sequence[Silenced] = ()) -> dict[str, Any]:
    (run,) = log_of(found, silenced)["runs"]
    assert isinstance(run, dict)
    return run


def test_schema_when_something_is_wrong_then_refuses_it() -> None:
    log = log_of([TYPE])
    log["runs"][0]["results"][0]["level"] = "hint"
    assert not Draft202012Validator(SCHEMA).is_valid(log)


def test_result_when_found_in_a_file_then_has_rule_level_place_and_text() -> None:
    (result,) = run_of([TYPE])["results"]
    assert (result["ruleId"], result["ruleIndex"], result["level"]) == ("GPK120", 0, "error")
    assert result["message"]["text"] == "pools[0].x is 1\nwhy: because\nfix: write y"
    assert result["locations"] == [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": "a.yaml", "uriBaseId": "%SRCROOT%"},
                "region": {"startLine": 4, "startColumn": 2},
            }
        }
    ]


def test_result_when_its_field_is_known_then_names_it() -> None:
    (run,) = log_of([TYPE], fields={TYPE.where: "pools[0].x"})["runs"]
    assert run["results"][0]["locations"][0]["logicalLocations"] == [{"fullyQualifiedName": "pools[0].x"}]


def test_levels_when_of_each_severity_then_error_warning_note() -> None:
    results = run_of([TYPE, NAME, UNUSED])["results"]
    assert [result["level"] for result in results] == ["error", "warning", "note"]
    assert "suppressions" not in results[0]


def test_rules_when_cited_then_each_once_with_the_sentences_that_github_asks_for() -> None:
    run = run_of([TYPE, TYPE, NAME, Finding("acme-odd", Where("a.yaml", 1, 1), "is odd", fix="x")])
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["GPK120", "acme-odd", "GPK502"]
    assert [rule["name"] for rule in rules] == ["type", "acme-odd", "aks-name-length"]
    for rule in rules:
        assert rule["shortDescription"]["text"].endswith(".")
        assert rule["fullDescription"]["text"]
    assert [rule["help"]["text"].rpartition(" ")[2] for rule in rules] == [
        "docs/diagnostics/spec.md#gpk120",
        "docs/diagnostics/README.md",
        "docs/diagnostics/aks.md#gpk502",
    ]
    assert rules[1]["shortDescription"]["text"] == "Acme odd."
    assert [rules[result["ruleIndex"]]["id"] for result in run["results"]] == [r["ruleId"] for r in run["results"]]


def test_rule_when_the_package_names_its_pages_then_has_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    named = Message()
    named["Project-URL"] = "Source, https://example.com/source"
    named["Project-URL"] = "Documentation, https://example.com/gpukube/"
    monkeypatch.setattr("gpukube.cli.formats.sarif.metadata", lambda _name: named)
    driver = run_of([TYPE])["tool"]["driver"]
    assert driver["informationUri"] == "https://example.com/gpukube/"
    assert driver["rules"][0]["helpUri"] == "https://example.com/gpukube/docs/diagnostics/spec.md#gpk120"


def test_rule_when_no_package_is_installed_then_has_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Message:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("gpukube.cli.formats.sarif.metadata", missing)
    driver = run_of([TYPE])["tool"]["driver"]
    assert ("informationUri" in driver, "helpUri" in driver["rules"][0]) == (False, False)


def test_silenced_when_there_are_some_then_every_result_says_whether_it_is() -> None:
    first, second = run_of([TYPE], [Silenced(NAME, "never replaced")])["results"]
    assert first["suppressions"] == []
    assert second["suppressions"] == [{"kind": "inSource", "justification": "never replaced"}]


def test_finding_when_in_no_file_then_is_a_notification_and_every_result_has_a_place() -> None:
    run = run_of([MISSING, SET, TYPE])
    assert [len(result["locations"]) for result in run["results"]] == [1]
    (invocation,) = run["invocations"]
    assert (invocation["exitCode"], invocation["executionSuccessful"]) == (4, True)
    notifications = invocation["toolConfigurationNotifications"]
    assert [one["message"]["text"] for one in notifications] == [
        "b.yaml: does not exist\nfix: check the path",
        "--set pools.x: no pool\nfix: check -f",
    ]
    ids = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert [ids[one["associatedRule"]["index"]] for one in notifications] == ["GPK101", "GPK116"]


def test_log_when_nothing_is_wrong_then_a_run_without_results() -> None:
    run = run_of([])
    assert (run["results"], run["invocations"][0]["exitCode"]) == ([], 0)


def prints(*found: Finding) -> list[str]:
    return [result["partialFingerprints"]["gpukubeFinding/v1"] for result in run_of(found)["results"]]


def test_fingerprint_when_lines_and_pools_move_then_stays() -> None:
    moved = Finding("type", Where("a.yaml", 40, 2), "pools[7].x is 1", fix="write y")
    assert prints(TYPE) == prints(moved)


def test_fingerprint_when_anything_else_differs_then_does_too() -> None:
    others = (
        Finding("type", Where("b.yaml", 4, 2), "pools[0].x is 1", fix="write y"),
        Finding("range", Where("a.yaml", 4, 2), "pools[0].x is 1", fix="write y"),
        Finding("type", Where("a.yaml", 4, 2), "pools[0].x is 2", fix="write y"),
    )
    assert len({*prints(TYPE), *(prints(other)[0] for other in others)}) == 4


def test_fingerprint_when_two_pools_have_the_same_mistake_then_each_has_its_own() -> None:
    second = Finding("type", Where("a.yaml", 40, 2), "pools[7].x is 1", fix="write y")
    assert len(set(prints(TYPE, second))) == 2


PATHS = {
    "as it is": ("pools/a.yaml", "pools/a.yaml", "%SRCROOT%"),
    "with detours": ("./pools/../a.yaml", "a.yaml", "%SRCROOT%"),
    "below us by its whole name": ("{here}/a.yaml", "a.yaml", "%SRCROOT%"),
    "with signs": ("a b#1.yaml", "a%20b%231.yaml", "%SRCROOT%"),
    "from stdin": ("-", "-", "%SRCROOT%"),
    "elsewhere": ("/elsewhere/a.yaml", "file:///elsewhere/a.yaml", ""),
}


@pytest.mark.parametrize(("file", "uri", "base"), PATHS.values(), ids=PATHS)
def test_place_when_a_path_is_named_then_is_relative_where_it_can_be(
    file: str, uri: str, base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = Finding("type", Where(file.format(here=tmp_path), 1, 1), "x", fix="y")
    (result,) = run_of([found])["results"]
    place = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert (place["uri"], place.get("uriBaseId", "")) == (uri, base)


def test_sentences_when_rules_have_them_then_those_of_their_tables() -> None:
    tables = (*FAMILIES.values(), AKS_CODES, EKS_CODES, GKE_CODES)
    codes = sorted({code for table in tables for code in table})
    wrong = [code for code in codes if rule_title(code) not in {table[code][1] for table in tables if code in table}]
    assert wrong == []


def test_log_when_made_of_every_bad_example_then_is_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for case in message_cases():
        case.lay_out(tmp_path / case.name)
    monkeypatch.chdir(tmp_path)
    bad = sorted(str(path) for path in Path().glob("*/bad.yaml"))
    validations = [api.validate([path], environ={}) for path in bad]
    findings = tuple(found for one in validations for found in one.findings)
    log = log_of(findings, [silenced for one in validations for silenced in one.silenced])
    assert len(log["runs"][0]["results"]) > len(bad)


def test_log_when_made_of_every_bad_manifest_then_is_valid() -> None:
    cases = message_cases(PAGES)
    found = lint([Source(f"{case.name}/bad.yaml", case.files["bad.yaml"].decode()) for case in cases])
    log = json.loads(json.dumps(sarif_log(lint_document(found))))
    Draft202012Validator(SCHEMA).validate(log)
    results = log["runs"][0]["results"]
    assert len(results) > len(cases) / 2
    assert {rule["id"][:4] for rule in log["runs"][0]["tool"]["driver"]["rules"]} == {"GPK7"}


def test_lines_when_written_then_are_the_log() -> None:
    document = validation_document(Validation(1, 1, (TYPE,), ()))
    assert json.loads("\n".join(sarif_lines(document))) == json.loads(json.dumps(sarif_log(document)))
