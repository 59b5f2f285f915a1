"""Capacity that was set aside before: each cloud's own forms of it.

Lives here: the fields under capacity.reserved. Must not live here: what one cloud allows beside a form (the
providers' rules.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic import Field

from gpukube.spec.base import SpecModel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.spec.base import ProviderName

__all__ = [
    "ARM_RESERVATION_GROUP",
    "CAPACITY_BLOCK",
    "CAPACITY_RESERVATION",
    "DURATION",
    "RESERVATION",
    "RESERVED_FORMS",
    "TOGETHER",
    "AksReserved",
    "EksReserved",
    "GkeReserved",
    "Reserved",
    "WhenThere",
]

CAPACITY_BLOCK = r"^cr-[0-9a-f]{8,17}$"
"""Id of an EC2 capacity reservation; a Capacity Block has one too (EC2 API: CapacityReservation)."""

CAPACITY_RESERVATION = (
    r"^(cr-[0-9a-f]{8,17}|arn:aws[a-z-]*:resource-groups:[a-z0-9-]+:[0-9]{12}:group/[A-Za-z0-9_./-]{1,300})$"
)
"""An id, or the ARN of a resource group of reservations (EC2 API: CapacityReservationTarget)."""

ARM_RESERVATION_GROUP = (
    r"^/subscriptions/[0-9A-Fa-f-]{36}/resource[Gg]roups/[^/]+"
    r"/providers/[Mm]icrosoft\.[Cc]ompute/[Cc]apacity[Rr]eservation[Gg]roups/[^/]+$"
)
"""ARM id (docs: aks/use-capacity-reservation-groups); ARM compares without case, the SDK's own page writes it small."""

RESERVATION = r"^(projects/[a-z0-9:.-]+/reservations/)?[a-z]([-a-z0-9]{0,61}[a-z0-9])?(/reservationBlocks/[a-z0-9-]+)?$"
"""Name of a Compute Engine reservation, with the project that shares it or not (container v1: ReservationAffinity)."""

DURATION = r"^[1-9][0-9]{0,6}[smhd]$"
"""A number and s, m, h or d: 90m, 12h, 7d."""


_A_GROUP = (
    "/subscriptions/11111111-2222-3333-4444-555555555555/resourceGroups/ml"
    "/providers/Microsoft.Compute/capacityReservationGroups/a100"
)


class EksReserved(SpecModel):
    """EC2 capacity; exactly one form."""

    capacity_block: str | None = Field(
        default=None,
        pattern=CAPACITY_BLOCK,
        examples=["cr-0123456789abcdef0"],
        description="Id of a Capacity Block for ML: GPUs for a fixed time, in one zone.",
    )
    capacity_reservation: str | None = Field(
        default=None,
        pattern=CAPACITY_RESERVATION,
        examples=["cr-0123456789abcdef0"],
        description="On-Demand Capacity Reservation: its id, or the ARN of a resource group of several.",
    )


class AksReserved(SpecModel):
    """Azure capacity."""

    capacity_reservation_group: str | None = Field(
        default=None,
        pattern=ARM_RESERVATION_GROUP,
        examples=[_A_GROUP],
        description="ARM id of a capacity reservation group; one of its reservations must fit size and zone.",
    )


class WhenThere(SpecModel):
    """Machines that come when Google has them, for a limited time."""

    max_run_duration: str | None = Field(
        default=None,
        pattern=DURATION,
        examples=["7d"],
        description="How long a node may live: a number and s, m, h or d. Google's limit when not given.",
    )


class GkeReserved(SpecModel):
    """Google capacity; one form, or flexStart and queued together."""

    reservation: str | None = Field(
        default=None,
        pattern=RESERVATION,
        examples=["a100-train"],
        description="A Compute Engine reservation by name, or projects/OWNER/reservations/NAME of a shared one.",
    )
    flex_start: WhenThere | None = Field(
        default=None, description="Flex-start: nodes start when capacity is found. Needs autoscaling."
    )
    queued: WhenThere | None = Field(
        default=None,
        description=(
            "Queued provisioning (DWS): all nodes of a ProvisioningRequest come at once. Together with flexStart, as "
            "Google's guide has it, it is flex-start with queued provisioning."
        ),
    )


class Reserved(SpecModel):
    """What each cloud that the pool goes to takes the machines from."""

    eks: EksReserved | None = Field(default=None, description="A Capacity Block, or a capacity reservation.")
    aks: AksReserved | None = Field(default=None, description="A capacity reservation group.")
    gke: GkeReserved | None = Field(default=None, description="A reservation, flex-start or queued provisioning.")


def _forms(model: type[SpecModel]) -> tuple[str, ...]:
    return tuple(info.alias or name for name, info in model.model_fields.items())


RESERVED_FORMS: Final[Mapping[ProviderName, tuple[str, ...]]] = {
    "eks": _forms(EksReserved),
    "aks": _forms(AksReserved),
    "gke": _forms(GkeReserved),
}
"""Provider -> the forms to choose from, as a spec writes them."""

TOGETHER: Final = ("flexStart", "queued")
"""The two forms that may be written together: flex-start with queued provisioning (docs:
kubernetes-engine/how-to/provisioningrequest, whose gcloud command has both flags)."""
