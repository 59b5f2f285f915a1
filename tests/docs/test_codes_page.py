"""The page of codes is up to date and names every code of a run."""

from __future__ import annotations

from gpukube.rule_ids import RULE_IDS
from tools.codes_docs import PAGE, TABLES, codes_page


def test_codes_page_when_tables_change_then_it_is_written_again() -> None:
    assert PAGE.read_text("utf-8") == codes_page(), "run: python -m tools.codes_docs"


def test_codes_page_when_read_then_names_every_code_without_a_number() -> None:
    page = PAGE.read_text("utf-8")
    listed = {code for table in TABLES.values() for code in table}
    assert [code for code in sorted(listed) if (f"| `{code}` |" in page) is (code in RULE_IDS)] == []
