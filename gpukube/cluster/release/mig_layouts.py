"""The file of the GPU Operator's MIG manager, for pools with a MIG layout.

In scope: pools and live values -> the chart's value migManager.config; pure. Out of scope: the entries (gpu), and the
other values (operator_values).

Only pools with layouts need a file; without one the manager generates its entries from each node's hardware. Layouts
stay after their pools are gone: an existing node may name one, and an unused one does nothing. The ConfigMap's name
contains
a hash of its content, so that the manager's pods are recreated and read it: a volume is refreshed a minute or more
later, and a label that names a missing entry fails permanently (NVIDIA/gpu-operator#891).
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

import yaml

from gpukube.cluster.release.shared_values import put
from gpukube.core.jsontree import text, tree
from gpukube.core.yamltext import parse_yaml
from gpukube.gpu.mig_parted import DISABLED, cut_name, layout_entry, standard_entries

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.cluster.release.shared_values import ReleaseContext
    from gpukube.core.values import Desired

FILE: Final = "config.yaml"
"""Key in the ConfigMap (NVIDIA/gpu-operator v26.7.0, templates: migManager.config.data)."""
_PATH: Final = ("migManager", "config")
_NAME_LENGTH: Final = 10


def put_layouts(values: dict[str, object], pools: Sequence[Desired], context: ReleaseContext) -> None:
    """Write the manager's file if these pools, or live values, have layouts; otherwise leave it to the manager."""
    standard = standard_entries()
    cuts = [pool.target.sharing.mig for pool in pools]
    requested = {cut_name(cut): layout_entry(cut.layout) for cut in cuts if cut and cut.layout}
    older = [_entries(source) for source in (*context.missed, context.live)]
    kept = {name: entry for entries in older for name, entry in entries.items() if name not in standard}
    if not requested and not kept:
        return
    content = {"version": "v1", "mig-configs": {**standard, **dict(sorted({**kept, **requested}.items()))}}
    written = yaml.safe_dump(content, sort_keys=False, width=120)
    name = f"gpukube-mig-{sha256(written.encode()).hexdigest()[:_NAME_LENGTH]}"
    put(values, _PATH, {"create": True, "name": name, "default": DISABLED, "data": {FILE: written}})


def _entries(values: Mapping[str, object]) -> dict[str, object]:
    try:
        return tree(parse_yaml(text(values, *_PATH, "data", FILE)), "mig-configs")
    except yaml.YAMLError:  # edited manually; unreadable content is replaced
        return {}
