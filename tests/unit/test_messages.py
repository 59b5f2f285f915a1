"""Every code that `gpukube validate` can show has a folder under tests/messages: bad.yaml -> expected.txt.

A folder is named by its code, or `code.case` for one more way to get there. good.yaml beside it is what to write
instead; docs/diagnostics.md shows the difference. arguments.json (and good.json, for what is right) holds what a
command line adds: paths, sets, environ, clusters and pools (filters); loads is for the library, which may load more
than once.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gpukube import api
from gpukube.codes import GPUS, POOLS
from gpukube.errors import SEVERITIES, SpecError, render_diagnostics
from gpukube.rule_ids import rule_label
from gpukube.spec.codes import CODES as SPEC_CODES
from gpukube_aks.codes import CODES as AKS_CODES
from gpukube_eks.codes import CODES as EKS_CODES
from gpukube_gke.codes import CODES as GKE_CODES
from tools.diagnostics_docs import SHADOWED, Arguments, arguments_of

FOLDERS = Path(__file__).parents[1] / "messages"
STYLE_FORBIDS = ("invalid", "failed to", "please", "pydantic", "https://", "Input should")
REACHABLE = tuple(dict.fromkeys((*SPEC_CODES, *GPUS, *POOLS, *AKS_CODES, *EKS_CODES, *GKE_CODES)))
CASES = tuple(sorted(folder.name for folder in FOLDERS.iterdir()))


def validate(given: Arguments) -> str:
    """Say what the user is told: all findings of a spec with errors, else its warnings and hints."""
    loads = given.get("loads", [given.get("paths", [])])
    sets, environ = given.get("sets", []), given.get("environ", {})
    if not given.keys() & {"loads", "clusters", "pools"}:
        return render_diagnostics(api.validate(given.get("paths", []), sets=sets, environ=environ).findings)
    filters = api.Filters(tuple(given.get("clusters", [])), tuple(given.get("pools", [])))
    try:
        specs = [spec for paths in loads for spec in api.load(paths, sets=sets, environ=environ)]
        return render_diagnostics(api.prepare(specs, filters).warnings)
    except SpecError as error:
        return error.render()


@pytest.mark.parametrize("case", CASES)
def test_bad_spec_when_validated_then_says_what_is_expected(
    case: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    folder = FOLDERS / case
    monkeypatch.chdir(folder)
    monkeypatch.setattr("sys.stdin", None)
    said = validate(arguments_of(folder, "arguments.json", "bad.yaml")) + "\n"
    if request.config.getoption("--update", default=False):
        (folder / "expected.txt").write_text(said, "utf-8")
    assert f"[{rule_label(case.partition('.')[0])}]: " in said
    assert said == (folder / "expected.txt").read_text("utf-8")


@pytest.mark.parametrize("case", CASES)
def test_good_example_when_validated_then_nothing_of_the_kind_is_said(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = FOLDERS / case
    assert (folder / "good.yaml").exists() or (folder / "good.json").exists(), "add good.yaml: what to write instead"
    monkeypatch.chdir(folder)
    said = validate(arguments_of(folder, "good.json", "good.yaml"))
    assert "error[" not in said, said
    assert f"[{rule_label(case.partition('.')[0])}]" not in said, said


@pytest.mark.parametrize("case", CASES)
def test_message_when_shown_then_keeps_the_house_form(case: str) -> None:
    said = (FOLDERS / case / "expected.txt").read_text("utf-8")
    assert not [word for word in STYLE_FORBIDS if word in said]
    for line in said.splitlines():
        assert not line.endswith((".", " ")) or line.endswith("...")
    assert sum(said.count(f"{severity}[") for severity in SEVERITIES) == said.count("    fix: ")


def test_codes_when_validate_can_show_them_then_each_has_a_folder() -> None:
    folders = {case.partition(".")[0] for case in CASES}
    assert sorted(set(REACHABLE) - folders) == sorted(SHADOWED)
    assert sorted(folders - set(REACHABLE)) == []
