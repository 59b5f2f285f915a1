"""Compares desired and observed fields.

Both sides are flat mappings of normalized intent (see `core.values.Desired.fields`). Defaults that the cloud fills in
are not drift: a field that the spec omits is skipped, unless it belongs to a closed group, where every live field must
be declared. Numbers that the autoscaler changes never appear as fields.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.core.fields import KUBERNETES_VERSION, text_of
from gpukube.core.values import Change

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from gpukube.core.fields import FieldPath

CLOSED_GROUPS = frozenset(
    {
        "capacity",
        "deletionProtection",
        "devicePlugin",
        "driver",
        "instanceTypes",
        "labels",
        "network",
        "nodes",
        "sharing",
        "taints",
    }
)
"""First steps of closed groups: an undeclared live field is removed.

Tags are open: an organization's policies add tags to every resource; gpukube manages only those that it wrote
(`core.values.Observed.written`). Zones, disk, and native fields are open: the cloud fills them in.
"""


def diff_fields(
    desired: Mapping[FieldPath, object], observed: Mapping[FieldPath, object], written: Collection[FieldPath] = ()
) -> tuple[Change, ...]:
    """Compare two flat field mappings.

    Args:
        desired: Declared fields.
        observed: Live fields.
        written: Live fields of open groups that gpukube wrote; like those of closed groups, they must be declared.

    Returns:
        Changes, sorted by the fields' texts; `old` is the live value, `new` the declared one, None if absent.
    """
    closed = {path for path in observed if path[0] in CLOSED_GROUPS or path in written}
    return tuple(
        Change(path, observed.get(path), desired.get(path))
        for path in sorted(desired.keys() | closed, key=text_of)
        if not _is_same(path, desired.get(path), observed.get(path))
    )


def _is_same(path: FieldPath, desired: object, observed: object) -> bool:
    """Compare two values; a Kubernetes version without a patch or build matches any patch or build."""
    if path == KUBERNETES_VERSION and desired and observed:
        return f"{observed}.".startswith(f"{desired}.") or f"{observed}".startswith(f"{desired}-")
    return desired == observed
