"""Converts between a spec's `upgrade` and a node group's updateConfig: nodes that an update removes or adds at a time.

In scope: both directions. Out of scope: what EKS rejects (`rules.checks`), the calls.

EKS counts nodes that it replaces at the same time, and has two strategies: MINIMAL terminates before it launches,
DEFAULT launches before it terminates, up to twice as many extra nodes as the group has zones, or as many as may be
unavailable (botocore eks NodegroupUpdateConfig; docs: eks/managed-node-update-behavior). So a surge is either on or
off. `eks: {updateConfig: ...}` has the same meaning and the same fields.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.fields import MAX_SURGE, MAX_UNAVAILABLE, FieldPath
from gpukube.core.jsontree import at, tree

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Target, Upgrade

SURGE: Final = "chosen by EKS"
"""Value of the field upgrade.maxSurge: with the strategy DEFAULT, EKS chooses the number of extra nodes."""

_DEFAULT_CONFIG: Final[Mapping[str, object]] = {"maxUnavailable": 1, "updateStrategy": "MINIMAL"}
"""Default: scarce GPUs do not allow new machines before old ones have stopped."""
NO_SURGE: Final = "0"
_COUNT, _SHARE, _STRATEGY = "maxUnavailable", "maxUnavailablePercentage", "updateStrategy"


def is_set(upgrade: Upgrade) -> bool:
    """Return whether the spec sets update options."""
    return upgrade.max_surge is not None or upgrade.max_unavailable is not None


def has_surge(target: Target) -> bool:
    """Return whether a pool requests extra nodes during an update."""
    return upgrade_fields(upgrade_members(target)).get(MAX_SURGE) == SURGE


def upgrade_members(target: Target) -> dict[str, object]:
    """Return the members of updateConfig that a spec requests, natively or not."""
    found, upgrade = tree(target.native, "updateConfig"), target.upgrade
    if (share := upgrade.max_unavailable) is not None:
        found[_SHARE if share.endswith("%") else _COUNT] = int(share.rstrip("%"))
    if upgrade.max_surge is not None:
        found[_STRATEGY] = "MINIMAL" if upgrade.max_surge.rstrip("%") == NO_SURGE else "DEFAULT"
    return found


def update_config(target: Target) -> dict[str, object]:
    """Return updateConfig of a new group; a native one replaces it as a whole (`native`)."""
    requested = upgrade_members(target)
    kept = {name: value for name, value in _DEFAULT_CONFIG.items() if not (name == _COUNT and _SHARE in requested)}
    return {**kept, **requested}


def upgrade_fields(config: object) -> dict[FieldPath, object]:
    """Return the comparable fields of a live or requested updateConfig."""
    count, share = at(config, _COUNT), at(config, _SHARE)
    unavailable = f"{share}%" if share is not None else None if count is None else str(count)
    word = at(config, _STRATEGY)
    surge = {"DEFAULT": SURGE, "MINIMAL": NO_SURGE}.get(str(word), word)
    found = {MAX_SURGE: surge, MAX_UNAVAILABLE: unavailable}
    return {path: value for path, value in found.items() if value is not None}
