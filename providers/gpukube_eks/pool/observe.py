"""Converts a live node group to `Observed`, without what EKS added.

In scope: reading one group with its launch template. Out of scope: the calls that fetch them (`live.client`).

Dropped because EKS sets them: labels under eks.amazonaws.com/ and tags under aws:. The tag copy of gpukube's labels is
not a field either. The autoscaler owns the desired size. EKS omits disk and user data from groups with a launch
template, so they are read from the template.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.binding import observed_fields
from gpukube.core.fields import known
from gpukube.core.jsontree import integer, texts, tree, trees
from gpukube.core.values import OWNER_LABEL, POOL_LABEL, PROTECT_LABEL, Observed
from gpukube_eks.pool.fields import BINDINGS, Live, instance_type_of, read_taint, written_fields
from gpukube_eks.pool.marks import FORM, live_place
from gpukube_eks.pool.native import flatten_native
from gpukube_eks.pool.settings import TEMPLATE_DATA, own_settings
from gpukube_eks.pool.template import GROUP_TAG, tags_of
from gpukube_eks.pool.translate import LEFTOVER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.fields import FieldPath
    from gpukube.core.values import PoolState

STATES: Final[Mapping[str, PoolState]] = {
    "ACTIVE": "ready",
    "DEGRADED": "ready",
    "CREATE_FAILED": "failed",
    "DELETE_FAILED": "failed",
    "DELETING": "deleting",
}
"""Status -> state; any other status means that EKS is working on the group.

DEGRADED follows a failed scale-out (aws/containers-roadmap#2326): existing nodes work, so the group is never
recreated.
"""


def observe_group(
    native: Mapping[str, object], data: Mapping[str, object], zones: Mapping[str, str], cluster_group: str = ""
) -> Observed:
    """Read one node group.

    Args:
        native: As DescribeNodegroup returns it.
        data: LaunchTemplateData of its template's version; empty without a template.
        zones: Subnet id -> Availability Zone; unknown ones are omitted.
        cluster_group: The cluster's own security group; "" if unknown.
    """
    labels, status = texts(native, "labels"), str(native.get("status") or "Unknown")
    state = STATES.get(status, "busy")
    sizes = tree(native, "scalingConfig")
    tags, place = texts(native, "tags"), live_place(native)
    copy = FORM.read(tags, place)
    owner, pool = labels.get(OWNER_LABEL, ""), labels.get(POOL_LABEL, "")
    return Observed(
        name=str(native.get("nodegroupName", "")),
        owner=owner,
        pool=pool,
        protected=labels.get(PROTECT_LABEL) == "true" or (copy is not None and not (owner and pool)),
        state=state,
        status=status,
        failure="; ".join(f"{code}: {text}" if text else code for code, text in health_of(native)),
        fields=_fields(Live.of(native, data, zones, cluster_group)),
        nodes=integer(sizes, "desiredSize") if state != "failed" else None,
        labels=labels,
        effective_taints=tuple(read_taint(taint) for taint in trees(native, "taints")),
        instance_type=instance_type_of(native, data),
        etag="",
        native={**native, TEMPLATE_DATA: data} if data else native,
        copy=copy,
        copied=FORM.is_copied(tags, place),
        written=written_fields(FORM.written(tags, place)) | own_settings(native, data),
    )


def observe_leftover(template: Mapping[str, object]) -> Observed:
    """Read gpukube's launch template without a group: a creation or deletion did not finish.

    Args:
        template: As DescribeLaunchTemplates returns it.
    """
    tags = tags_of(template)
    return Observed(
        name=tags.get(GROUP_TAG, ""),
        owner=tags.get(OWNER_LABEL, ""),
        pool=tags.get(POOL_LABEL, ""),
        protected=False,
        state="failed",
        status=LEFTOVER,
        failure=f"the launch template {template.get('LaunchTemplateName')} exists without its node group",
        fields={},
        nodes=0,
        labels={},
        effective_taints=(),
        instance_type="",
        etag="",
        native=template,
    )


def health_of(native: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """Return the health issues of a group as (code, message)."""
    issues = trees(native, "health", "issues")
    return tuple((str(issue.get("code") or "Unknown"), str(issue.get("message") or "")) for issue in issues)


def is_ours(native: Mapping[str, object]) -> bool:
    """Return whether a group has an owner label of any owner."""
    return OWNER_LABEL in tree(native, "labels")


def _fields(live: Live) -> dict[FieldPath, object]:
    shared = {path: value for path, value in live.template.items() if path.is_below("sharing") or path.is_below("eks")}
    return known({**observed_fields(BINDINGS, live, live.group), **shared, **flatten_native(live.group)})
