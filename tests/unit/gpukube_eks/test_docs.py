"""The table of docs/eks.md is that of `updates`: --update writes it anew."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gpukube.core.owners import ADVERTISER_LABEL
from gpukube.core.values import Change
from gpukube_eks.pool.updates import INTENT_ROWS, NATIVE_ROWS, find_row

if TYPE_CHECKING:
    import pytest

    from gpukube.core.values import UpdateRow

PAGE = Path(__file__).parents[3] / "docs" / "eks.md"
START, END = "<!-- table -->\n", "<!-- end -->"
NAMES = {"in-place": "in place", "disruptive": "disruptive", "replace": "replaces the pool", "refused": "refused"}

VARIANTS = {
    "nodes.count": ("fewer", 2, 1),
    "nodes.autoscaling.max": ("lower", 2, 1),
    f"labels[{ADVERTISER_LABEL}]": ("another, or gone", "a", None),
    "taints": ("a new NoExecute", (), ("a=b:NoExecute",)),
    "eks.releaseVersion": ("older", "1.34.2-20260714", "1.34.2-20260401"),
}
"""Row -> what makes it another class: in words, and as a change."""


def line(field: str, row: UpdateRow) -> str:
    call = f"`{row.call}`" if row.call else ""
    return f"| {field} | {NAMES[row.kind]} | {row.sentence} | {call} |"


def table() -> str:
    lines = ["| Field | Change | What happens | Call |", "| --- | --- | --- | --- |"]
    for field, row in {**INTENT_ROWS, **NATIVE_ROWS}.items():
        lines.append(line(f"`{field}`", row))
        if str(field) in VARIANTS:
            words, old, new = VARIANTS[str(field)]
            lines.append(line(f"`{field}`: {words}", find_row(Change(field, old, new))))
    return "\n".join(lines) + "\n"


def test_table_when_read_is_that_of_the_rows(request: pytest.FixtureRequest) -> None:
    page = PAGE.read_text("utf-8")
    before, _, rest = page.partition(START)
    shown, _, after = rest.partition(END)
    if request.config.getoption("--update", default=False):
        PAGE.write_text(f"{before}{START}{table()}{END}{after}", "utf-8")
        shown = table()
    assert shown == table(), "run: pytest --update tests/unit/gpukube_eks/test_docs.py"
