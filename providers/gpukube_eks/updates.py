"""What a change of a field does to a live node group: one row per field, with its sentence and source.

Lives here: the table and the look-up in it. Must not live here: the calls themselves (`change`), which members of the
API gpukube sends at all (`native`).

EKS has two calls for a group, one for its configuration and one for what its machines are made from, and two for tags;
what none of them carries needs a new group.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gpukube.core.fields import (
    CAPACITY_TYPE,
    COUNT,
    DISK_SIZE,
    DISK_TYPE,
    IMAGE,
    INSTANCE_TYPE,
    KUBERNETES_VERSION,
    LEAST,
    MAX_PODS,
    MAX_SURGE,
    MAX_UNAVAILABLE,
    MOST,
    PROTECTION,
    TAINTS,
    ZONES,
    FieldPath,
    label,
    tag,
)
from gpukube.core.owners import ADVERTISER_LABEL, CONFIG_LABEL, MIG_CONFIG_LABEL
from gpukube.core.values import UpdateRow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.core.values import Change, UpdateKind

__all__ = ["INTENT_ROWS", "NATIVE_ROWS", "TAG", "UNTAG", "UPDATE_CONFIG", "UPDATE_VERSION", "find_row"]

UPDATE_CONFIG: Final = "update_nodegroup_config"
UPDATE_VERSION: Final = "update_nodegroup_version"
TAG: Final = "tag_resource"
UNTAG: Final = "untag_resource"

_SDK: Final = "botocore eks/2017-11-01 UpdateNodegroupConfigRequest"
_TERRAFORM: Final = "hashicorp/terraform-provider-aws internal/service/eks/node_group.go (ForceNew)"
_TEMPLATES: Final = "docs: eks/launch-templates"
_STOPS_FIRST: Final = "draining each; an old node stops before a new one starts unless upgrade.maxSurge is above 0"
"""MINIMAL is what gpukube asks for where a spec is silent: a pool of one node has none meanwhile."""
_ROLL: Final = f"a new version of the launch template: EKS replaces every node, {_STOPS_FIRST}"
_NEXT: Final = "holds from the next update on"
_BOUND: Final = "the Auto Scaling group keeps the new bound, and starts or ends nodes that it asks for"


_BLOCK: Final = FieldPath("capacity", "reserved", "eks", "capacityBlock")
_RESERVATION: Final = FieldPath("capacity", "reserved", "eks", "capacityReservation")


def _rows(*rows: tuple[FieldPath, UpdateKind, str, str, str]) -> dict[FieldPath, UpdateRow]:
    return {field: UpdateRow(field, kind, sentence, call, source) for field, kind, sentence, call, source in rows}


INTENT_ROWS: Final[Mapping[FieldPath, UpdateRow]] = _rows(
    (INSTANCE_TYPE, "replace", "the instance type is set at creation only", "", _TERRAFORM),
    (IMAGE, "replace", "amiType is set at creation only", "", _TERRAFORM),
    (CAPACITY_TYPE, "replace", "Spot, on-demand or a Capacity Block is set at creation only", "", _TERRAFORM),
    (
        FieldPath("capacity", "reserved", "eks", "capacityBlock"),
        "replace",
        "a node group is for one Capacity Block, in its zone",
        "",
        "docs: eks/capacity-blocks-mng",
    ),
    (
        FieldPath("capacity", "reserved", "eks", "capacityReservation"),
        "disruptive",
        _ROLL,
        UPDATE_VERSION,
        f"{_TEMPLATES}; EC2 CapacityReservationSpecification",
    ),
    (ZONES, "replace", "the subnets are set at creation only", "", _TERRAFORM),
    (DISK_SIZE, "disruptive", _ROLL, UPDATE_VERSION, _TEMPLATES),
    (DISK_TYPE, "disruptive", _ROLL, UPDATE_VERSION, _TEMPLATES),
    (FieldPath("sharing", "*"), "disruptive", _ROLL, UPDATE_VERSION, f"{_TEMPLATES} (Bottlerocket user data)"),
    (MAX_PODS, "disruptive", _ROLL, UPDATE_VERSION, f"{_TEMPLATES} (user data)"),
    (
        KUBERNETES_VERSION,
        "disruptive",
        f"EKS replaces every node by one of the newer version, {_STOPS_FIRST}",
        UPDATE_VERSION,
        "docs: eks/update-managed-node-group",
    ),
    (MAX_SURGE, "in-place", _NEXT, UPDATE_CONFIG, f"{_SDK}, NodegroupUpdateConfig"),
    (MAX_UNAVAILABLE, "in-place", _NEXT, UPDATE_CONFIG, f"{_SDK}, NodegroupUpdateConfig"),
    (COUNT, "in-place", "EKS adds nodes", UPDATE_CONFIG, _SDK),
    (LEAST, "in-place", _BOUND, UPDATE_CONFIG, _SDK),
    (MOST, "in-place", _BOUND, UPDATE_CONFIG, _SDK),
    (
        FieldPath("nodes", "autoscaling", "resources", "*"),
        "in-place",
        "the cluster autoscaler learns anew what a node that is not there yet will have",
        TAG,
        "kubernetes/autoscaler cluster-autoscaler/cloudprovider/aws aws_manager.go; botocore eks TagResource",
    ),
    (label("*"), "in-place", "EKS relabels the nodes", UPDATE_CONFIG, "botocore eks/2017-11-01 UpdateLabelsPayload"),
    (
        label(CONFIG_LABEL),
        "disruptive",
        "the device plugin restarts with another configuration: the number of devices changes under running pods",
        UPDATE_CONFIG,
        "NVIDIA/k8s-device-plugin README, config-manager",
    ),
    (
        label(MIG_CONFIG_LABEL),
        "disruptive",
        "the MIG manager stops the GPU clients of each node and may reboot it",
        UPDATE_CONFIG,
        "NVIDIA/mig-parted reconfigure-mig.sh, NVIDIA/gpu-operator#1606",
    ),
    (
        label(ADVERTISER_LABEL),
        "in-place",
        "the component that this label asks for comes to the nodes",
        UPDATE_CONFIG,
        "NVIDIA/k8s-device-plugin v0.20.0 values.yaml, affinity",
    ),
    (TAINTS, "in-place", "EKS changes the taints of the nodes", UPDATE_CONFIG, f"{_SDK}, UpdateTaintsPayload"),
    (
        tag("*"),
        "in-place",
        "the tags of the node group change at once, those of its machines with the launch template's next version",
        TAG,
        "botocore eks/2017-11-01 TagResource, docs: eks/eks-using-tags",
    ),
    (PROTECTION, "in-place", "a label of the node group", UPDATE_CONFIG, _SDK),
)
"""Rows of the portable fields of `Desired.fields`."""

NATIVE_ROWS: Final[Mapping[FieldPath, UpdateRow]] = _rows(
    (FieldPath("eks", "subnets"), "replace", "the subnets are set at creation only", "", _TERRAFORM),
    (FieldPath("eks", "nodeRole"), "replace", "the role is set at creation only", "", _TERRAFORM),
    (
        FieldPath("eks", "releaseVersion"),
        "disruptive",
        f"EKS replaces every node by one of the other release, {_STOPS_FIRST}",
        UPDATE_VERSION,
        "docs: eks/update-managed-node-group",
    ),
    (
        FieldPath("eks", "nodeRepairConfig"),
        "in-place",
        "holds from the next fault on",
        UPDATE_CONFIG,
        "docs: eks/node-health",
    ),
)
"""Rows of the native members, by their first part."""


def find_row(change: Change, beside: Sequence[Change] = ()) -> UpdateRow:
    """Say what this change does; a field that no row covers is refused, never guessed.

    Args:
        change: The change.
        beside: All that change with it: whether a size shrinks shows only in several numbers together.
    """
    row = _row_of(change.field)
    if change.field == COUNT and change.new is None:
        return _unfixed(change, beside, row)
    if change.field == CAPACITY_TYPE:
        return _bought(change, beside, row)
    adjust = _BY_VALUE.get(row.field)
    return adjust(change, row) if adjust else row


def _row_of(field: FieldPath) -> UpdateRow:
    if field in INTENT_ROWS:
        return INTENT_ROWS[field]
    for row in (INTENT_ROWS.get(FieldPath(*field[:-1], "*")), NATIVE_ROWS.get(FieldPath(*field[:2]))):
        if row is not None:
            return replace(row, field=field)
    if field.is_below("sharing"):
        return replace(INTENT_ROWS[FieldPath("sharing", "*")], field=field)
    return UpdateRow(
        field, "refused", "what a change of this member does is not documented", "", "botocore eks/2017-11-01"
    )


def _bought(change: Change, beside: Sequence[Change], row: UpdateRow) -> UpdateRow:
    """A reservation is bought on demand: the launch template names it, capacityType stays (unlike a block's)."""
    block = any(other.field == _BLOCK for other in beside)
    if block or {change.old, change.new} != {"on-demand", "reserved"}:
        return row
    return replace(INTENT_ROWS[_RESERVATION], field=change.field)


def _version(change: Change, row: UpdateRow) -> UpdateRow:
    """EKS takes the cluster's own version only, which never goes back (docs: eks/update-managed-node-group)."""
    old, new = _minor(change.old), _minor(change.new)
    if old and new and new < old:
        sentence = f"a node group does not go back to an older version: {change.new} is before {change.old}"
        return replace(row, kind="refused", sentence=sentence, call="")
    return row


def _minor(value: object) -> tuple[int, ...]:
    found = re.fullmatch(r"(\d+)\.(\d+)", str(value))
    return tuple(map(int, found.groups())) if found else ()


def _count(change: Change, row: UpdateRow) -> UpdateRow:
    """A smaller size ends nodes at once, disruption budgets or not (docs: eks/update-managed-node-group)."""
    old, new = change.old, change.new
    if isinstance(old, int) and isinstance(new, int) and new < old:
        return replace(row, kind="disruptive", sentence="EKS terminates nodes at once, with the pods on them")
    return row


def _unfixed(change: Change, beside: Sequence[Change], row: UpdateRow) -> UpdateRow:
    """A fixed size becomes bounds; a declared size of 0 does too, as the largest size of a group is 1 at least."""
    bounds = {other.field: other.new for other in beside}
    low, high = bounds.get(LEAST), bounds.get(MOST)
    if isinstance(high, int) and isinstance(change.old, int) and (high < change.old or (low, high) == (0, 1)):
        sentence = "EKS terminates the nodes above the new size at once, with the pods on them"
        return replace(row, kind="disruptive", sentence=sentence)
    return row


def _most(change: Change, row: UpdateRow) -> UpdateRow:
    """Without a largest size the group has a fixed one: what the autoscaler added above it goes."""
    if isinstance(change.old, int) and change.new is None:
        sentence = "EKS terminates the nodes above the fixed size at once, with the pods on them"
        return replace(row, kind="disruptive", sentence=sentence)
    return _count(change, row)


def _advertiser(change: Change, row: UpdateRow) -> UpdateRow:
    if change.old is None:
        return row
    sentence = "the component that advertises the GPUs leaves the nodes: they have none until another one has come"
    return replace(row, kind="disruptive", sentence=sentence)


def _taints(change: Change, row: UpdateRow) -> UpdateRow:
    if any(taint.endswith(":NoExecute") for taint in _items(change.new) - _items(change.old)):
        return replace(row, kind="disruptive", sentence="a new NoExecute taint evicts the pods that do not tolerate it")
    return row


def _release(change: Change, row: UpdateRow) -> UpdateRow:
    """There is no way back to an older release on a live group (docs: eks/update-managed-node-group)."""
    old, new = _release_order(change.old), _release_order(change.new)
    same_system = bool(old and new) and bool(old[-1]) == bool(new[-1])  # another image has releases of its own
    if same_system and new < old:
        sentence = f"a node group does not go back to an older release: {change.new} is before {change.old}"
        return replace(row, kind="replace", sentence=sentence, call="")
    return row


def _release_order(value: object) -> tuple[int, ...]:
    """Numbers of 1.34.2-20260714, or of 1.57.0-ab12cd34 without its commit; () for what is neither."""
    found = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)-(\d{8}|[0-9a-f]{8})", str(value))
    if found is None:
        return ()
    date = int(found[4]) if re.fullmatch(r"20\d{6}", found[4]) else 0
    return (*(int(found[part]) for part in (1, 2, 3)), date)


def _items(value: object) -> set[str]:
    return {str(item) for item in value} if isinstance(value, tuple | list) else set()


_BY_VALUE: Final = {
    COUNT: _count,
    MOST: _most,
    label(ADVERTISER_LABEL): _advertiser,
    TAINTS: _taints,
    KUBERNETES_VERSION: _version,
    FieldPath("eks", "releaseVersion"): _release,
}
