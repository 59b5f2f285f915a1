"""Manifests as Helm renders and stores them: many YAML documents in one text.

In scope: splitting them into objects. Out of scope: checking the objects (release.rendered, release_drift).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from gpukube.core.jsontree import Tree, tree
from gpukube.core.yamltext import parse_documents

if TYPE_CHECKING:
    from collections.abc import Sequence


@lru_cache(maxsize=8)  # each snapshot parses the releases' manifests, which change only with a revision
def documents(manifest: str) -> Sequence[Tree]:
    """Split a manifest into its objects; skip empty documents.

    Raises:
        yaml.YAMLError: It is not YAML.
    """
    found = [tree(document) for document in parse_documents(manifest)]
    return tuple(document for document in found if document)
