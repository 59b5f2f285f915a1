"""Converts how the machines of a pool are bought (Spot, a reservation, flex-start, or queued) to the wire and back.

In scope: `Target.capacity` on GKE. Out of scope: valid combinations (`rules.capacity`).

GKE has no single field for this; it follows from four (google.container.v1 NodeConfig.spot, flex_start,
reservation_affinity and NodePool.queued_provisioning). Flex-start and queued pools use no reservation, have no
node repair (machines that wait for capacity cannot be recreated at will), and are upgraded in their own way, so no
surge is sent (docs: kubernetes-engine/how-to/provisioningrequest, concepts/dws; GoogleCloudPlatform/cluster-toolkit,
modules/compute/gke-node-pool).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpukube.core.fields import CAPACITY_TYPE, FieldPath
from gpukube.core.jsontree import at, strings, tree

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Target

AFFINITY: Final = "config.reservationAffinity.consumeReservationType"
RESERVATION_KEY: Final = "compute.googleapis.com/reservation-name"
"""google.container.v1 ReservationAffinity.key."""
LONGEST_RUN_S: Final = 7 * 86400
"""Seven days; also Google's default (docs: kubernetes-engine/concepts/dws)."""

_RESERVED: Final = re.compile(
    r"reservation (?:projects/(?P<project>[^/]+)/reservations/)?(?P<name>[^/, ]+)(?:/reservationBlocks/.+)?"
)
_FLEX: Final = ("flexStart", "flexStartQueued")
_QUEUED: Final = ("queued", "flexStartQueued")
FORM_FIELD: Final = FieldPath("capacity", "reserved", "gke")
RUN_FIELD: Final = FieldPath("capacity", "reserved", "gke", "maxRunDuration")


def reservation_form(target: Target) -> str:
    """Return the form of reserved capacity: "reservation", "flexStart", "queued", "flexStartQueued"; "" for others."""
    found = target.capacity.reservation
    return found.form if found and target.capacity.type == "reserved" else ""


def is_short_lived(target: Target) -> bool:
    """Return whether machines start when Google has capacity, and end after a time."""
    return is_flex_start(target) or is_queued(target)


def is_flex_start(target: Target) -> bool:
    """Return whether the machines are bought by flex-start, queued or not."""
    return reservation_form(target) in _FLEX


def is_queued(target: Target) -> bool:
    """Return whether nodes start only for a ProvisioningRequest."""
    return reservation_form(target) in _QUEUED


def translate_buying(target: Target) -> dict[str, object]:
    """Return the part of a node pool that sets how its machines are bought."""
    form, found = reservation_form(target), target.capacity.reservation
    if target.capacity.type == "spot":
        return {"config": {"spot": True}}
    if form == "reservation" and found:
        name = _full_name(target, found.id)
        affinity = {"consumeReservationType": "SPECIFIC_RESERVATION", "key": RESERVATION_KEY, "values": [name]}
        return {"config": {"reservationAffinity": affinity}}
    if not is_short_lived(target) or found is None:
        return {}
    config: dict[str, object] = {"reservationAffinity": {"consumeReservationType": "NO_RESERVATION"}}
    if found.max_run_s is not None:
        config["maxRunDuration"] = f"{found.max_run_s}s"
    return {
        "config": config | ({"flexStart": True} if is_flex_start(target) else {}),
        **({"queuedProvisioning": {"enabled": True}} if is_queued(target) else {}),
    }


def buying_fields(target: Target) -> dict[FieldPath, object]:
    """Return the comparable fields; the maximum run duration is the default and never a field."""
    form, found = reservation_form(target), target.capacity.reservation
    fields: dict[FieldPath, object] = {CAPACITY_TYPE: target.capacity.type}
    if found and form:
        fields[FORM_FIELD] = _shown(form, _full_name(target, found.id))
    if found and is_short_lived(target) and found.max_run_s not in (None, LONGEST_RUN_S):
        fields[RUN_FIELD] = f"{found.max_run_s}s"
    return fields


def observe_buying(pool: Mapping[str, object], config: Mapping[str, object]) -> dict[FieldPath, object]:
    """Read the comparable fields of a live pool.

    Args:
        pool: The pool in the JSON form of google.container.v1.
        config: Its node config.
    """
    affinity = tree(config, "reservationAffinity")
    if at(pool, "queuedProvisioning", "enabled"):
        return _short_lived("flexStartQueued" if config.get("flexStart") else "queued", config)
    if config.get("flexStart"):
        return _short_lived("flexStart", config)
    if affinity.get("consumeReservationType") == "SPECIFIC_RESERVATION":
        name = ", ".join(strings(affinity, "values"))
        return {CAPACITY_TYPE: "reserved", FORM_FIELD: _shown("reservation", name)}
    if config.get("preemptible"):  # ends after 24 hours, unlike Spot (google.container.v1 NodeConfig.spot)
        return {CAPACITY_TYPE: "preemptible"}
    return {CAPACITY_TYPE: "spot" if config.get("spot") else "on-demand"}


def reserved_name(fields: Mapping[FieldPath, object]) -> tuple[str, str]:
    """Return the project and the name of the reservation in the fields of a pool; "" for the cluster's, and for none.

    A block has no counts of its own: its machines are among those of its reservation.
    """
    found = _RESERVED.fullmatch(str(fields.get(FORM_FIELD) or ""))
    return (found["project"] or "", found["name"]) if found else ("", "")


def _short_lived(form: str, config: Mapping[str, object]) -> dict[FieldPath, object]:
    run = config.get("maxRunDuration")
    fields: dict[FieldPath, object] = {CAPACITY_TYPE: "reserved", FORM_FIELD: form}
    return fields | ({RUN_FIELD: run} if run and run != f"{LONGEST_RUN_S}s" else {})


def _full_name(target: Target, name: str) -> str:
    """A block requires the full name of its reservation (GoogleCloudPlatform/cluster-toolkit#5043)."""
    if "/reservationBlocks/" not in name or name.startswith("projects/"):
        return name
    return f"projects/{target.cluster.identity['project']}/reservations/{name}"


def _shown(form: str, name: str) -> str:
    return f"{form} {name}" if name else form
