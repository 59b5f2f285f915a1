"""A live node group as EKS answers it -> `Observed`, without what the service added by itself.

Lives here: reading one group with its launch template. Must not live here: the calls that fetch them (`client`).

Dropped because EKS writes it: labels under eks.amazonaws.com/ and tags under aws:. The tags of the second copy of our
marks are no fields either. The desired size is the
autoscaler's. With a launch template EKS does not repeat disk and user data, so they are read from the template.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from gpukube.core.fields import (
    DISK_SIZE,
    IMAGE,
    INSTANCE_TYPE,
    KUBERNETES_VERSION,
    PROTECTION,
    TAINTS,
    ZONES,
    FieldPath,
    known,
    label,
)
from gpukube.core.jsontree import integer, strings, texts, tree, trees
from gpukube.core.values import OWNER_LABEL, POOL_LABEL, PROTECT_LABEL, Observed, Taint
from gpukube_eks.marks import FORM, live_place
from gpukube_eks.native import flatten_native
from gpukube_eks.purchase import read_capacity
from gpukube_eks.template import GROUP_TAG, TEMPLATE_DATA, tags_of, template_fields
from gpukube_eks.translate import EFFECTS, LEFTOVER, size_fields, tag_fields
from gpukube_eks.upgrades import upgrade_fields

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import PoolState, TaintEffect

__all__ = ["STATES", "health_of", "instance_type_of", "is_ours", "observe_group", "observe_leftover"]

STATES: Final[Mapping[str, PoolState]] = {
    "ACTIVE": "ready",
    "DEGRADED": "ready",
    "CREATE_FAILED": "failed",
    "DELETE_FAILED": "failed",
    "DELETING": "deleting",
}
"""Status -> state; any other word means that EKS is working on the group.

DEGRADED follows a scale-out that failed (aws/containers-roadmap#2326): the nodes that are there work, so it is never
made again.
"""

_EFFECTS: Final[Mapping[str, str]] = {theirs: ours for ours, theirs in EFFECTS.items()}
_SYSTEM: Final = "eks.amazonaws.com/"


def observe_group(native: Mapping[str, object], data: Mapping[str, object], zones: Mapping[str, str]) -> Observed:
    """Read one node group.

    Args:
        native: As DescribeNodegroup gives it.
        data: LaunchTemplateData of its template's version; empty without a template.
        zones: Subnet id -> Availability Zone; those that are not known are left out.
    """  # fmt: skip
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
        fields=_fields(native, data, zones, labels),
        nodes=integer(sizes, "desiredSize") if state != "failed" else None,
        labels=labels,
        effective_taints=tuple(_taint(taint) for taint in trees(native, "taints")),
        instance_type=instance_type_of(native, data),
        etag="",
        native={**native, TEMPLATE_DATA: data} if data else native,
        copy=copy,
        written=frozenset(tag_fields(dict.fromkeys(FORM.written(tags, place), ""))),
    )


def observe_leftover(template: Mapping[str, object]) -> Observed:
    """Read a launch template of ours that has no group: a creation or a deletion stopped half-way.

    Args:
        template: As DescribeLaunchTemplates gives it.
    """
    tags = tags_of(template)
    return Observed(
        name=tags.get(GROUP_TAG, ""),
        owner=tags.get(OWNER_LABEL, ""),
        pool=tags.get(POOL_LABEL, ""),
        protected=False,
        state="failed",
        status=LEFTOVER,
        failure=f"the launch template {template.get('LaunchTemplateName')} is there without its node group",
        fields={},
        nodes=0,
        labels={},
        effective_taints=(),
        instance_type="",
        etag="",
        native=template,
    )


def health_of(native: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """List the health issues of a group as (code, message)."""
    issues = trees(native, "health", "issues")
    return tuple((str(issue.get("code") or "Unknown"), str(issue.get("message") or "")) for issue in issues)


def instance_type_of(native: Mapping[str, object], data: Mapping[str, object]) -> str:
    """Name the first instance type: the group's own, else its template's."""
    types = strings(native, "instanceTypes")
    return types[0] if types else str(data.get("InstanceType") or "")


def is_ours(native: Mapping[str, object]) -> bool:
    """Say whether a group carries the mark of any owner."""
    return OWNER_LABEL in tree(native, "labels")


def _fields(
    native: Mapping[str, object], data: Mapping[str, object], zones: Mapping[str, str], labels: Mapping[str, str]
) -> dict[FieldPath, object]:
    sizes, ami_type = tree(native, "scalingConfig"), str(native.get("amiType") or "")
    least, most = integer(sizes, "minSize"), integer(sizes, "maxSize")
    fields: dict[FieldPath, object] = {
        INSTANCE_TYPE: instance_type_of(native, data) or None,
        IMAGE: ami_type or None,
        **read_capacity(native.get("capacityType"), data),
        KUBERNETES_VERSION: native.get("version"),
        ZONES: _zones(native.get("subnets"), zones),
        TAINTS: tuple(sorted(str(_taint(taint)) for taint in trees(native, "taints"))),
        PROTECTION: labels.get(PROTECT_LABEL) == "true",
        **template_fields(data, ami_type),
        **(size_fields(least, most) if least is not None and most is not None else {}),
        **{label(key): value for key, value in labels.items() if not _is_system(key)},
        **tag_fields({key: text for key, text in texts(native, "tags").items() if not _is_system_tag(key)}),
        **upgrade_fields(native.get("updateConfig")),
        **flatten_native(native),
    }
    if fields[DISK_SIZE] is None:
        fields[DISK_SIZE] = native.get("diskSize")
    return known(fields)


def _zones(subnets: object, zones: Mapping[str, str]) -> tuple[str, ...] | None:
    return tuple(sorted({zones[name] for name in strings(subnets) if name in zones})) or None


def _is_system(label: str) -> bool:
    return label.startswith(_SYSTEM) or label == PROTECT_LABEL


def _is_system_tag(key: str) -> bool:
    return key.startswith("aws:") or FORM.is_own(key)


def _taint(native: Mapping[str, object]) -> Taint:
    effect = str(native.get("effect"))
    value = str(native.get("value") or "")
    return Taint(str(native.get("key", "")), value, cast("TaintEffect", _EFFECTS.get(effect, effect)))
