"""Write the tables of docs/permissions.md: `python -m tools.permissions_docs`.

The text above the marker is written by hand. A test compares.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpukube.engine.permissions.in_cluster import RULES, rule_permission
from gpukube_aks.facts.permissions import PERMISSIONS as AKS
from gpukube_eks.facts.permissions import PERMISSIONS as EKS
from gpukube_gke.facts.permissions import PERMISSIONS as GKE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.core.permissions import Permission

PAGE: Final = Path(__file__).parent.parent / "docs" / "permissions.md"
MARKER: Final = "<!-- Below this line written by tools/permissions_docs.py; edit the tables in the code. -->"
TABLES: Final[Mapping[str, Sequence[Permission]]] = {
    "EKS: IAM actions": EKS,
    "AKS: Azure RBAC actions": AKS,
    "GKE: IAM permissions": GKE,
    "Inside clusters: Kubernetes RBAC": tuple(rule_permission(row) for row in RULES),
}
"""Every table by its heading."""
_HEAD: Final = "| Permission | Purpose | Level | Needed | Without it | Source |\n| --- | --- | --- | --- | --- | --- |"


def permissions_page(written: str) -> str:
    """Render the page: what is written by hand, and the tables."""
    parts = [written.partition(MARKER)[0].rstrip(), "", MARKER]
    for title, rows in TABLES.items():
        parts += ["", f"## {title}", "", _HEAD, *map(_row, rows)]
    return "\n".join(parts) + "\n"


def _row(row: Permission) -> str:
    cells = (f"`{row.name}`", row.purpose, row.level, row.when or "always", row.without, row.source)
    return f"| {' | '.join(cell.replace('|', ' or ') for cell in cells)} |"


if __name__ == "__main__":
    PAGE.write_text(permissions_page(PAGE.read_text("utf-8")), "utf-8")
