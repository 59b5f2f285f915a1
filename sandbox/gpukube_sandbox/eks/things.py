"""Resources of an account that are created outside EKS: roles and reservations.

In scope: their values. Out of scope: rules (`references`, `reservations`), wire forms.
"""

from __future__ import annotations

from dataclasses import dataclass

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
    """

    id: str
    type: str
    zone: str
    count: int | None = None
    block: bool = False
    state: str = "active"
    groups: tuple[str, ...] = ()
