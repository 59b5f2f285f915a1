"""The second copy of an agent pool's ownership labels, in its tags.

In scope: keys and values that Azure accepts, and the resource for which the copy was written. Out of scope: when it is
written (`translate`, `change`).

Tag names cannot contain a slash, and Azure ignores their case (docs: azure-resource-manager/management/
tag-resources).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpukube.core.marks import CopyForm
from gpukube.core.values import OWNER_LABEL, POOL_LABEL, PROTECT_LABEL

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from gpukube.core.values import ClusterRef, Target

FORM: Final = CopyForm("gpukube_", 256, re.compile(r"[^\x00-\x1f\x7f]*"), ignores_case=True)
MAX_TAGS: Final = 50
TAGS_IN_ALL: Final = 2048
"""Maximum total length of a scale set's tags, with values (docs: azure-resource-manager/management/tag-resources)."""
_ID: Final = re.compile(
    r"/subscriptions/(?P<subscription>[^/]+)/resourcegroups/(?P<group>[^/]+)/providers/microsoft\.containerservice"
    r"/managedclusters/(?P<cluster>[^/]+)/agentpools/(?P<pool>[^/]+)"
)


def copy_tags(target: Target) -> dict[str, str]:
    """Return the tags of the copy for a new pool."""
    marks = FORM.copy_of(target.owner, target.pool, protected=target.protect)
    return FORM.tags(marks, _place(target.cluster, target.name), target.tags)


def live_place(native: Mapping[str, object]) -> str:
    """Return the place of a live pool from its id; "" without one."""
    found = _ID.fullmatch(str(native.get("id") or "").casefold())
    return "/".join(found.group("subscription", "group", "cluster", "pool")) if found else ""


def with_copy(
    cluster: ClusterRef,
    pool: str,
    labels: Mapping[str, object],
    tags: Mapping[str, str],
    names: Collection[str] | None = None,
) -> dict[str, str]:
    """Add to a pool's tags the copy of its ownership labels, unless the tags would exceed the limit.

    Args:
        cluster: Cluster of the pool.
        pool: Name of the pool in the cloud.
        labels: New labels.
        tags: New tags, without the copy.
        names: Names of the tags that the spec declares; None keeps the recorded names.
    """
    owner, mark = str(labels.get(OWNER_LABEL) or ""), str(labels.get(POOL_LABEL) or "")
    if not owner or not mark:
        return dict(tags)
    marks = FORM.copy_of(owner, mark, protected=labels.get(PROTECT_LABEL) == "true")
    given, gone = FORM.outdated(tags, FORM.tags(marks, _place(cluster, pool), names or ()))
    if names is None:
        gone = tuple(key for key in gone if key.casefold() != FORM.record_key)
    replaced = {*gone, *(key for key in tags if key.casefold() in given)}
    found = {**{key: value for key, value in tags.items() if key not in replaced}, **given}
    size = sum(len(key) + len(value) for key, value in found.items())
    return dict(tags) if len(found) > MAX_TAGS or size > TAGS_IN_ALL else dict(sorted(found.items()))


def _place(cluster: ClusterRef, pool: str) -> str:
    """Return the place of a pool in lower case: ARM ignores the case of all its parts."""
    identity = cluster.identity
    return f"{identity.get('subscription')}/{identity.get('resourceGroup')}/{cluster.name}/{pool}".casefold()
