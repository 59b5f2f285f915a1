"""The exported creation of a node group: gpukube's own request.

In scope: the common start of all EKS exports. Out of scope: the format of one export.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.core.jsontree import tree, trees
from gpukube.core.values import OWNER_LABEL, POOL_LABEL
from gpukube_eks.pool.template import CLUSTER_TAG, GROUP_TAG

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.exporting import ExportedPool

_TEMPLATE_MARKS = (OWNER_LABEL, POOL_LABEL, CLUSTER_TAG, GROUP_TAG)


def group_of(pool: ExportedPool) -> dict[str, object]:
    """Return the arguments of CreateNodegroup."""
    group = tree(pool.desired.create.params, "nodegroup")
    return {name: value for name, value in group.items() if value not in ({}, None)}


def template_of(pool: ExportedPool) -> dict[str, object]:
    """Return the arguments of CreateLaunchTemplate; without gpukube's tags for a live pool that has none."""
    template = tree(pool.desired.create.params, "launchTemplate")
    if pool.desired.target.owner:
        return template
    kept = [one for one in map(_unmarked, trees(template, "TagSpecifications")) if one["Tags"]]
    bare = {name: value for name, value in template.items() if name != "TagSpecifications"}
    return {**bare, "TagSpecifications": kept} if kept else bare


def placement_of(pool: ExportedPool) -> dict[str, object]:
    """Return the arguments of CreatePlacementGroup; empty if the pool has no group of its own."""
    return tree(pool.desired.create.params, "placementGroup")


def _unmarked(specification: Mapping[str, object]) -> dict[str, object]:
    tags = [tag for tag in trees(specification, "Tags") if tag.get("Key") not in _TEMPLATE_MARKS]
    return {**specification, "Tags": tags}
