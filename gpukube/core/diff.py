"""Desired against observed, field by field.

Both sides are flat mappings of normalised intent (see `core.values.Desired.fields`). What the cloud fills in by
itself is not drift: a field that the spec leaves open is skipped, unless it belongs to a closed group, where
everything live must be declared. Numbers that the autoscaler moves never appear as fields.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.core.values import Change

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

__all__ = ["CLOSED_GROUPS", "KUBERNETES_VERSION", "diff_fields"]

KUBERNETES_VERSION = "kubernetesVersion"
"""Field of the nodes' version. All clouds patch nodes of a minor version by themselves, and AKS does not upgrade where
the minor version alone is asked for (SDK, AgentPool.orchestratorVersion)."""

CLOSED_GROUPS = ("labels[", "taints", "nodes.", "sharing.", "capacity.", "deletionProtection", "devicePlugin", "driver")
"""Prefixes of fields that are wholly ours: a live one that is not declared is a change to absent.

Tags are open: policies of an organisation add tags to every resource; only those that gpukube wrote itself are ours
(`core.values.Observed.written`). Zones, disk and native fields are open: the cloud fills them in.
"""


def diff_fields(
    desired: Mapping[str, object], observed: Mapping[str, object], written: Collection[str] = ()
) -> tuple[Change, ...]:
    """Compare two flat field mappings.

    Args:
        desired: What is declared.
        observed: What is live.
        written: Live fields of open groups that gpukube wrote: they must be declared, as those of closed groups.

    Returns:
        Changes in order of field name; `old` is what is live, `new` what is declared, None for absent.
    """
    closed = {name for name in observed if name.startswith(CLOSED_GROUPS) or name in written}
    names = desired.keys() | closed
    return tuple(
        Change(name, observed.get(name), desired.get(name))
        for name in sorted(names)
        if not _is_same(name, desired.get(name), observed.get(name))
    )


def _is_same(name: str, desired: object, observed: object) -> bool:
    """Compare two values; a Kubernetes version that names no patch, or no build, is met by every one of them."""
    if name == KUBERNETES_VERSION and desired and observed:
        return f"{observed}.".startswith(f"{desired}.") or f"{observed}".startswith(f"{desired}-")
    return desired == observed
