"""Checks whether a node pool and its replacement can exist at the same time.

In scope: GKE's resources of fixed size. Out of scope: quotas, names (`checks`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.core.fields import PLACEMENT
from gpukube.errors import Finding
from gpukube_gke.pool.node_settings import COMPACT

if TYPE_CHECKING:
    from gpukube.core.values import Desired, Observed


def check_coexistence(successor: Desired, observed: Observed) -> list[Finding]:
    """Report two pools that share a placement policy as an error, with two policies as a warning."""
    target = successor.target
    policy = target.placement
    if policy in ("", "none"):
        return []
    is_shared = policy != COMPACT and observed.fields.get(PLACEMENT) == policy
    seen = f"both pools would be placed by the policy {policy}" if is_shared else "the new pool is placed compactly"
    return [
        Finding(
            "surge-impossible",
            target.locator.at("placement"),
            seen,
            fix="use --replace recreate, or another placement policy",
            why="compact placement keeps the nodes close together, where there may be no room for twice as many",
            severity="error" if is_shared else "warning",
        )
    ]
