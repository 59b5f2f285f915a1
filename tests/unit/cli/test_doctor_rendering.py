"""What the doctor found, as people read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube.cli.rendering.doctor import MOST_OF_A_CHECK, render_doctor
from gpukube.cli.rendering.text import Hung
from gpukube.cli.rendering.view import View

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpukube.cli.rendering.text import Line
    from gpukube.engine.documents.shapes.doctor import AilmentPart, DoctorDocument


def ailment(where: str) -> AilmentPart:
    return {
        "check": "no-plugin",
        "rule": "",
        "title": "title",
        "severity": "error",
        "where": where,
        "seen": "labels[team] is gone",
        "evidence": ["a line"],
        "consequence": "what follows",
        "remedy": "kubectl",
        "link": "https://example.org",
        "fix": "label node n",
    }


def document(count: int, *, made: int = 40) -> DoctorDocument:
    error = {
        "severity": "error",
        "code": "kube-forbidden",
        "where": "train",
        "position": None,
        "message": "not allowed",
        "why": "",
        "fix": "ask",
    }
    return {
        "schemaVersion": 1,
        "kind": "Doctor",
        "exitCode": 1,
        "summary": {"error": count} if count else {},
        "clusters": [
            {
                "cluster": "train",
                "made": made,
                "ailments": [ailment(f"node n{number}") for number in range(count)],
                "skipped": [{"check": "release-stuck", "reading": "releases"}],
                "mended": [],
                "unmended": [],
                "errors": [error],  # type: ignore[list-item]  # test data
            }
        ],
    }


def texts(lines: Iterable[Line]) -> list[str]:
    return [line.plain if isinstance(line, Hung) else str(line) for line in lines]


def test_rendering_when_an_ailment_is_shown_then_place_reason_and_remedies_follow() -> None:
    assert texts(render_doctor(document(1), View()))[1:6] == [
        "  node n0: error[no-plugin]: labels[team] is gone",
        "      observed: a line",
        "      why: what follows",
        "      fix: kubectl",
        "      --fix: label node n",
    ]


@pytest.mark.parametrize(("verbose", "shown"), [(False, MOST_OF_A_CHECK), (True, 9)])
def test_rendering_when_a_whole_pool_is_ill_then_the_first_are_shown_and_the_rest_counted(
    verbose: bool,  # noqa: FBT001 - a case
    shown: int,
) -> None:
    lines = texts(render_doctor(document(9), View(verbose=verbose)))
    assert sum("error[no-plugin]" in line for line in lines) == shown
    assert ("  and 4 more of no-plugin (-v shows all)" in lines) is not verbose


@pytest.mark.parametrize(("made", "told"), [(40, False), (0, True)])
def test_rendering_when_nothing_could_be_examined_then_the_errors_are_shown(
    made: int,
    told: bool,  # noqa: FBT001 - a case
) -> None:
    lines = texts(render_doctor(document(0, made=made), View()))
    assert any("kube-forbidden" in line for line in lines) is told
    assert lines[-1] == "doctor: no problems found, but not everything could be read"
