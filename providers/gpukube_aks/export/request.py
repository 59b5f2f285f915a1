"""The creation of an agent pool as it is exported: gpukube's own request.

Lives here: what all targets of AKS begin with. Must not live here: the form of one target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.core.exporting import without_marks
from gpukube.core.jsontree import texts, tree
from gpukube_aks.pool.marks import FORM

if TYPE_CHECKING:
    from gpukube.core.exporting import ExportedPool


def properties_of(pool: ExportedPool) -> dict[str, object]:
    """Give the properties of the pool; without marks for a live pool that has none."""
    properties = tree(pool.desired.create.params, "body", "properties")
    tags = texts(properties, "tags")
    if not pool.desired.target.owner:
        tags = {key: value for key, value in tags.items() if not FORM.is_own(key)}
    found = {**properties, "nodeLabels": without_marks(pool, texts(properties, "nodeLabels")), "tags": tags}
    return {name: value for name, value in found.items() if value not in ({}, None)}
