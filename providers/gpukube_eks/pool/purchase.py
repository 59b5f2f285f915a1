"""How the machines of a node group are bought: capacityType, and the parts of its launch template that go with it.

In scope: from the capacity of a spec to the wire and back. Out of scope: what EKS refuses of it
(`rules.capacity`), what is known of a live reservation (`placement`).

A Capacity Block stands in the launch template together with its market and the one instance type, a reservation alone
(docs: eks/capacity-blocks-mng; EC2 LaunchTemplateCapacityReservationSpecificationRequest). Without a target EC2 takes
any open reservation that fits, which is the default.
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
    """Name the capacityType; a reservation is bought on demand."""
    return "CAPACITY_BLOCK" if is_block(capacity) else "SPOT" if capacity.type == "spot" else "ON_DEMAND"


def is_block(capacity: Capacity) -> bool:
    """Return whether it is a Capacity Block, whose instance type stands in the launch template."""
    return capacity.reservation is not None and capacity.reservation.form == BLOCK


def bought_data(target: Target, *, afresh: bool = True) -> dict[str, object]:
    """Write the members of the launch template's data.

    Args:
        target: A checked pool.
        afresh: Of a first version; a later one can replace a member and not drop it.
    """
    reservation = target.capacity.reservation
    if reservation is None:
        return {} if afresh else dict(_OPEN)
    data: dict[str, object] = {
        _SPECIFICATION: {
            "CapacityReservationTarget": {_GROUP if reservation.id.startswith("arn:") else _ID: reservation.id}
        }
    }
    if is_block(target.capacity):
        data |= {"InstanceMarketOptions": {"MarketType": "capacity-block"}, "InstanceType": target.machine.name}
    return data


def capacity_fields(capacity: Capacity) -> dict[FieldPath, object]:
    """Name the comparable fields of a wanted capacity."""
    found: dict[FieldPath, object] = {CAPACITY_TYPE: capacity.type}
    if capacity.reservation is not None:
        found[FieldPath(*_FIELD, capacity.reservation.form)] = capacity.reservation.id
    return found


def read_capacity(native_type: object, data: Mapping[str, object]) -> dict[FieldPath, object]:
    """Read the comparable fields of a group.

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
