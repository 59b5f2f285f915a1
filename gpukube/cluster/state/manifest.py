"""A manifest as Helm renders and keeps it: many YAML documents in one text.

In scope: splitting it into objects. Out of scope: what is asked of them (release.rendered, release_drift).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from gpukube.core.jsontree import Tree, tree
from gpukube.core.yamltext import parse_documents

if TYPE_CHECKING:
    from collections.abc import Sequence


@lru_cache(maxsize=8)  # each look at a cluster reads its releases' manifests again, which change with a revision only
def documents(manifest: str) -> Sequence[Tree]:
    """Split a manifest into its objects, the empty documents left out.

    Raises:
        yaml.YAMLError: It is not YAML.
    """
    found = [tree(document) for document in parse_documents(manifest)]
    return tuple(document for document in found if document)
