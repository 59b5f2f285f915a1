"""What the pages of AKS and GKE say of each field's change, from the tables of their providers.

In scope: the section's form. Out of scope: rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from gpukube.core.values import UpdateRow

BEGIN, END = "<!-- changes: begin -->", "<!-- changes: end -->"
HEADINGS = {
    "in-place": "In place",
    "disruptive": "In place, but restarts or evicts pods: `--allow-disruption`",
    "replace": "A new pool: `--replace surge` or `--replace recreate`",
}


def section(cloud: str, rows: Iterable[tuple[str, UpdateRow]], refused: Iterable[str]) -> str:
    """Write the tables by class, fields of one sentence together, and what the escape hatch does not take."""
    lines, known = [BEGIN], list(rows)
    for kind, heading in HEADINGS.items():
        by_sentence: dict[str, list[str]] = {}
        for name, row in known:
            if row.kind == kind:
                by_sentence.setdefault(row.sentence, []).append(f"`{name}`")
        lines += ["", f"**{heading}**", "", "| Field | What happens |", "| --- | --- |"]
        lines += [f"| {', '.join(names)} | {sentence} |" for sentence, names in by_sentence.items()]
    listed = ", ".join(f"`{name}`" for name in sorted(refused))
    lines += ["", f"`{cloud}:` does not accept {listed}; `gpukube validate` gives the reason for each.", "", END]
    return "\n".join(lines)


def require_section(page: Path, text: str, *, update: bool) -> None:
    """Compare the page with the section; with `update` write it there first."""
    before, _, rest = page.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    if update:
        page.write_text(before + text + after)
    said = text in page.read_text()  # not in the assert: pytest would print both pages
    assert said, f"the rows changed; run: pytest --update tests/unit/gpukube_{page.stem}/test_docs.py"
