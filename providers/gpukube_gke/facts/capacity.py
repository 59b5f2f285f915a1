"""Converts Compute Engine's data about free machines to ways to get them: reservations, Spot, flex-start.

In scope: bodies of requests, which machine is sold how, and parsing responses. Out of scope: calls (`live.capacity`).

Sources: google-cloud-compute 1.57.0, AdviceClient and Reservation; docs: compute/docs/instances/view-vm-availability
(bands of the score), compute/docs/instances/future-reservations-calendar-mode-overview (1 to 90 days),
compute/docs/accelerator-optimized-machines (purchase options); GKE cluster autoscaler, machinetypes (no DWS for
a3-edgegpu).
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gpukube.core.capacity_sources import PAID, Way, band
from gpukube.core.jsontree import decimal, number, text, tree, trees
from gpukube.core.reservations import RUNS_ON, LiveReservation
from gpukube.gpu.attached import ATTACHED, find_host, usual_host
from gpukube_gke.facts.listings import scoped

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from gpukube.core.capacity_sources import Known
    from gpukube.gpu.machine import Machine

Json = dict[str, object]
SPOT: Final = "SPOT"
FLEX: Final = "FLEX_START"
BY_DWS: Final = ("flexStart", "queued", "flexStartQueued")
WITHOUT_DWS: Final = "a3-edgegpu-"
RESERVED_ONLY: Final = re.compile(r"a4x-.*")
"""Machines of the reservation-bound provisioning model, the only way to get them (docs:
ai-hypercomputer/docs/create/gke-ai-hypercompute; ai-hypercomputer/docs/create/create-mig-with-a4x)."""
SHARED_ONLY: Final = re.compile(r"a3-highgpu-[124]g(-nolssd)?")
"""Machines that are available as Spot and with flex-start only."""
NOT_ON_DEMAND: Final = re.compile(r"(a3-ultragpu|a4)-.*")
"""Machines that are available in every way except on demand."""
SHORTEST_BLOCK_S: Final = 86_400
LONGEST_BLOCK_S: Final = 90 * 86_400
"""Bounds of a reservation in calendar mode."""
_CALENDAR: Final = re.compile(r"a[34]x?-.*")
"""Machines that may be available in calendar mode; Google reports it for each zone."""
_RESERVATIONS: Final = "reservations"
_CALENDAR_MODE: Final = "CALENDAR"
"""Mode of a reservation that ends with its machines; in others they run on (google.cloud.compute ReservationMode)."""
_LIKELY: Final = 0.7
_POSSIBLE: Final = 0.4
"""Lower bounds of Google's own bands high and medium."""
_MARKET: Final = "Compute Engine advice.capacityHistory"
_FLEX: Final = "for an autoscaled pool, for at most 7 days"
_KEY: Final = "gpukube"
"""Name of the one selection or specification of a request; names are the caller's."""
_HOUR_S: Final = 3600
_NANO: Final = 1e-9


def is_sold(name: str, option: str) -> bool:
    """Return whether Google sells a machine type in a way: "spot", "flexStart", "queued", "reservation", "on-demand".

    Only restrictions of a type are known here; zones and projects have others.
    """
    if RESERVED_ONLY.fullmatch(name):
        return option == "reservation"
    if SHARED_ONLY.fullmatch(name):
        return option in ("spot", *BY_DWS)
    if option in BY_DWS:
        return not name.startswith(WITHOUT_DWS)
    return option != "on-demand" or not NOT_ON_DEMAND.fullmatch(name)


def can_be_calendar(name: str) -> bool:
    """Return whether a machine type may be available in calendar mode."""
    return _CALENDAR.fullmatch(name) is not None


def machine_type(machine: Machine) -> str:
    """Return the machine type to query; GPUs without one are attached to the usual machine."""
    return usual_host(machine.gpus).name if machine.name == ATTACHED else machine.name


def is_attached(machine: Machine) -> bool:
    """Return whether the GPUs are attached to a machine that has none of its own."""
    return machine.name == ATTACHED or find_host(machine.name) is not None


def list_filter(names: Iterable[str]) -> str:
    """Return the filter of a list for some names: a regular expression for the whole name."""
    return f'name eq "{"|".join(sorted(set(names)))}"'


def read_zones(pages: Iterable[Mapping[str, object]], region: str, kind: str) -> dict[str, tuple[str, ...]]:
    """Parse an aggregated list: name -> zones of the region that have it.

    Args:
        pages: Of machineTypes.aggregatedList or acceleratorTypes.aggregatedList.
        region: The region.
        kind: "machineTypes" or "acceleratorTypes".
    """
    found: dict[str, set[str]] = {}
    for zone, item in scoped(pages, region, kind):
        found.setdefault(text(item, "name"), set()).add(zone)
    return {name: tuple(sorted(zones)) for name, zones in found.items()}


def read_reservations(
    pages: Iterable[Mapping[str, object]], region: str, machine: Machine, nodes: int
) -> Iterator[Way]:
    """Parse the reservations of a region that a machine fits.

    Args:
        pages: Of reservations.aggregatedList.
        region: The region.
        machine: The machine.
        nodes: Number of nodes that are needed.
    """
    for zone, item in scoped(pages, region, _RESERVATIONS):
        if _fits(item, machine):
            yield _reservation(item, zone, machine, nodes)


def _fits(item: Mapping[str, object], machine: Machine) -> bool:
    reserved = tree(item, "specificReservation", "instanceProperties")
    gpus = [
        (text(one, "acceleratorType"), number(one, "acceleratorCount")) for one in trees(reserved, "guestAccelerators")
    ]
    if text(reserved, "machineType") != machine.name:
        return False
    return not is_attached(machine) or (machine.accelerator, machine.devices) in gpus


def _reservation(item: Mapping[str, object], zone: str, machine: Machine, nodes: int) -> Way:
    counts = tree(item, "specificReservation")
    total = _total(counts)
    free, status = max(0, total - number(counts, "inUseCount")), text(item, "status")
    ready, end = status == "READY", text(item, "deleteAtTime")
    notes = [] if item.get("specificReservationRequired") else ["any matching machine of the project may take it"]
    notes += ["Google may end its machines with it"] if end else []
    return Way(
        kind="reservation",
        machine=machine.name,
        zone=zone,
        known=("free" if free >= nodes else "none") if ready else "not told",
        free=free if ready else 0,
        words=f"{free} of {total} free" if ready else status.lower(),
        why="" if ready else f"its status is {status or 'unknown'}",
        usd=0.0,
        price_source=PAID,
        end=end,
        form="reservation",
        id=text(item, "name"),
        note="; ".join(notes),
    )


def read_reserved(
    pages: Iterable[Mapping[str, object]], name: str, region: str, zones: Collection[str]
) -> LiveReservation | None:
    """Parse the reservation that a pool names: one in each zone of the pool; None if there is none.

    Args:
        pages: Of reservations.aggregatedList.
        name: Name of the reservation.
        region: Region of the cluster.
        zones: Zones of the pool; empty for all of the region.
    """
    found = [
        item
        for zone, item in scoped(pages, region, _RESERVATIONS)
        if (not zones or zone in zones) and text(item, "name") == name
    ]
    if not found:
        return None
    counts = [tree(item, "specificReservation") for item in found if text(item, "status") == "READY"]
    with_machines = any(text(item, "reservationMode") == _CALENDAR_MODE for item in found)
    return LiveReservation(
        id=name,
        total=sum(_total(one) for one in counts),
        used=sum(number(one, "inUseCount") for one in counts),
        active=bool(counts),
        end=min(filter(None, (text(item, "deleteAtTime") for item in found)), default=""),
        at_end="Google ends its machines with it" if with_machines else RUNS_ON,
    )


def _total(counts: Mapping[str, object]) -> int:
    return number(counts, "assuredCount") or number(counts, "count")


def advice_body(machine: Machine, zone: str, nodes: int, model: str) -> Json:
    """Return the body of advice.capacity for one machine type in one zone: Google accepts one selection.

    Args:
        machine: The machine.
        zone: The zone.
        nodes: Number of nodes.
        model: SPOT or FLEX_START; Google advises on no other.
    """
    selection: Json = {"machineTypes": [machine_type(machine)]}
    if is_attached(machine):
        gpus = {"acceleratorType": machine.accelerator, "acceleratorCount": machine.devices}
        selection["guestAccelerators"] = [gpus]
    return {
        "size": nodes,
        "instanceProperties": {"scheduling": {"provisioningModel": model}},
        "instanceFlexibilityPolicy": {"instanceSelections": {_KEY: selection}},
        "distributionPolicy": {"targetShape": "ANY_SINGLE_ZONE", "zones": [{"zone": f"zones/{zone}"}]},
    }


def read_scores(answer: Mapping[str, object]) -> tuple[float, int] | None:
    """Parse advice.capacity: obtainability, and estimated uptime in seconds, 0 without one; None without a score."""
    scores = tree(answer, "recommendations", 0, "scores")
    score = decimal(scores, "obtainability")
    return None if score is None else (score, int(decimal(text(scores, "estimatedUptime").removesuffix("s")) or 0))


def scored_way(machine: str, zone: str, model: str, scores: tuple[float, int] | None, usd: float | None) -> Way:
    """Return Spot or flex-start machines of one type in one zone.

    Args:
        machine: The machine type.
        zone: The zone.
        model: SPOT or FLEX_START.
        scores: As `read_scores` returns them; None without any.
        usd: Current price per hour of one node; None if unknown.
    """
    bare = flex_way(machine, zone) if model == FLEX else Way(kind="spot", machine=machine, zone=zone)
    way = replace(bare, usd=usd, price_source=_MARKET if usd is not None else "")
    if scores is None:
        return replace(way, why="Google returned no score for this zone")
    score, uptime = scores
    words = f"{score:g}, {_duration(uptime)}" if uptime else f"{score:g}"
    return replace(way, known=band(score, _LIKELY, _POSSIBLE), words=words)


def flex_way(machine: str, zone: str, not_asked: str = "") -> Way:
    """Return flex-start machines of one type in one zone; of an autoscaled pool (docs: kubernetes-engine/concepts/dws).

    Args:
        machine: The machine type.
        zone: The zone.
        not_asked: Why Google was not asked; "" if it was.
    """
    known: Known = "not asked" if not_asked else "not told"
    return Way(kind="flex-start", machine=machine, zone=zone, known=known, why=not_asked, form="flexStart", note=_FLEX)


def _duration(seconds: int) -> str:
    return f"~{seconds / _HOUR_S:g} h" if seconds >= _HOUR_S else f"~{seconds / 60:.0f} min"


def history_body(machine: Machine, zone: str) -> Json:
    """Return the body of advice.capacityHistory for the Spot prices of a machine type."""
    return {
        "types": ["PRICE"],
        "instanceProperties": {"machineType": machine.name, "scheduling": {"provisioningModel": SPOT}},
        "locationPolicy": {"location": f"zones/{zone}"},
    }


def has_history(machine: Machine) -> bool:
    """Return whether Google keeps a history for a machine: not for attached GPUs."""
    return not is_attached(machine)


def read_history(answer: Mapping[str, object]) -> float | None:
    """Parse advice.capacityHistory: the newest price in US dollars per hour; None if there is none."""
    records = sorted(trees(answer, "priceHistory"), key=lambda record: text(record, "interval", "startTime"))
    if not records or text(records[-1], "listPrice", "currencyCode") != "USD":
        return None
    price = tree(records[-1], "listPrice")
    return number(price, "units") + number(price, "nanos") * _NANO or None


def calendar_body(machine: Machine, nodes: int, seconds: int, span: tuple[str, str], denied: Collection[str]) -> Json:
    """Return the body of advice.calendarMode.

    Args:
        machine: The machine.
        nodes: Number of nodes.
        seconds: How long they are needed.
        span: Earliest and latest start, RFC 3339.
        denied: Zones that must not be recommended.
    """
    duration = f"{max(seconds, SHORTEST_BLOCK_S)}s"
    spec: Json = {
        "targetResources": {
            "specificSkuResources": {"machineType": machine_type(machine), "instanceCount": str(nodes)}
        },
        "timeRangeSpec": {
            "startTimeNotEarlierThan": span[0],
            "startTimeNotLaterThan": span[1],
            "minDuration": duration,
            "maxDuration": duration,
        },
    }
    if denied:
        spec["locationPolicy"] = {"locations": {f"zones/{zone}": {"preference": "DENY"} for zone in sorted(denied)}}
    return {"futureResourcesSpecs": {_KEY: spec}}


def read_calendar(
    answer: Mapping[str, object], machine: str, nodes: int, project: str, among: Sequence[str] = ()
) -> list[Way]:
    """Parse advice.calendarMode: the recommended zone, and those without machines.

    Args:
        answer: The response.
        machine: The machine type.
        nodes: Number of nodes.
        project: Project that would buy.
        among: Zones to show; () for all.
    """
    found = tree(answer, "recommendations", 0, "recommendationsPerSpec", _KEY)
    start, end, zone = text(found, "startTime"), text(found, "endTime"), text(found, "location").rpartition("/")[2]
    ways = []
    if zone:
        ways.append(
            Way(
                kind="block",
                machine=machine,
                zone=zone,
                known="offered",
                words=f"{nodes} in calendar mode",
                start=start,
                end=end,
                form="reservation",
                id=text(found, "recommendationId"),
                buy=_purchase(machine, zone, nodes, project, (start, end)),
                note="Google ends its machines with it",
            )
        )
    ways += _elsewhere(machine, tree(found, "otherLocations"))
    shown = [way for way in ways if not among or way.zone in among]
    return shown or [Way(kind="block", machine=machine, known="none", words="no recommendation")]


def _elsewhere(machine: str, locations: Mapping[str, object]) -> Iterator[Way]:
    for location, told in sorted(locations.items()):
        zone, status, details = location.rpartition("/")[2], text(told, "status"), text(told, "details").rstrip(".")
        if status == "NO_CAPACITY":
            yield Way(kind="block", machine=machine, zone=zone, known="none", words=details or "no capacity")
        elif status == "CONDITIONS_NOT_MET":
            yield Way(kind="block", machine=machine, zone=zone, why=details or "the conditions are not met")


def _purchase(machine: str, zone: str, nodes: int, project: str, span: tuple[str, str]) -> str:
    """Return the command that requests the reservation; it cannot be canceled once it is approved."""
    start, end = span
    name = f"{machine}-{start[:10]}"
    return (
        f"gcloud compute future-reservations create {name} --project {project} --zone {zone} --machine-type {machine} "
        f"--total-count {nodes} --start-time {start} --end-time {end} --reservation-mode CALENDAR "
        f"--reservation-name {name} --deployment-type DENSE --require-specific-reservation "
        "--auto-delete-auto-created-reservations --planning-status SUBMITTED"
    )
