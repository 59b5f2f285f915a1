"""The page of codes is up to date and names every code of a run."""

from __future__ import annotations

from tools.codes_docs import PAGE, TABLES, codes_page
from tools.diagnostics_docs import FAMILIES


def test_codes_page_when_tables_change_then_it_is_written_again() -> None:
    assert PAGE.read_text("utf-8") == codes_page(), "run: python -m tools.codes_docs"


def test_codes_page_when_read_then_names_every_code_without_a_number() -> None:
    page = PAGE.read_text("utf-8")
    unnumbered = {code for table in TABLES.values() for code in table}
    numbered = {code for _, table in FAMILIES.values() for code in table}
    assert [code for code in sorted(unnumbered) if f"| `{code}` |" not in page] == []
    assert [code for code in sorted(numbered) if f"| `{code}` |" in page] == []
