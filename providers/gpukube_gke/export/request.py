"""The create request of a node pool, from which exports start.

In scope: input of all of GKE's export targets. Out of scope: the format of one target.
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
