"""What a change of a field does to a live node group: one row per field, with its sentence and source.

Lives here: the table and the look-up in it. Must not live here: how an update is sent.

EKS has two calls for a group, one for its configuration and one for what its machines are made from, and one for tags;
what neither carries needs a new group. Sources named "terraform" are the ForceNew list of aws_eks_node_group
(hashicorp/terraform-provider-aws, internal/service/eks/node_group.go).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gpukube.core.owners import CONFIG_LABEL, MIG_CONFIG_LABEL
from gpukube.core.values import UpdateRow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Change, UpdateKind

__all__ = ["INTENT_ROWS", "NATIVE_ROWS", "UPDATE_CONFIG", "UPDATE_VERSION", "find_row"]

UPDATE_CONFIG: Final = "update_nodegroup_config"
UPDATE_VERSION: Final = "update_nodegroup_version"
_TAG: Final = "tag_resource"
_SDK: Final = "botocore eks/2017-11-01 UpdateNodegroupConfigRequest"
_ROLL: Final = "a new version of the launch template: EKS replaces every node, draining each"
_TEMPLATES: Final = "docs: eks/launch-templates"


def _rows(*rows: tuple[str, UpdateKind, str, str, str]) -> dict[str, UpdateRow]:
    return {field: UpdateRow(field, kind, sentence, call, source) for field, kind, sentence, call, source in rows}


INTENT_ROWS: Final[Mapping[str, UpdateRow]] = _rows(
    ("instanceType", "replace", "the instance type is set at creation only", "", "terraform"),
    ("image", "replace", "amiType is set at creation only", "", "terraform"),
    ("capacity.type", "replace", "Spot or on-demand is set at creation only", "", "terraform"),
    ("zones", "replace", "the subnets are set at creation only", "", "terraform"),
    ("disk.sizeGiB", "disruptive", _ROLL, UPDATE_VERSION, _TEMPLATES),
    ("disk.type", "disruptive", _ROLL, UPDATE_VERSION, _TEMPLATES),
    ("sharing.*", "disruptive", _ROLL, UPDATE_VERSION, "docs: eks/launch-templates (Bottlerocket user data)"),
    ("nodes.count", "in-place", "EKS adds or removes nodes", UPDATE_CONFIG, _SDK),
    ("nodes.autoscaling.min", "in-place", "the Auto Scaling group keeps the new bound", UPDATE_CONFIG, _SDK),
    ("nodes.autoscaling.max", "in-place", "the Auto Scaling group keeps the new bound", UPDATE_CONFIG, _SDK),
    ("labels[*]", "in-place", "EKS relabels the nodes", UPDATE_CONFIG, "botocore eks/2017-11-01 UpdateLabelsPayload"),
    (
        f"labels[{CONFIG_LABEL}]",
        "disruptive",
        "the device plugin restarts with another configuration: the number of devices changes under running pods",
        UPDATE_CONFIG,
        "NVIDIA/k8s-device-plugin README, config-manager",
    ),
    (
        f"labels[{MIG_CONFIG_LABEL}]",
        "disruptive",
        "the MIG manager stops the GPU clients of each node and may reboot it",
        UPDATE_CONFIG,
        "NVIDIA/mig-parted reconfigure-mig.sh, NVIDIA/gpu-operator#1606",
    ),
    ("taints", "in-place", "EKS changes the taints of the nodes", UPDATE_CONFIG, f"{_SDK}, UpdateTaintsPayload"),
    (
        "tags[*]",
        "in-place",
        "the tags of the node group change at once; machines get theirs when they are made anew",
        _TAG,
        "botocore eks/2017-11-01 TagResource, docs: eks/eks-using-tags",
    ),
    ("deletionProtection", "in-place", "a label of the node group", UPDATE_CONFIG, _SDK),
)
"""Rows of the portable fields of `Desired.fields`."""

NATIVE_ROWS: Final[Mapping[str, UpdateRow]] = _rows(
    ("eks.subnets", "replace", "the subnets are set at creation only", "", "terraform"),
    ("eks.nodeRole", "replace", "the role is set at creation only", "", "terraform"),
    (
        "eks.releaseVersion",
        "disruptive",
        "EKS replaces every node by one of the other release, draining each; there is no way back to older versions",
        UPDATE_VERSION,
        "docs: eks/update-managed-node-group",
    ),
    ("eks.updateConfig", "in-place", "holds from the next update on", UPDATE_CONFIG, _SDK),
    ("eks.nodeRepairConfig", "in-place", "holds from the next fault on", UPDATE_CONFIG, "docs: eks/node-health"),
)
"""Rows of the native members, by their first part."""


def find_row(change: Change) -> UpdateRow:
    """Say what this change does; a field that no row covers is refused, never guessed."""
    row = _row_of(change.field)
    adjust = _BY_VALUE.get(row.field)
    return adjust(change, row) if adjust else row


def _row_of(field: str) -> UpdateRow:
    if field in INTENT_ROWS:
        return INTENT_ROWS[field]
    if field.startswith(("labels[", "tags[")):
        return replace(INTENT_ROWS[field.partition("[")[0] + "[*]"], field=field)
    if field.startswith("sharing."):
        return replace(INTENT_ROWS["sharing.*"], field=field)
    native = ".".join(field.split(".")[:2])
    if native in NATIVE_ROWS:
        return replace(NATIVE_ROWS[native], field=field)
    return UpdateRow(field, "refused", "what a change of this member does is not documented", "", "")


def _count(change: Change, row: UpdateRow) -> UpdateRow:
    """A smaller size ends nodes at once, disruption budgets or not (docs: eks/update-managed-node-group)."""
    old, new = change.old, change.new
    if isinstance(old, int) and isinstance(new, int) and new < old:
        return replace(row, kind="disruptive", sentence="EKS terminates nodes at once, with the pods on them")
    return row


def _taints(change: Change, row: UpdateRow) -> UpdateRow:
    if any(taint.endswith(":NoExecute") for taint in _items(change.new) - _items(change.old)):
        return replace(row, kind="disruptive", sentence="a new NoExecute taint evicts the pods that do not tolerate it")
    return row


def _items(value: object) -> set[str]:
    return {str(item) for item in value} if isinstance(value, tuple) else set()


_BY_VALUE: Final = {"nodes.count": _count, "nodes.autoscaling.max": _count, "taints": _taints}
