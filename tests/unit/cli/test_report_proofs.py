"""Proofs, checks and probes in a report, for people and for pull requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube.cli.formats.markdown import markdown
from gpukube.cli.rendering.report import check_words, render_report
from gpukube.cli.rendering.text import Hung, Text
from gpukube.cli.rendering.view import View
from gpukube.engine.documents.report import report_document
from tests.documents import PROVEN

if TYPE_CHECKING:
    from gpukube.engine.documents.shapes.report import ReportDocument

DOCUMENT: ReportDocument = report_document(PROVEN, kind="Verify")


def shown(*, verbose: bool = False) -> list[str]:
    lines = (line for line in render_report(DOCUMENT, View(verbose)) if isinstance(line, (Hung, Text, str)))
    return [f"{line.prefix}{line.body}" if isinstance(line, Hung) else str(line) for line in lines]


@pytest.mark.parametrize(
    ("expected", "seen", "holds", "words"),
    [
        ("True", "True", True, "label x: True"),
        ("c-1", "", False, "label x: absent, not c-1"),
        ("", "present", False, "label x: present, not absent"),
    ],
)
def test_check_when_shown_then_as_it_is_and_as_it_should_be(
    expected: str, seen: str, holds: object, words: str
) -> None:
    assert check_words({"what": "label x", "expected": expected, "seen": seen, "holds": bool(holds)}) == words


def test_report_when_shown_then_only_what_differs_and_with_verbose_all() -> None:
    assert "      label config: absent, not c-1" in shown()
    assert "      condition Ready: True" not in shown()
    assert "      condition Ready: True" in shown(verbose=True)


def test_report_when_probes_ran_then_each_with_its_outcome_and_output() -> None:
    lines = shown()
    at = lines.index("    = probe passed: sees 1g.5gb")
    assert lines[at + 1].startswith("      | GPU 0: ")
    assert "    ! probe failed: sees nothing" in lines
    assert "    - probe skipped: no node" in lines


def test_markdown_when_probes_ran_then_told_and_their_output_folded() -> None:
    text = "\n".join(markdown(DOCUMENT))
    assert "- ✅ `train-aks/good` probe passed: sees 1g.5gb" in text
    assert "- ❌ `train-aks/bad` probe failed: sees nothing" in text
    assert "- ⏸️ `train-aks/zero` probe skipped: no node" in text
    assert "<details><summary>train-aks/good: nvidia-smi -L</summary>" in text
    assert "| ❌ | `node-1` | `nvidia.com/gpu` | 56 | 8 |" in text
    assert "| ✏️ | `node-1` | label config | `c-1` | `absent` |" in text
