"""Desired against observed, field by field.

Both sides are flat mappings of normalized intent (see `core.values.Desired.fields`). What the cloud fills in by
itself is not drift: a field that the spec leaves open is skipped, unless it belongs to a closed group, where
everything live must be declared. Numbers that the autoscaler moves never appear as fields.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.core.fields import KUBERNETES_VERSION, text_of
from gpukube.core.values import Change

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from gpukube.core.fields import FieldPath

CLOSED_GROUPS = frozenset(
    {"labels", "taints", "nodes", "sharing", "capacity", "deletionProtection", "devicePlugin", "driver"}
)
"""First steps of fields that are wholly ours: a live one that is not declared is a change to absent.

Tags are open: policies of an organisation add tags to every resource; only those that gpukube wrote itself are ours
(`core.values.Observed.written`). Zones, disk and native fields are open: the cloud fills them in.
"""


def diff_fields(
    desired: Mapping[FieldPath, object], observed: Mapping[FieldPath, object], written: Collection[FieldPath] = ()
) -> tuple[Change, ...]:
    """Compare two flat field mappings.

    Args:
        desired: What is declared.
        observed: What is live.
        written: Live fields of open groups that gpukube wrote: they must be declared, as those of closed groups.

    Returns:
        Changes in the order of the fields' texts; `old` is what is live, `new` what is declared, None for absent.
    """
    closed = {path for path in observed if path[0] in CLOSED_GROUPS or path in written}
    return tuple(
        Change(path, observed.get(path), desired.get(path))
        for path in sorted(desired.keys() | closed, key=text_of)
        if not _is_same(path, desired.get(path), observed.get(path))
    )


def _is_same(path: FieldPath, desired: object, observed: object) -> bool:
    """Compare two values; a Kubernetes version that names no patch, or no build, is met by every one of them."""
    if path == KUBERNETES_VERSION and desired and observed:
        return f"{observed}.".startswith(f"{desired}.") or f"{observed}".startswith(f"{desired}-")
    return desired == observed
