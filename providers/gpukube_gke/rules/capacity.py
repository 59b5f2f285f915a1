"""Checks purchase options: reservations, flex-start, queued provisioning, and machines not available on demand.

In scope: checks of `capacity` that GKE and Compute Engine add. Out of scope: requiring exactly one option
(`gpukube.spec.rules`), native fields next to it (`combinations`), sending it (`pool.purchase`).

Sources: GoogleCloudPlatform/cluster-toolkit, modules/compute/gke-node-pool, preconditions (flex-start is autoscaled,
queued pools start at zero); docs: kubernetes-engine/concepts/dws (seven days), kubernetes-engine/how-to/gpus (zones
of a reservation).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.errors import Finding
from gpukube_gke.facts.capacity import NOT_ON_DEMAND, RESERVED_ONLY, SHARED_ONLY, WITHOUT_DWS, is_sold
from gpukube_gke.facts.places import is_zone
from gpukube_gke.pool.purchase import LONGEST_RUN_S, is_flex_start, is_queued, is_short_lived, reservation_form

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator

    from gpukube.core.values import Target

_FLEX: Final = "capacity.reserved.gke.flexStart"
_QUEUED: Final = "capacity.reserved.gke.queued"
_SELDOM_SOLD: Final[tuple[tuple[re.Pattern[str], str, str], ...]] = (
    (
        SHARED_ONLY,
        "is available as Spot and with flex-start only",
        "write capacity.type: spot, or reserved with flexStart, or use a3-highgpu-8g",
    ),
    (
        NOT_ON_DEMAND,
        "is not available on demand",
        "write capacity.type: reserved with a reservation or flexStart, or spot",
    ),
)
"""Machine pattern, message for a purchase option that it does not have, fix."""


def check_reserved(target: Target) -> Iterator[Finding]:
    """Report purchase options that cannot work, or rarely do."""
    form = reservation_form(target)
    if form == "reservation":
        location = target.cluster.identity["location"]
        if len(target.zones) != 1 and not (not target.zones and is_zone(location)):
            given = f"has {len(target.zones)}" if target.zones else "is not set"
            yield Finding(
                "gke-reservation-zone",
                target.locator.at("zones"),
                f"a reservation is in one zone, but zones {given}",
                fix="write zones: [ZONE] with the zone of the reservation",
                why="in other zones GKE returns: reservation not found for node pool at zone (cluster-toolkit#5043)",
                severity="warning",
            )
    if is_short_lived(target):
        yield from _short_lived(target, _FLEX if is_flex_start(target) else _QUEUED)
    if is_flex_start(target) and not target.nodes.autoscaled:
        yield Finding(
            "gke-flex-start",
            target.locator.at("nodes"),
            "flex-start needs an autoscaled pool, but nodes.count is a fixed size",
            fix="write nodes: {autoscaling: {min: 0, max: N}}",
            why="nodes start when capacity is available, not when the pool is created",
        )
    elif is_queued(target) and not (target.nodes.autoscaled and target.nodes.count == target.nodes.minimum == 0):
        yield Finding(
            "gke-queued",
            target.locator.at("nodes"),
            "queued provisioning needs an autoscaled pool that starts at zero",
            fix="write nodes: {autoscaling: {min: 0, max: N}}",
            why="the nodes start only for a ProvisioningRequest, all at once",
        )
    yield from _on_demand(target, form)


def _short_lived(target: Target, path: str) -> Iterator[Finding]:
    found = target.capacity.reservation
    if target.machine.name.startswith(WITHOUT_DWS):
        yield Finding(
            "gke-flex-start",
            target.locator.at(path),
            f"{target.machine.name} is available neither with flex-start nor queued",
            fix="write capacity.type: on-demand, or use a3-highgpu-8g",
        )
    if found and found.max_run_s is not None and found.max_run_s > LONGEST_RUN_S:
        yield Finding(
            "gke-run-duration",
            target.locator.at(f"{path}.maxRunDuration"),
            f"maxRunDuration is {_days(found.max_run_s)}, longer than such a node may run",
            fix="write 7d or less",
        )


def _days(seconds: int) -> str:
    return f"{seconds} seconds" if seconds % 3600 else f"{seconds / 86400:.3g} days"


def _on_demand(target: Target, form: str) -> Iterator[Finding]:
    if RESERVED_ONLY.fullmatch(target.machine.name) and form != "reservation":
        yield Finding(
            "gke-reservation-only",
            target.locator.at("capacity.type"),
            f"{target.machine.name} is available with a reservation only, not on demand, as Spot or with flex-start",
            fix="write capacity: {type: reserved, reserved: {gke: {reservation: NAME}}}",
            why="other provisioning models are not supported (docs: ai-hypercomputer/docs/create/gke-ai-hypercompute)",
        )
    for pattern, message, fix in _SELDOM_SOLD:
        name = target.machine.name
        if pattern.fullmatch(name) and not is_sold(name, form or target.capacity.type):
            yield Finding(
                "gke-on-demand",
                target.locator.at("capacity.type"),
                f"{name} {message}",
                fix=fix,
                severity="warning",
            )
