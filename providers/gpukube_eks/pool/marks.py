"""The copy of a node group's gpukube.io labels in its tags.

In scope: keys and values that EKS accepts, and the place that the copy was written for. Out of scope: when it is
written (`translate`, `change`), tags of launch templates (`template`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpukube.core.marks import CopyForm

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gpukube.core.values import ClusterRef, Observed, Target

FORM: Final = CopyForm("gpukube.io/", 256, re.compile(r"[\w +\-=.:/@]*"))
"""Form of the tags; values: botocore eks/2017-11-01 TagMap."""
_ARN: Final = re.compile(
    r"arn:[^:]+:eks:(?P<region>[^:]+):(?P<account>[^:]+):nodegroup/(?P<cluster>[^/]+)/(?P<group>[^/]+)/.*"
)

Outdated = tuple[dict[str, str], tuple[str, ...]]
"""Tags to set, and keys of tags to remove."""


def copy_tags(target: Target) -> dict[str, str]:
    """Return the copy's tags for a new group."""
    return _tags(target, target.name, target.tags)


def live_place(native: Mapping[str, object]) -> str:
    """Return a live group's place from its ARN; "" without one."""
    found = _ARN.fullmatch(str(native.get("nodegroupArn") or ""))
    return "/".join(found.group("account", "region", "cluster", "group")) if found else ""


def outdated_copy(target: Target, group: str, tags: Mapping[str, str], names: Iterable[str]) -> Outdated:
    """Compare the live copy with the desired one of a group with this name, including the names of the spec's tags."""
    return FORM.outdated(tags, _tags(target, group, names))


def scaled_copy(cluster: ClusterRef, observed: Observed, tags: Mapping[str, str]) -> Outdated:
    """Compare the live copy with the labels; the recorded tag names stay, because only a spec has them."""
    if not observed.owner or not observed.pool:
        return {}, ()
    marks = FORM.copy_of(observed.owner, observed.pool, protected=observed.protected)
    return FORM.outdated(tags, FORM.tags(marks, _place(cluster, observed.name)))[0], ()


def _tags(target: Target, group: str, names: Iterable[str]) -> dict[str, str]:
    marks = FORM.copy_of(target.owner, target.pool, protected=target.protect)
    return FORM.tags(marks, _place(target.cluster, group), names)


def _place(cluster: ClusterRef, group: str) -> str:
    return f"{cluster.identity.get('account')}/{cluster.identity.get('region')}/{cluster.name}/{group}"
