"""The page of codes is up to date and names every code and every case."""

from __future__ import annotations

from pathlib import Path

from tools.codes_docs import PAGE, TABLES, codes_page

CASES = Path(__file__).parents[1] / "messages"


def test_codes_page_when_tables_or_cases_change_then_it_is_written_again() -> None:
    assert PAGE.read_text("utf-8") == codes_page(), "run: python -m tools.codes_docs"


def test_codes_page_when_read_then_links_every_case_to_its_code() -> None:
    page = PAGE.read_text("utf-8")
    codes = {folder.name.partition(".")[0] for folder in CASES.iterdir()}
    assert codes <= {code for table in TABLES.values() for code in table}
    assert [code for code in sorted(codes) if f"[`{code}`](../tests/messages/{code}/expected.txt)" not in page] == []
