"""The creation of an agent pool as it is exported: gpukube's own request.

In scope: what all targets of AKS begin with. Out of scope: the form of one target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.core.jsontree import tree

if TYPE_CHECKING:
    from gpukube.core.exporting import ExportedPool


def properties_of(pool: ExportedPool) -> dict[str, object]:
    """Return the properties of the pool."""
    properties = tree(pool.desired.create.params, "body", "properties")
    return {name: value for name, value in properties.items() if value not in ({}, None)}
