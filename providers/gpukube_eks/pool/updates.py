"""Effects of changing a field of a live node group: one row per field, with its sentence and source.

In scope: the table and lookups in it. Out of scope: the calls themselves (`change`), the API members that gpukube
supports (`native`).

EKS has two calls for a group, one for its configuration and one for its machines' version, and two for tags; anything
else needs a new group.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gpukube.core import binding
from gpukube.core.fields import CAPACITY_TYPE, COUNT, DISK_ENCRYPTED, DISK_KMS_KEY, LEAST, MOST, FieldPath
from gpukube.core.jsontree import tree
from gpukube.core.values import UpdateRow
from gpukube_eks.facts.images import is_bottlerocket
from gpukube_eks.pool.disks import starts_from_snapshot
from gpukube_eks.pool.fields import (
    BINDINGS,
    BLOCK_FIELD,
    RESERVATION_FIELD,
    ROLL,
    STOPS_FIRST,
    TEMPLATES,
    UPDATE_CONFIG,
    UPDATE_VERSION,
)
from gpukube_eks.pool.launch import TOPS
from gpukube_eks.pool.own_image import changes_joining, joins_by_gpukube
from gpukube_eks.pool.renewing import RELEASE
from gpukube_eks.pool.settings import TEMPLATE_DATA, describe_kept
from gpukube_eks.userdata.merging import is_setting

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.core.values import Change, Observed, UpdateKind

_TERRAFORM: Final = "hashicorp/terraform-provider-aws internal/service/eks/node_group.go (ForceNew)"

INTENT_ROWS: Final[Mapping[FieldPath, UpdateRow]] = {row.path: row.row for row in BINDINGS}
"""Rows of the portable fields of `Desired.fields`."""


def _rows(*rows: tuple[FieldPath, UpdateKind, str, str, str]) -> dict[FieldPath, UpdateRow]:
    return {field: UpdateRow(field, kind, sentence, call, source) for field, kind, sentence, call, source in rows}


NATIVE_ROWS: Final[Mapping[FieldPath, UpdateRow]] = _rows(
    (FieldPath("eks", "subnets"), "replace", "the subnets can be set only at creation", "", _TERRAFORM),
    (FieldPath("eks", "nodeRole"), "replace", "the role can be set only at creation", "", _TERRAFORM),
    (
        RELEASE,
        "disruptive",
        f"EKS replaces every node with one of the other release, {STOPS_FIRST}",
        UPDATE_VERSION,
        "docs: eks/update-managed-node-group",
    ),
    (
        FieldPath("eks", "nodeRepairConfig"),
        "in-place",
        "takes effect at the next fault",
        UPDATE_CONFIG,
        "docs: eks/node-health",
    ),
    *(
        (FieldPath("eks", name), "disruptive", ROLL, UPDATE_VERSION, f"{TEMPLATES}; EC2 RequestLaunchTemplateData")
        for name in sorted(TOPS)
    ),
)
"""Rows of native members, by the first part of their path."""


def find_row(change: Change, beside: Sequence[Change] = (), live: Observed | None = None) -> UpdateRow:
    """Return the effect of a change; a field without a row is rejected.

    Args:
        change: The change.
        beside: All changes made together: whether a size shrinks depends on several numbers.
        live: The group, for the number of nodes that its autoscaler chose; None if unknown.
    """
    row = binding.find_row(INTENT_ROWS, NATIVE_ROWS, change.field)
    if row is not None and live is not None and (is_setting(change.field) or change.field[0] == "sharing"):
        kept = describe_kept(live)
        row = replace(row, sentence=f"{row.sentence}; {kept}") if kept and row.call == UPDATE_VERSION else row
    if row is None:
        why = "the effect of changing this member is not documented"
        return UpdateRow(change.field, "refused", why, "", "botocore eks/2017-11-01")
    if change.field == COUNT and change.new is None:
        return _unfixed(change, beside, row)
    if change.field == COUNT and change.old is None:
        return _fixed(change, live, row)
    if change.field == CAPACITY_TYPE:
        return _bought(change, beside, binding.adjusted(BINDINGS, change, row))
    if change.field == RELEASE:
        return _release(change, row)
    if live and row.kind == "in-place" and changes_joining([change.field]) and joins_by_gpukube(live):
        sentence = f"it is in the user data of nodes of an own image: {ROLL}"
        return replace(binding.adjusted(BINDINGS, change, row), kind="disruptive", sentence=sentence)
    if change.field in (DISK_ENCRYPTED, DISK_KMS_KEY):
        return _encryption(live, row)
    return binding.adjusted(BINDINGS, change, row)


def _encryption(live: Observed | None, row: UpdateRow) -> UpdateRow:
    """Reject encryption of a disk that starts from a snapshot (botocore ec2 LaunchTemplateEbsBlockDeviceRequest)."""
    rocket = is_bottlerocket(str(live.native.get("amiType"))) if live else False
    if live is None or not starts_from_snapshot(tree(live.native, TEMPLATE_DATA), rocket=rocket):
        return row
    sentence = "EC2 accepts no encryption of a disk that starts from a snapshot, like that of the live launch template"
    return replace(row, kind="refused", sentence=sentence, call="")


def _bought(change: Change, beside: Sequence[Change], row: UpdateRow) -> UpdateRow:
    """Adjust a change to a reservation: the launch template names it, capacityType stays (unlike for a block)."""
    block = any(other.field == BLOCK_FIELD for other in beside)
    if block or {change.old, change.new} != {"on-demand", "reserved"}:
        return row
    return replace(INTENT_ROWS[RESERVATION_FIELD], field=change.field)


def _unfixed(change: Change, beside: Sequence[Change], row: UpdateRow) -> UpdateRow:
    """Adjust a change from a fixed size to bounds; a declared size of 0 has bounds too, since maxSize is at least 1."""
    bounds = {other.field: other.new for other in beside}
    low, high = bounds.get(LEAST), bounds.get(MOST)
    if isinstance(high, int) and isinstance(change.old, int) and (high < change.old or (low, high) == (0, 1)):
        sentence = "EKS terminates the nodes above the new size at once, with the pods on them"
        return replace(row, kind="disruptive", sentence=sentence)
    return row


def _fixed(change: Change, live: Observed | None, row: UpdateRow) -> UpdateRow:
    """Adjust a change from bounds to a fixed size: the effect depends on how many nodes the autoscaler chose."""
    nodes = live.nodes if live else None
    if nodes is None:
        return replace(row, sentence="EKS adds missing nodes, or terminates nodes above the size at once")
    if nodes == change.new:
        return replace(row, sentence="the size is fixed; EKS keeps the existing nodes")
    return binding.adjusted(BINDINGS, replace(change, old=nodes), row)


def _release(change: Change, row: UpdateRow) -> UpdateRow:
    """Adjust a downgrade: a live group cannot go back to an older release (docs: eks/update-managed-node-group)."""
    old, new = _release_order(change.old), _release_order(change.new)
    same_system = bool(old and new) and bool(old[-1]) == bool(new[-1])  # another image has its own releases
    if same_system and new < old:
        sentence = f"a node group cannot go back to an older release: {change.new} is before {change.old}"
        return replace(row, kind="replace", sentence=sentence, call="")
    return row


def _release_order(value: object) -> tuple[int, ...]:
    """Return the numbers of 1.34.2-20260714, or of 1.57.0-ab12cd34 without its commit; () for anything else."""
    found = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)-(\d{8}|[0-9a-f]{8})", str(value))
    if found is None:
        return ()
    date = int(found[4]) if re.fullmatch(r"20\d{6}", found[4]) else 0
    return (*(int(found[part]) for part in (1, 2, 3)), date)
