"""The second copy of a node pool's marks, in its resource labels.

In scope: keys and values in the form that Google Cloud accepts, and the place that the copy was written for. Out of
scope: creation (`translate`), the only writer, since changed resource labels recreate every node (gcloud container
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
    """Return the labels of the copy for a new pool."""
    return FORM.tags(marks_of(target), place_of(target.cluster, target.name), target.tags)


def marks_of(target: Target) -> MarksCopy:
    """Return the marks of a pool as stored in the copy."""
    return FORM.copy_of(target.owner, target.pool, protected=target.protect)


def place_of(cluster: ClusterRef, pool: str) -> str:
    """Return the place of a pool: project, location, cluster, and name."""
    return f"{cluster.identity.get('project')}/{cluster.identity.get('location')}/{cluster.name}/{pool}"


def recorded(labels: dict[str, str], names: Iterable[str]) -> dict[str, str]:
    """Update the record of the spec's tags in a set of labels with the copy; the rest stays."""
    if not any(FORM.is_own(key) for key in labels):
        return labels
    record, key = FORM.record(names), FORM.record_key
    return {**{name: value for name, value in labels.items() if name != key}, **({key: record} if record else {})}
