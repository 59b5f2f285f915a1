"""The page of permissions has the tables of the code, and the files that it names are those that are written."""

from __future__ import annotations

import re

from gpukube.core.permissions import EXTRAS
from tools.permissions_docs import PAGE, TABLES, permissions_page

WRITTEN = PAGE.read_text("utf-8")


def test_permissions_page_when_tables_change_then_it_is_written_again() -> None:
    assert permissions_page(WRITTEN) == WRITTEN, "run: python -m tools.permissions_docs"
    assert all(f"`{row.name}`" in WRITTEN for rows in TABLES.values() for row in rows)


def test_permissions_page_when_extras_are_added_then_it_names_them() -> None:
    assert set(EXTRAS) <= set(re.findall(r"`([a-z-]+)`", WRITTEN))
