"""Purchase of a node group's machines: capacityType, and the related parts of its launch template.

In scope: converting a spec's capacity to API members and back. Out of scope: what EKS rejects (`rules.capacity`), live
reservations (`placement`).

The launch template names a Capacity Block together with its market and its single instance type, but only the id of a
reservation (docs: eks/capacity-blocks-mng; EC2 LaunchTemplateCapacityReservationSpecificationRequest). Without a target
EC2 uses any matching open reservation, which is the default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.fields import CAPACITY_TYPE, FieldPath
from gpukube.core.jsontree import tree

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Capacity, Target

BLOCK: Final = "capacityBlock"
RESERVATION: Final = "capacityReservation"

_FIELD: Final = FieldPath("capacity", "reserved", "eks")
_GROUP: Final = "CapacityReservationResourceGroupArn"
_ID: Final = "CapacityReservationId"
_SPECIFICATION: Final = "CapacityReservationSpecification"
_WORDS: Final = {"SPOT": "spot", "ON_DEMAND": "on-demand"}
_OPEN: Final = {_SPECIFICATION: {"CapacityReservationPreference": "open"}}


def capacity_type(capacity: Capacity) -> str:
    """Return the capacityType; a reservation is bought on demand."""
    return "CAPACITY_BLOCK" if is_block(capacity) else "SPOT" if capacity.type == "spot" else "ON_DEMAND"


def is_block(capacity: Capacity) -> bool:
    """Return whether it is a Capacity Block, whose instance type is in the launch template."""
    return capacity.reservation is not None and capacity.reservation.form == BLOCK


def bought_data(target: Target, *, is_first: bool = True) -> dict[str, object]:
    """Return the purchase members of the launch template's data.

    Args:
        target: A checked pool.
        is_first: Whether this is the first version; a later one can replace a member, but not remove it.
    """
    reservation = target.capacity.reservation
    if reservation is None:
        return {} if is_first else dict(_OPEN)
    data: dict[str, object] = {
        _SPECIFICATION: {
            "CapacityReservationTarget": {_GROUP if reservation.id.startswith("arn:") else _ID: reservation.id}
        }
    }
    if is_block(target.capacity):
        data |= {"InstanceMarketOptions": {"MarketType": "capacity-block"}, "InstanceType": target.machine.name}
    return data


def capacity_fields(capacity: Capacity) -> dict[FieldPath, object]:
    """Return the comparable fields of a desired capacity."""
    found: dict[FieldPath, object] = {CAPACITY_TYPE: capacity.type}
    if capacity.reservation is not None:
        found[FieldPath(*_FIELD, capacity.reservation.form)] = capacity.reservation.id
    return found


def reserved_id(fields: Mapping[FieldPath, object]) -> str:
    """Return the id of the reservation or block in the fields of a pool; "" for none, and for a resource group."""
    found = (str(fields.get(FieldPath(*_FIELD, form)) or "") for form in (RESERVATION, BLOCK))
    return next((identity for identity in found if identity.startswith("cr-")), "")


def read_capacity(native_type: object, data: Mapping[str, object]) -> dict[FieldPath, object]:
    """Return the comparable fields of a group.

    Args:
        native_type: Its capacityType.
        data: Data of its launch template; empty without one.
    """
    target = tree(data, _SPECIFICATION, "CapacityReservationTarget")
    identity = target.get(_ID) or target.get(_GROUP)
    if native_type == "CAPACITY_BLOCK":
        return {CAPACITY_TYPE: "reserved", FieldPath(*_FIELD, BLOCK): identity}
    word = str(native_type or "ON_DEMAND")
    if word not in _WORDS:
        return {CAPACITY_TYPE: word}
    if identity:
        return {CAPACITY_TYPE: "reserved", FieldPath(*_FIELD, RESERVATION): identity}
    return {CAPACITY_TYPE: _WORDS[word]}
