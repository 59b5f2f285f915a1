"""docs/gke.md says of every field what a change of it does, as the tables say it; `--update` rewrites the section."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpukube.core.fields import COUNT, INSTANCE_TYPE, LEAST, MOST, SCOPE, TAINTS, ZONES, label
from gpukube.core.owners import ADVERTISER_LABEL
from gpukube.core.values import Change
from gpukube_gke.pool.fields import BINDINGS
from gpukube_gke.pool.native import REFUSED
from gpukube_gke.pool.updates import INTENT_ROWS, NATIVE_ROWS, find_row
from tests.unit.changes_page import HEADINGS, require_section, section

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.core.values import UpdateRow

PAGE = Path(__file__).parents[3] / "docs" / "gke.md"
SHADES: tuple[tuple[str, Change], ...] = (
    ("instanceType, with the same GPUs", Change(INSTANCE_TYPE, "g2-standard-8", "g2-standard-12")),
    ("nodes.count, fewer", Change(COUNT, 2, 1)),
    ("nodes.count instead of autoscaling", Change(COUNT, None, 1)),
    ("nodes.autoscaling instead of a count", Change(COUNT, 1, None)),
    ("nodes.autoscaling.min, no longer", Change(LEAST, 1, None)),
    ("nodes.autoscaling.max, no longer", Change(MOST, 1, None)),
    ("nodes.autoscaling.scope, no longer", Change(SCOPE, "pool", None)),
    ("labels[gpukube.io/advertiser], from or to dra", Change(label(ADVERTISER_LABEL), None, "dra")),
    ("taints, a new one with NoExecute", Change(TAINTS, (), ("a=b:NoExecute",))),
    ("zones, one more", Change(ZONES, ("a",), ("a", "b"))),
)
"""Changes of which more is to be said than in their row, by what the page calls them."""


def rows() -> Iterator[tuple[str, UpdateRow]]:
    yield from ((str(row.field), row) for row in INTENT_ROWS.values())
    yield from ((str(row.field), row) for row in NATIVE_ROWS.values())
    yield from ((name, find_row(change)) for name, change in SHADES)


def test_page_when_compared_with_the_tables_says_the_same(request: pytest.FixtureRequest) -> None:
    text = section("gke", rows(), REFUSED)
    require_section(PAGE, text, update=request.config.getoption("--update", default=False))


def test_page_when_the_value_decides_says_that_too() -> None:
    adjusted = {row.path for row in BINDINGS if row.adjust}
    assert {change.field for _, change in SHADES} == {*adjusted, label(ADVERTISER_LABEL)}


@pytest.mark.parametrize("name", [name for name, _ in rows()])
def test_field_when_listed_is_under_one_heading(name: str) -> None:
    assert [row.kind in HEADINGS for each, row in rows() if each == name] == [True]
