"""How many nodes an update takes away or adds at a time: `upgrade` of a spec <-> updateConfig of a node group.

In scope: both ways. Out of scope: what EKS refuses of it (`rules.checks`), the calls.

EKS counts nodes that it replaces at the same time, and knows two strategies: MINIMAL terminates before it launches,
DEFAULT launches before it terminates, up to twice as many extra nodes as the group has zones, or as many as may be
unavailable (botocore eks NodegroupUpdateConfig; docs: eks/managed-node-update-behavior). So a surge is yes or no. What
`eks: {updateConfig: ...}` says is the same, and has the same fields.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.fields import MAX_SURGE, MAX_UNAVAILABLE, FieldPath
from gpukube.core.jsontree import at, tree

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Target, Upgrade

SURGE: Final = "chosen by EKS"
"""Of upgrade.maxSurge as a field: with the strategy DEFAULT, EKS takes as many more nodes as it likes."""

_CALM: Final[Mapping[str, object]] = {"maxUnavailable": 1, "updateStrategy": "MINIMAL"}
"""Where the spec says nothing: scarce GPUs do not allow new machines before old ones have stopped."""
NO_SURGE: Final = "0"
_COUNT, _SHARE, _STRATEGY = "maxUnavailable", "maxUnavailablePercentage", "updateStrategy"


def is_set(upgrade: Upgrade) -> bool:
    """Return whether the spec has a word on updates."""
    return upgrade.max_surge is not None or upgrade.max_unavailable is not None


def has_surge(target: Target) -> bool:
    """Return whether a pool asks for nodes beyond its size while it is updated."""
    return upgrade_fields(upgrade_members(target)).get(MAX_SURGE) == SURGE


def upgrade_members(target: Target) -> dict[str, object]:
    """Write the members of updateConfig that a spec asks for, natively or not."""
    found, upgrade = tree(target.native, "updateConfig"), target.upgrade
    if (share := upgrade.max_unavailable) is not None:
        found[_SHARE if share.endswith("%") else _COUNT] = int(share.rstrip("%"))
    if upgrade.max_surge is not None:
        found[_STRATEGY] = "MINIMAL" if upgrade.max_surge.rstrip("%") == NO_SURGE else "DEFAULT"
    return found


def update_config(target: Target) -> dict[str, object]:
    """Write updateConfig of a new group; one that is written natively takes its place whole (`native`)."""
    requested = upgrade_members(target)
    kept = {name: value for name, value in _CALM.items() if not (name == _COUNT and _SHARE in requested)}
    return {**kept, **requested}


def upgrade_fields(config: object) -> dict[FieldPath, object]:
    """Name the comparable fields of an updateConfig: of a live group, or of what is asked for."""
    count, share = at(config, _COUNT), at(config, _SHARE)
    unavailable = f"{share}%" if share is not None else None if count is None else str(count)
    word = at(config, _STRATEGY)
    surge = {"DEFAULT": SURGE, "MINIMAL": NO_SURGE}.get(str(word), word)
    found = {MAX_SURGE: surge, MAX_UNAVAILABLE: unavailable}
    return {path: value for path, value in found.items() if value is not None}
