"""Checks of a pool's alternatives: what they may not change, and sizes that a family cannot have.

In scope: checks that need only the spec. Out of scope: whether pods see the same devices (core.families), names that
two pools share (fields).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.errors import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.spec.rules.subject import Subject
    from gpukube.spec.source.positions import PositionedDict, Positions

FIXED_IN_FAMILY: Final = {
    "clusters": "the alternatives of a pool are on its clusters",
    "nodes": "all nodes come from one alternative, so all have the same size",
    "gpuTaint": "the same pods run on every alternative",
    "deletionProtection": "protection is for the alternative that has the nodes",
    "alternatives": "alternatives are one list, in the order in which they are tried",
    "maxHourlyPrice": "the limit is for whichever alternative has the nodes",
    "place": "the alternatives of a pool are on its clusters",
}
"""Fields that an alternative cannot change, each with the reason."""


def check_alternative(patch: PositionedDict, at: Positions) -> Iterator[Finding]:
    """Report fields of an alternative that it cannot change."""
    for key in patch:
        if why := FIXED_IN_FAMILY.get(key):
            message = f"{at.path(key)} cannot differ between alternatives"
            yield Finding(
                "alternative-field", at.key_at(key), message, fix="remove it here, or write it on the pool", why=why
            )


def check_family(s: Subject) -> Iterator[Finding]:
    """Report sizes that a pool with alternatives, or on any of its clusters, cannot have."""
    bounds = s.pool.nodes.autoscaling if s.pool.nodes else None
    if bounds is None or not s.knows("nodes", "alternatives", "place"):
        return
    if s.pool.place == "any":
        yield s.finding(
            "place-autoscaled",
            "place",
            "is any, but the pool is autoscaled",
            "write nodes: {count: ...}, or place: all",
            "an empty pool can be created on every cluster; only nodes show where there are machines",
        )
    elif s.pool.alternatives and bounds.min:
        yield s.finding(
            "alternative-minimum",
            "nodes.autoscaling.min",
            f"is {bounds.min}, but the pool has alternatives",
            "write min: 0",
            "each alternative is a pool of its own, and one that must have nodes keeps the autoscaler from the others",
        )
