"""Checks whether a node pool and its replacement can exist at the same time.

In scope: GKE's resources of fixed size. Out of scope: quotas, names (`checks`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.jsontree import at
from gpukube.errors import Finding

if TYPE_CHECKING:
    from gpukube.core.values import Desired, Observed

_POLICY: Final = ("placementPolicy", "policyName")


def check_coexistence(successor: Desired, observed: Observed) -> list[Finding]:
    """Report two pools that share a compact placement policy as an error, with two policies as a warning."""
    target = successor.target
    if at(target.native, "placementPolicy", "type") != "COMPACT":
        return []
    policy = at(target.native, *_POLICY)
    is_shared = policy is not None and at(observed.native, *_POLICY) == policy
    seen = f"both pools would be placed by the policy {policy}" if is_shared else "the new pool is placed compactly"
    return [
        Finding(
            "surge-impossible",
            target.locator.at("gke.placementPolicy"),
            seen,
            fix="use --replace recreate, or another placement policy",
            why="compact placement keeps the nodes close together, where there may be no room for twice as many",
            severity="error" if is_shared else "warning",
        )
    ]
