"""Whether a node group and the one that replaces it can exist at the same time.

In scope: resources of a fixed size. Out of scope: quotas, names (`checks`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.errors import Finding
from gpukube_eks.pool.purchase import capacity_fields, is_block

if TYPE_CHECKING:
    from gpukube.core.values import Desired, Observed


def check_coexistence(successor: Desired, observed: Observed) -> list[Finding]:
    """Reject two groups in one Capacity Block, which has only the instances that were bought."""
    target = successor.target
    reservation = target.capacity.reservation
    if reservation is None or not is_block(target.capacity):
        return []
    fields = capacity_fields(target.capacity)
    if any(observed.fields.get(field) != value for field, value in fields.items()):
        return []
    return [
        Finding(
            "surge-impossible",
            target.locator.at("capacity.reserved.eks.capacityBlock"),
            f"both node groups would use instances of Capacity Block {reservation.id}",
            fix="use --replace recreate, or another Capacity Block for the new nodes",
            why="a Capacity Block has only the instances that were bought (docs: eks/capacity-blocks-mng)",
        )
    ]
