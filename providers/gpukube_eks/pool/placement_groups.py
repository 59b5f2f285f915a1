"""Placement groups of nodes: the pool's own for `placement: compact`, or one of the account, in its launch template.

In scope: converting `placement` to members and back, and the request that creates the pool's own group. Out of scope:
the calls (`live.placement_groups`), whether a group fits the pool and its reservation (`connectivity`).

The pool's own group has the name of its launch template, and is deleted with it. A cluster placement group keeps
machines close to each other, in one zone (docs: AWSEC2/UserGuide placement-strategies).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpukube.core.jsontree import text, tree

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.jsontree import Tree
    from gpukube.core.values import Target

COMPACT: Final = "compact"
NONE: Final = "none"
STRATEGY: Final = "cluster"
_PLACEMENT: Final = "Placement"
_ID: Final = re.compile(r"pg-[0-9a-f]{8,17}")


def is_named(target: Target) -> bool:
    """Return whether the spec names a placement group of the account."""
    return target.placement not in ("", COMPACT, NONE)


def reference_to(group: str) -> dict[str, str]:
    """Return the member that names a placement group: shared ones have an id (EC2 LaunchTemplatePlacementRequest)."""
    return {"GroupId" if _ID.fullmatch(group) else "GroupName": group}


def new_placement(target: Target, own: str) -> dict[str, object]:
    """Return the members of a new launch template.

    Args:
        target: The pool.
        own: Name of the pool's own placement group.
    """
    if target.placement == COMPACT:
        return {_PLACEMENT: reference_to(own)}
    return {_PLACEMENT: reference_to(target.placement)} if is_named(target) else {}


def with_placement(data: Tree, group: str) -> dict[str, object]:
    """Return a new launch template's data with this placement group."""
    return {**data, _PLACEMENT: reference_to(group)}


def changed_placement(new: Tree, live: Tree) -> dict[str, object]:
    """Return the changed members of a live launch template; other parts of its placement stay, None removes it."""
    kept = {key: value for key, value in tree(live, _PLACEMENT).items() if key not in ("GroupName", "GroupId")}
    return {_PLACEMENT: {**kept, **tree(new, _PLACEMENT)} or None}


def group_in(data: Mapping[str, object]) -> str:
    """Return the name or id of the placement group that a launch template names; "" for none."""
    return text(data, _PLACEMENT, "GroupName") or text(data, _PLACEMENT, "GroupId")


def read_placement(data: Mapping[str, object], own: str) -> str:
    """Return the `placement` of a live launch template."""
    group = group_in(data)
    return COMPACT if group == own else group or NONE
