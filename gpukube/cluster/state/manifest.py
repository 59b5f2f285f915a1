"""A manifest as Helm renders and keeps it: many YAML documents in one text.

Lives here: splitting it into objects. Must not live here: what is asked of them (release.rendered, release_drift).
"""

from __future__ import annotations

from typing import Final

import yaml

from gpukube.core.jsontree import Tree, tree

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's reads a chart's manifest in a hundredth of a second; PyYAML's own takes half a second."""


def documents(manifest: str) -> list[Tree]:
    """Split a manifest into its objects, the empty documents left out.

    Raises:
        yaml.YAMLError: It is not YAML.
    """
    found = [tree(document) for document in yaml.load_all(manifest, _LOADER)]
    return [document for document in found if document]
