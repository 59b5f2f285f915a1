"""The creation of a node pool as it is exported: gpukube's own request.

In scope: what all targets of GKE begin with. Out of scope: the form of one target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.core.jsontree import tree

if TYPE_CHECKING:
    from gpukube.core.exporting import ExportedPool


def node_pool_of(pool: ExportedPool) -> dict[str, object]:
    """Return the NodePool in the JSON form of google.container.v1."""
    found = tree(pool.desired.create.params, "nodePool")
    config = {name: value for name, value in tree(found, "config").items() if value not in ({}, None)}
    return {**found, "config": config}
