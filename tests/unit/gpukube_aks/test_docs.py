"""docs/aks.md says of every field what a change of it does, as the tables say it; `--update` rewrites the section."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpukube.core.fields import COUNT, IMAGE, KUBERNETES_VERSION, TAINTS, label
from gpukube.core.values import Change
from gpukube_aks.pool.fields import BINDINGS
from gpukube_aks.pool.members import REFUSED
from gpukube_aks.pool.updates import INTENT_ROWS, NATIVE_ROWS, find_row
from tests.unit.changes_page import HEADINGS, require_section, section

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.core.values import UpdateRow

PAGE = Path(__file__).parents[3] / "docs" / "aks.md"
SHADES: tuple[tuple[str, Change], ...] = (
    ("nodes.count, fewer", Change(COUNT, 2, 1)),
    ("nodes.count instead of autoscaling", Change(COUNT, None, 1)),
    ("nodes.autoscaling instead of a count", Change(COUNT, 1, None)),
    ("taints, a new one with NoExecute", Change(TAINTS, (), ("a=b:NoExecute",))),
    ("labels[gpukube.io/advertiser], another or none", Change(label("gpukube.io/advertiser"), "chart", None)),
    ("labels[gpukube.io/advertiser], from or to dra", Change(label("gpukube.io/advertiser"), "chart", "dra")),
    ("image, from or to Windows", Change(IMAGE, "Windows2022", "Ubuntu")),
    ("kubernetesVersion, older", Change(KUBERNETES_VERSION, "1.34.2", "1.33.5")),
)
"""Changes whose class is not that of their row, by what the page calls them."""


def rows() -> Iterator[tuple[str, UpdateRow]]:
    yield from ((str(row.field), row) for row in INTENT_ROWS.values())
    yield from ((str(row.field), row) for row in NATIVE_ROWS.values())
    yield from ((name, find_row(change)) for name, change in SHADES)


def test_page_when_compared_with_the_tables_says_the_same(request: pytest.FixtureRequest) -> None:
    text = section("aks", rows(), REFUSED)
    require_section(PAGE, text, update=request.config.getoption("--update", default=False))


def test_page_when_the_value_decides_then_that_is_said_too() -> None:
    assert {change.field for _, change in SHADES} == {row.path for row in BINDINGS if row.adjust}


@pytest.mark.parametrize("name", [name for name, _ in rows()])
def test_field_when_listed_is_under_one_heading(name: str) -> None:
    assert [row.kind in HEADINGS for each, row in rows() if each == name] == [True]
