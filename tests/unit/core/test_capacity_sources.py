"""The vocabulary of capacity, and how sources are read."""

from __future__ import annotations

import pytest

from gpukube.core.capacity_sources import KNOWN, Reading, SourceLine, band, failed_line
from gpukube.core.permissions import PRINT_POLICY
from gpukube.errors import NotAllowed


def test_known_when_ordered_then_reserved_machines_are_best_and_silence_is_worse_than_a_refusal() -> None:
    assert KNOWN == ("free", "offered", "likely", "possible", "unlikely", "none", "not told", "not asked")


@pytest.mark.parametrize(
    ("score", "known"), [(1.0, "likely"), (0.7, "likely"), (0.69, "possible"), (0.4, "possible"), (0.0, "unlikely")]
)
def test_band_when_score_is_at_a_bound_then_it_has_the_better_class(score: float, known: str) -> None:
    assert band(score, 0.7, 0.4) == known


def test_reading_when_a_source_fails_then_it_is_a_line_and_the_others_are_read() -> None:
    def refuse() -> int:
        raise NotAllowed("not authorized to ask", fix="allow it", code="forbidden")

    reading = Reading()
    assert reading.read("scores", refuse) is None
    assert reading.read("prices", lambda: 7) == 7
    reading.skip("mix", "it is a preview")
    assert reading.lines == [
        SourceLine("scores", "failed", "forbidden", "not authorized to ask; allow it"),
        SourceLine("prices"),
        SourceLine("mix", "not asked", text="it is a preview"),
    ]


def test_a_source_that_was_refused_names_the_command_that_prints_its_permission() -> None:
    refused = NotAllowed("not allowed", fix=f"allow ec2:X; {PRINT_POLICY} prints all that is needed", code="permission")
    assert failed_line("scores", refused).text == (
        "not allowed; allow ec2:X; gpukube doctor -f SPEC --print-policy plan --with capacity prints all that is needed"
    )
