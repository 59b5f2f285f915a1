"""Every code that `gpukube validate` can show has a page under tests/messages: a wrong spec, what is said, a right one.

The form of the pages is in tools/message_cases.py; docs/diagnostics shows the difference between wrong and right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube import api
from gpukube.codes import GPUS, POOLS, SPEC
from gpukube.errors import SEVERITIES, SpecError, render_diagnostics
from gpukube.rule_ids import rule_label
from gpukube_aks.codes import CODES as AKS_CODES
from gpukube_eks.codes import CODES as EKS_CODES
from gpukube_gke.codes import CODES as GKE_CODES
from tools.diagnostics_docs import SHADOWED
from tools.message_cases import message_cases

if TYPE_CHECKING:
    from pathlib import Path

    from tools.message_cases import Arguments, Case

STYLE_FORBIDS = ("invalid", "failed to", "please", "pydantic", "https://", "Input should")
REACHABLE = tuple(dict.fromkeys((*SPEC, *GPUS, *POOLS, *AKS_CODES, *EKS_CODES, *GKE_CODES)))
CASES = message_cases()
each_case = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])


def validate(given: Arguments) -> str:
    """Describe what the user is told: all findings of a spec with errors, else its warnings and hints."""
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


@each_case
def test_bad_spec_when_validated_then_says_what_is_expected(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    case.lay_out(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", None)
    said = validate(case.arguments("bad")) + "\n"
    if request.config.getoption("--update", default=False):
        case.update(said)
    else:
        assert said == case.said, "if the new message is right, run: pytest --update tests/unit/test_messages.py"
    assert f"[{rule_label(case.code)}]: " in said


@each_case
def test_good_example_when_validated_then_nothing_of_the_kind_is_said(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "good.yaml" in case.files or "good" in case.more, "add good.yaml: what to write instead"
    case.lay_out(tmp_path)
    monkeypatch.chdir(tmp_path)
    said = validate(case.arguments("good"))
    assert "error[" not in said, said
    assert f"[{rule_label(case.code)}]" not in said, said


def test_messages_when_shown_then_keep_the_house_form() -> None:
    for case in CASES:
        assert not [word for word in STYLE_FORBIDS if word in case.said], case.name
        for line in case.said.splitlines():
            assert not line.endswith((".", " ")) or line.endswith("..."), case.name
        found = sum(case.said.count(f"{severity}[") for severity in SEVERITIES)
        assert found == case.said.count("    fix: "), case.name


def test_codes_when_validate_can_show_them_then_each_has_a_page() -> None:
    shown = {case.code for case in CASES}
    assert sorted(set(REACHABLE) - shown) == sorted(SHADOWED)
    assert sorted(shown - set(REACHABLE)) == []
