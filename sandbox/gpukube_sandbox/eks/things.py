"""Things of an account that others than EKS make: roles and reservations.

In scope: what each of them is. Out of scope: rules (`references`, `reservations`), wire forms.
"""

from __future__ import annotations

from dataclasses import dataclass

NODES, CONTROL_PLANE = "ec2.amazonaws.com", "eks.amazonaws.com"


@dataclass(frozen=True, slots=True)
class Role:
    """One IAM role.

    Attributes:
        services: Principals that its trust policy lets assume it.
    """

    arn: str
    created: float
    services: tuple[str, ...] = (NODES,)

    @property
    def name(self) -> str:
        """Its name, which no other role of the account has, whatever its path."""
        return self.arn.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Reservation:
    """One reservation.

    Attributes:
        type: Instance type.
        zone: Letter of its Availability Zone.
        count: Machines that it holds; None for as many as are asked for.
        block: It is a Capacity Block.
        state: As EC2 calls it: active, scheduled, expired ...
        groups: ARNs of resource groups that it is in.
    """

    id: str
    type: str
    zone: str
    count: int | None = None
    block: bool = False
    state: str = "active"
    groups: tuple[str, ...] = ()
