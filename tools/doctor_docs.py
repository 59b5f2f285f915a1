"""Write the tables of docs/doctor.md from the checks: `python -m tools.doctor_docs`. A test compares."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpukube.doctor.checks import (
    claims,
    clouds,
    configs,
    dra,
    fabric,
    mig,
    nodes,
    placement,
    plugins,
    releases,
    tools,
    workloads,
)
from gpukube.doctor.checks import components as parts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpukube.doctor.check import Check

PAGE: Final = Path(__file__).parent.parent / "docs" / "doctor.md"
BEGIN: Final = "<!-- checks: written by tools/doctor_docs.py from the tables of checks -->"
END: Final = "<!-- checks: end -->"
FAMILIES: Final[Mapping[str, Sequence[Check]]] = {
    "This machine": tools.CHECKS,
    "The cloud's side": clouds.CHECKS,
    "Whether a plugin reaches every GPU node": placement.CHECKS,
    "What advertises devices": plugins.CHECKS,
    "The DRA driver": dra.CHECKS,
    "Parts of the stack": parts.CHECKS,
    "Config entries of the plugin": configs.CHECKS,
    "MIG": mig.CHECKS,
    "Helm releases": releases.CHECKS,
    "Pods that request GPUs": workloads.CHECKS,
    "Pods that claim GPUs": claims.CHECKS,
    "Nodes": nodes.CHECKS,
    "The network between GPUs": fabric.CHECKS,
}
"""All checks but those of one cloud alone, by heading, in the order of the registry."""


def doctor_page(written: str) -> str:
    """Return the page with its tables generated again.

    Args:
        written: The page as it is; what stands outside the marks stays.
    """
    before, _, rest = written.partition(BEGIN)
    _, _, after = rest.partition(END)
    lines = "\n".join(line for title, checks in FAMILIES.items() for line in _table(title, checks))
    return f"{before}{BEGIN}\n\n{lines}\n{END}{after}"


def _table(title: str, checks: Sequence[Check]) -> Iterator[str]:
    yield f"### {title}"
    yield ""
    yield "| Check | Looks for | Consequence | Source |"
    yield "| --- | --- | --- | --- |"
    for check in checks:
        yield f"| `{check.id}` | {check.title} | {check.consequence} | {_short(check.link)} |"
    yield ""


def _short(link: str) -> str:
    """Name an issue by repository and number, a page by its host."""
    parts = link.removeprefix("https://").split("/")
    issue = parts[0] == "github.com" and "issues" in parts
    return f"[{parts[1]}/{parts[2]}#{parts[4]}]({link})" if issue else f"[{parts[0]}]({link})"


if __name__ == "__main__":
    PAGE.write_text(doctor_page(PAGE.read_text("utf-8")), "utf-8")
    sys.stdout.write(f"wrote {PAGE.name}\n")
