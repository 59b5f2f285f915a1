"""The create request of an agent pool, from which exports start.

In scope: input of all of AKS's export targets. Out of scope: the format of one target.
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
