"""The doctor's page lists every check there is."""

from __future__ import annotations

from collections import Counter

from gpukube.doctor.checks.registry import CHECKS
from tools.doctor_docs import FAMILIES, PAGE, doctor_page


def test_doctor_page_when_checks_change_then_it_is_written_again() -> None:
    written = PAGE.read_text("utf-8")
    assert written == doctor_page(written), "run: python -m tools.doctor_docs"


def test_doctor_page_when_read_then_lists_the_registry_and_every_id_once() -> None:
    listed = [check.id for checks in FAMILIES.values() for check in checks]
    assert listed == [check.id for check in CHECKS], "add the new family to FAMILIES in tools/doctor_docs.py"
    assert max(Counter(listed).values()) == 1
