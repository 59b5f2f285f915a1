"""The creation of a node pool as it is exported: gpukube's own request.

Lives here: what all targets of GKE begin with. Must not live here: the form of one target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.core.exporting import without_marks
from gpukube.core.jsontree import texts, tree
from gpukube_gke.pool.marks import FORM

if TYPE_CHECKING:
    from gpukube.core.exporting import ExportedPool


def node_pool_of(pool: ExportedPool) -> dict[str, object]:
    """Give the NodePool in the JSON form of google.container.v1; without marks for a live pool that has none."""
    found = tree(pool.desired.create.params, "nodePool")
    config = tree(found, "config")
    tags = texts(config, "resourceLabels")
    if not pool.desired.target.owner:
        tags = {key: value for key, value in tags.items() if not FORM.is_own(key)}
    config |= {"labels": without_marks(pool, texts(config, "labels")), "resourceLabels": tags}
    return {**found, "config": {name: value for name, value in config.items() if value not in ({}, None)}}
