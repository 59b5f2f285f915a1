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
        is_open: Whether it serves launches that do not name it.
        created: When it was requested.
        start: When it becomes active.
        end: When it ends; None for never.
    """

    id: str
    type: str
    zone: str
    count: int | None = None
    block: bool = False
    state: str = "active"
    groups: tuple[str, ...] = ()
    placement: str = ""
    is_open: bool = False
    created: float = 0.0
    start: float = 0.0
    end: float | None = None

    def state_at(self, now: float) -> str:
        """Return the state; one that is active is scheduled before its start and expired after its end."""
        if self.state != "active" or (self.start <= now and (self.end is None or now < self.end)):
            return self.state
        return "scheduled" if now < self.start else "expired"


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
