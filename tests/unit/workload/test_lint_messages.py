"""Every code of `gpukube workload lint` has a page under tests/workloads: a wrong manifest, what is said, a right one.

The form of the pages is in tools/message_cases.py; docs/diagnostics/workloads.md shows the difference.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest

from gpukube.codes import WORKLOADS as CODES
from gpukube.errors import SEVERITIES, render_diagnostics
from gpukube.rule_ids import rule_label
from gpukube.spec.source.files import Source
from gpukube.workload.lint.check import lint
from gpukube.workload.lint.registry import RULES
from tests.unit.workload.specs import described
from tools.message_cases import WORKLOADS, message_cases

if TYPE_CHECKING:
    from pathlib import Path

    from gpukube.workload.offers import PoolOffer
    from tools.message_cases import Case

STYLE_FORBIDS = ("invalid", "failed to", "please", "https://")
WITHOUT_RULE = {"no-manifest", "ignore-rule", "ignore-unused", "ignore-reason"}
CASES = message_cases(WORKLOADS)
each_case = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])


@cache
def offers_of(spec: str, directory: Path) -> tuple[PoolOffer, ...]:
    """Describe the pools of a spec; many pages have the same one."""
    return tuple(described(directory, spec).values())


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("specs")


def say(case: Case, file: str, directory: Path) -> str:
    """Describe what is found in one of a page's manifests."""
    spec = case.files.get("pools.yaml")
    offers = offers_of(spec.decode(), directory) if spec else None
    return render_diagnostics(lint([Source(file, case.files[file].decode())], offers=offers).findings)


@each_case
def test_bad_manifest_when_linted_then_says_what_is_expected(
    case: Case, directory: Path, request: pytest.FixtureRequest
) -> None:
    said = say(case, "bad.yaml", directory) + "\n"
    if request.config.getoption("--update", default=False):
        case.update(said)
    else:
        assert said == case.said, "if it is right, run: pytest --update tests/unit/workload/test_lint_messages.py"
    assert f"[{rule_label(case.code)}]: " in said


@each_case
def test_good_manifest_when_linted_then_nothing_is_said(case: Case, directory: Path) -> None:
    assert say(case, "good.yaml", directory) == ""


@each_case
def test_message_when_shown_then_keeps_the_house_form(case: Case) -> None:
    assert not [word for word in STYLE_FORBIDS if word in case.said]
    for line in case.said.splitlines():
        assert not line.endswith((".", " ")) or line.endswith("...")
    assert sum(case.said.count(f"{severity}[") for severity in SEVERITIES) == case.said.count("    fix: ")


def test_codes_when_lint_can_show_them_then_each_has_a_page_and_a_rule() -> None:
    pages = {case.code for case in CASES}
    assert CODES.keys() - pages == set(), f"add a page for these codes to tests/workloads: {CODES.keys() - pages}"
    assert pages - CODES.keys() == set(), f"add rows for these pages to gpukube/codes.py: {pages - CODES.keys()}"
    assert RULES.keys() == CODES.keys() - WITHOUT_RULE


@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
def test_rule_when_explained_then_has_a_source_and_the_house_form(rule: object) -> None:
    why, fix, source = (str(getattr(rule, name)) for name in ("why", "fix", "source"))
    assert source.startswith("https://")
    for text in (why, fix):
        assert text
        assert not text.endswith(".")
        assert text[0] == text[0].lower() or text.split()[0] in (
            "GPU",
            "Ray",
            "Ray's",
            "KubeRay",
            "CUDA",
            "GKE",
            "EKS",
            "AKS",
        )
