"""The second copy of a node pool's marks, in its resource labels.

In scope: keys and values as Google Cloud takes them, and the place that the copy was written for. Out of scope:
creation (`translate`), which alone writes it: another set of resource labels makes every node anew (gcloud container
node-pools update --help: --labels).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpukube.core.marks import CopyForm

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpukube.core.values import ClusterRef, MarksCopy, Target

FORM: Final = CopyForm("gpukube_", 63, re.compile(r"[a-z0-9_-]*"))
"""Values: docs: compute/docs/labeling-resources."""


def copy_tags(target: Target) -> dict[str, str]:
    """Make the labels of the copy for a new pool."""
    return FORM.tags(marks_of(target), place_of(target.cluster, target.name), target.tags)


def marks_of(target: Target) -> MarksCopy:
    """Return the marks of a pool as the copy holds them."""
    return FORM.copy_of(target.owner, target.pool, protected=target.protect)


def place_of(cluster: ClusterRef, pool: str) -> str:
    """Return where a pool is."""
    return f"{cluster.identity.get('project')}/{cluster.identity.get('location')}/{cluster.name}/{pool}"


def recorded(labels: dict[str, str], names: Iterable[str]) -> dict[str, str]:
    """Bring the record of the spec's tags up to date in a set of labels that has the copy; the rest of it stays."""
    if not any(FORM.is_own(key) for key in labels):
        return labels
    record, key = FORM.record(names), FORM.record_key
    return {**{name: value for name, value in labels.items() if name != key}, **({key: record} if record else {})}
