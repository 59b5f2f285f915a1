"""The pages of diagnostics are up to date, name every rule, and show each by what is wrong and what is right."""

from __future__ import annotations

import re

from gpukube.rule_ids import rule_numbers, rule_page
from tools.diagnostics_docs import FAMILIES, FOLDER, ROOT, SHADOWED, diagnostics_pages
from tools.message_cases import WORKLOADS, message_cases

PAGES = diagnostics_pages()
NUMBERS = rule_numbers()


def sections() -> dict[str, str]:
    found = re.split(r"^## (GPK\d+) \S+$", "".join(PAGES.values()), flags=re.MULTILINE)
    return dict(zip(found[1::2], found[2::2], strict=True))


SECTIONS = sections()


def test_pages_when_tables_or_examples_change_then_they_are_written_again() -> None:
    assert {page.name: page.read_text("utf-8") for page in FOLDER.glob("*")} == PAGES, "run: python -m tools.codes_docs"


def test_pages_when_read_then_every_number_has_its_section() -> None:
    assert list(SECTIONS) == [NUMBERS[code] for _, table in FAMILIES.values() for code in table]
    assert sorted(SECTIONS) == sorted(NUMBERS.values())


def test_addresses_of_rules_when_followed_then_their_pages_have_the_anchors() -> None:
    addresses = {code: rule_page(code).partition("#") for code in sorted(NUMBERS)}
    pages = {page: (ROOT / page).read_text("utf-8") for page, _, _ in addresses.values()}
    lost = [
        code
        for code, (page, _, anchor) in addresses.items()
        if f'<a id="{anchor}"></a>\n\n## {NUMBERS[code]} {code}\n' not in pages[page]
    ]
    assert lost == []


def test_address_of_a_rule_when_it_has_no_number_then_is_the_index() -> None:
    assert (ROOT / rule_page("acme-odd")) == FOLDER / "README.md"


def test_sections_when_read_then_each_shows_what_is_wrong_what_is_right_and_the_message() -> None:
    for code in sorted({case.code for case in (*message_cases(), *message_cases(WORKLOADS))}):
        section = SECTIONS[NUMBERS[code]]
        assert f"[{NUMBERS[code]} {code}]: " in section
        assert "    fix: " in section, code
        examples = section.split("```diff\n")[1:]
        lines = [line for example in examples for line in example.partition("```")[0].splitlines()]
        assert any(line.startswith(("-", "+")) for line in lines), f"{code}: bad.yaml and good.yaml are the same"


def test_section_when_no_spec_leads_there_then_is_marked_so() -> None:
    assert all("No spec leads here" in SECTIONS[NUMBERS[code]] for code in SHADOWED)
