"""Quotas for people: one line each, of what a plan needs and what there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.cli.rendering.lines import number
from gpukube.cli.rendering.text import Hung, Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpukube.cli.rendering.text import Line
    from gpukube.engine.documents.shapes.quotas import Quota


def quota_lines(quotas: Iterable[Quota]) -> Iterator[Line]:
    """Show needed, used and limit of each quota, and why one is not known."""
    for quota in quotas:
        known = [
            f"{name} {number(value)}"
            for name, value in (("used", quota["used"]), ("limit", quota["limit"]))
            if value is not None
        ]
        figures = ", ".join([f"needs {number(quota['needed'])}", *known])
        said = f"{quota['name']}: {figures} {quota['unit']}"
        missing = "not checked" if not known else "used not checked" if quota["used"] is None else "limit not checked"
        why = f"; {missing}: {quota['unknown']}" if quota["unknown"] else ""
        yield Hung(Text("  quota      "), Text(f"{said}{why}", style="yellow" if quota["short"] or why else ""))
