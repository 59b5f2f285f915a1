"""Resources of an account that are created outside EKS: roles, reservations, placement groups.

In scope: their values. Out of scope: rules (`references`, `reservations`), wire forms.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

NODES, CONTROL_PLANE = "ec2.amazonaws.com", "eks.amazonaws.com"


@dataclass(frozen=True, slots=True)
class Role:
    """An IAM role.

    Attributes:
        services: Principals that its trust policy allows to assume it.
    """

    arn: str
    created: float
    services: tuple[str, ...] = (NODES,)

    @property
    def name(self) -> str:
        """Return the role's name, unique in the account whatever its path."""
        return self.arn.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Reservation:
    """A capacity reservation.

    Attributes:
        type: Instance type.
        zone: Letter of its Availability Zone.
        count: Number of its machines; None for unlimited.
        block: Whether it is a Capacity Block.
        state: State in EC2's spelling: active, scheduled, expired ...
        groups: ARNs of its resource groups.
        placement: Name of its placement group; "" for none.
    """

    id: str
    type: str
    zone: str
    count: int | None = None
    block: bool = False
    state: str = "active"
    groups: tuple[str, ...] = ()
    placement: str = ""


@dataclass(frozen=True, slots=True)
class PlacementGroup:
    """A placement group.

    Attributes:
        strategy: cluster, partition or spread.
        partitions: Number of its partitions; 0 without.
    """

    name: str
    id: str
    strategy: str = "cluster"
    partitions: int = 0
    tags: Mapping[str, str] = field(default_factory=dict)
