"""The page of diagnostics is up to date, names every rule, and shows each by what is wrong and what is right."""

from __future__ import annotations

import re

import pytest

from gpukube.rule_ids import RULE_IDS
from tools.diagnostics_docs import PAGE, ROOMS, SHADOWED, diagnostics_page
from tools.message_cases import message_cases


def sections() -> dict[str, str]:
    found = re.split(r"^### (GPK\d+) \S+$", diagnostics_page(), flags=re.MULTILINE)
    return dict(zip(found[1::2], found[2::2], strict=True))


SECTIONS = sections()


def test_page_when_tables_or_examples_change_then_it_is_written_again() -> None:
    assert PAGE.read_text("utf-8") == diagnostics_page(), "run: python -m tools.codes_docs"


def test_page_when_read_then_every_number_has_its_section_and_its_anchor() -> None:
    numbers = [RULE_IDS[code] for table in ROOMS.values() for code in table]
    assert list(SECTIONS) == numbers
    page = PAGE.read_text("utf-8")
    assert [number for number in numbers if f'<a id="{number.lower()}"></a>' not in page] == []


@pytest.mark.parametrize("code", sorted({case.code for case in message_cases()}))
def test_section_when_read_then_shows_what_is_wrong_what_is_right_and_what_is_said(code: str) -> None:
    section = SECTIONS[RULE_IDS[code]]
    assert f"[{RULE_IDS[code]} {code}]: " in section
    assert "    fix: " in section
    examples = section.split("```diff\n")[1:]
    lines = [line for example in examples for line in example.partition("```")[0].splitlines()]
    assert any(line.startswith(("-", "+")) for line in lines), "bad.yaml and good.yaml say the same"


def test_section_when_no_spec_leads_there_then_says_so() -> None:
    assert all("No spec leads here" in SECTIONS[RULE_IDS[code]] for code in SHADOWED)
