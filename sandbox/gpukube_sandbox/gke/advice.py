"""Advice of Compute Engine: whether Spot and flex-start machines are available, their past, and future reservations.

In scope: the three methods of `advice`. Out of scope: HTTP (`transports.door`), counting machines (`stock`). Needs no
Google library.

Sources: google-cloud-compute AdviceClient and its messages; docs: compute/docs/instances/view-vm-availability (bands of
the scores, estimated uptimes, what has a history), compute/docs/instances/future-reservations-calendar-mode-overview
(1 to 90 days). Error messages, and that only one selection of machines is accepted, are unconfirmed.
"""

from __future__ import annotations

import json
import re
import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from gpukube_sandbox.clock import timestamp
from gpukube_sandbox.gke.accelerators import ACCELERATORS
from gpukube_sandbox.gke.machines import find_machine
from gpukube_sandbox.gke.market import offers, spot_usd
from gpukube_sandbox.gke.wire.answers import GoogleError, Json, invalid
from gpukube_sandbox.gke.wire.names import REGIONS, exists, region_of, zones_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from gpukube_sandbox.gke.machines import Machine

    Free = Callable[[str, str, str], int | None]
    """Zone, machine type, kind of stock -> machines that are available now; None without limit."""

ADVICE = re.compile(r"/compute/v1/projects/([^/]+)/regions/([^/]+)/advice/(capacity|capacityHistory|calendarMode)")
"""Project, region, method."""
_KINDS = {"SPOT": "spot", "FLEX_START": "flex"}
"""Provisioning model -> kind of stock. STANDARD is in the enum, but has no advice."""
_SHAPES = ("ANY", "ANY_SINGLE_ZONE", "BALANCED")
_MAX_TYPES = 5
_PLENTY = 1_000_000
_DAY_S = 86400.0
_YEAR_S, _HISTORY_DAYS = 365 * _DAY_S, 30
_MIN_S, _MAX_S = _DAY_S, 90 * _DAY_S
_RESERVABLE = re.compile(r"a[34]-\w+-8g")
"""Machine types of calendar mode; A4X is left out here."""
_DURATION = re.compile(r"(\d+)s")


def answer_advice(path: str, body: bytes, free: Free, now: float) -> Json:
    """Return the response to a POST request.

    Args:
        path: Matches `ADVICE`.
        body: The request's body.
        free: Tells how many machines there are.
        now: The sandbox's time.

    Raises:
        GoogleError: 400 for an unknown region, field value, zone, or machine type.
    """
    found = ADVICE.fullmatch(path)
    if found is None:
        raise GoogleError("NOT_FOUND", f"The resource '{path}' was not found")
    project, region, method = found.groups()
    if region not in REGIONS:
        raise invalid(f"Invalid value for field 'region': '{region}'. Unknown region.")
    sent = _read(body)
    if method == "capacity":
        return _capacity(region, sent, free)
    if method == "capacityHistory":
        return _history(project, region, sent, free, now)
    return _calendar(region, sent, free, now)


def _read(body: bytes) -> Json:
    try:
        sent = json.loads(body or b"{}")
    except ValueError as error:
        raise invalid(f"Parse Error: {error}") from error
    if not isinstance(sent, dict):
        raise invalid("Parse Error: the root element must be a message.")
    return sent


# Capacity


def _capacity(region: str, sent: Json, free: Free) -> Json:
    size = _count(sent, "size")
    model = _text(sent, "instanceProperties.scheduling.provisioningModel")
    if model not in _KINDS:
        raise _wrong("instanceProperties.scheduling.provisioningModel", model, "It must be SPOT or FLEX_START.")
    policy = _object(sent, "distributionPolicy")
    shape = _text(policy, "targetShape") or "ANY"
    if shape not in _SHAPES:
        raise _wrong("distributionPolicy.targetShape", shape, f"It must be one of {', '.join(_SHAPES)}.")
    zones = [_zone(region, _text(one, "zone")) for one in _objects(policy, "zones")] or zones_of(region)
    machines = _selected(sent)
    places = {
        (zone, machine.name): _limited(free(zone, machine.name, _KINDS[model]))
        for zone in zones
        for machine, accelerator in machines
        if offers(zone, accelerator)
    }
    if not places:
        names = ", ".join(machine.name for machine, _ in machines)
        raise invalid(f"Machine type {names} does not exist in zones {', '.join(zones)}.")
    room = {
        zone: sum(count for (at, _), count in places.items() if at == zone) for zone in sorted({z for z, _ in places})
    }
    if shape == "ANY_SINGLE_ZONE":
        best = max(room, key=lambda zone: room[zone])
        available, places = room[best], {place: count for place, count in places.items() if place[0] == best}
    elif shape == "BALANCED":
        available = min(room.values()) * len(room)
    else:
        available = sum(room.values())
    scores = _scores(available, size)
    if model == "FLEX_START":  # the uptime is that of Spot machines (CapacityAdviceResponseRecommendationScores)
        del scores["estimatedUptime"]
    shards: list[Json] = [
        {"zone": zone, "machineType": machine, "instanceCount": count, "provisioningModel": model}
        for (zone, machine), count in _split(places, size, evenly=shape == "BALANCED").items()
    ]
    return {"recommendations": [{"scores": scores, "shards": shards}]}


def _selected(sent: Json) -> list[tuple[Machine, str]]:
    """Return the machines of the one selection, each with its accelerator type; "" for none."""
    field = "instanceFlexibilityPolicy.instanceSelections"
    selections = _object(sent, field)
    if len(selections) != 1:
        raise _wrong(field, f"{len(selections)} selections", "There must be one.")
    (selection,) = selections.values()
    given = selection if isinstance(selection, dict) else {}
    names = given.get("machineTypes")
    if not isinstance(names, list) or not 0 < len(names) <= _MAX_TYPES:
        raise _wrong(f"{field}.machineTypes", str(names), f"There must be 1 to {_MAX_TYPES}.")
    attached = "".join(_text(one, "acceleratorType").rpartition("/")[2] for one in _objects(given, "guestAccelerators"))
    if attached and attached not in ACCELERATORS:
        raise _wrong(f"{field}.guestAccelerators", attached, "There is no such accelerator type.")
    machines = [_machine(f"{field}.machineTypes", str(name)) for name in names]
    return [(machine, machine.accelerator or attached) for machine in machines]


def _scores(available: int, size: int) -> Json:
    """Return scores within the documented bands: high, medium, and low."""
    if available >= 3 * size:
        return {"obtainability": 0.9, "estimatedUptime": "3600s"}
    if available >= size:
        return {"obtainability": 0.5, "estimatedUptime": "600s"}
    return {"obtainability": round(0.3 * available / size, 2), "estimatedUptime": "60s"}


def _split(places: Mapping[tuple[str, str], int], size: int, *, evenly: bool) -> dict[tuple[str, str], int]:
    """Spread machines over places, over those with the most room first; all of them even without room."""
    order = sorted(places, key=lambda place: (-places[place], place))
    if evenly:
        return {place: size // len(order) + (at < size % len(order)) for at, place in enumerate(order) if at < size}
    found: dict[tuple[str, str], int] = {}
    for place in order:
        left = size - sum(found.values())
        if left and places[place]:
            found[place] = min(left, places[place])
    if left := size - sum(found.values()):
        found[order[0]] = found.get(order[0], 0) + left
    return found


# History


def _history(project: str, region: str, sent: Json, free: Free, now: float) -> Json:
    types = sent.get("types")
    if not isinstance(types, list) or not types or not {"PREEMPTION", "PRICE"}.issuperset(types):
        raise _wrong("types", str(types), "It must list PREEMPTION, PRICE, or both.")
    model = _text(sent, "instanceProperties.scheduling.provisioningModel")
    if model != "SPOT":
        raise _wrong("instanceProperties.scheduling.provisioningModel", model, "It must be SPOT.")
    field = "instanceProperties.machineType"
    machine = _machine(field, _text(sent, field))
    if "custom" in machine.name:
        raise _wrong(field, machine.name, "Custom machine types have no history.")
    zone = _zone(region, _text(sent, "locationPolicy.location"))
    if not offers(zone, machine.accelerator):
        raise invalid(f"Machine type {machine.name} does not exist in zone {zone}.")
    found: Json = {
        "machineType": machine.name,
        "location": f"https://www.googleapis.com/compute/v1/projects/{project}/zones/{zone}",
    }
    if "PREEMPTION" in types:
        found["preemptionHistory"] = list(_preemptions(free(zone, machine.name, "spot"), now))
    usd = spot_usd(machine, region)
    if "PRICE" in types and usd:
        # One change in the year, so that a client has to choose.
        change = now - _HISTORY_DAYS * _DAY_S
        found["priceHistory"] = [_price(now - _YEAR_S, change, usd * 1.1), _price(change, now, usd)]
    return found


def _preemptions(left: int | None, now: float) -> Iterable[Json]:
    """Yield daily rates, which are invented: many while there is no stock."""
    today = now // _DAY_S * _DAY_S
    for day in range(_HISTORY_DAYS, 0, -1):
        interval = _interval(today - day * _DAY_S, today - (day - 1) * _DAY_S)
        yield {"interval": interval, "preemptionRate": 0.6 if left == 0 and day == 1 else 0.05}


def _price(start: float, end: float, usd: float) -> Json:
    units, nanos = divmod(round(usd * 1e9), 10**9)
    return {
        "interval": _interval(start, end),
        "listPrice": {"currencyCode": "USD", "units": str(units), "nanos": nanos},
    }


def _interval(start: float, end: float) -> Json:
    return {"startTime": timestamp(start), "endTime": timestamp(end)}


# Calendar mode


@dataclass(frozen=True, slots=True)
class _Window:
    """When machines are wanted: seconds since the Unix epoch, and seconds."""

    earliest: float
    latest: float
    shortest: float
    longest: float


def _calendar(region: str, sent: Json, free: Free, now: float) -> Json:
    specs = _object(sent, "futureResourcesSpecs")
    if len(specs) != 1:
        raise _wrong("futureResourcesSpecs", f"{len(specs)} specifications", "There must be one.")
    ((key, given),) = specs.items()
    spec: Json = given if isinstance(given, dict) else {}
    wanted = _object(spec, "targetResources.specificSkuResources")
    machine, count = _machine("machineType", _text(wanted, "machineType")), _count(wanted, "instanceCount")
    window = _window(_object(spec, "timeRangeSpec"), now)
    preferences = _object(spec, "locationPolicy.locations")
    denied = {_zone(region, name) for name in preferences if _text(preferences, f"{name}.preference") == "DENY"}
    is_possible = window.longest >= _MIN_S and window.shortest <= _MAX_S and window.latest >= now
    others: dict[str, tuple[str, str]] = {}
    for zone in zones_of(region):
        if zone not in denied:
            has_room = _limited(free(zone, machine.name, "reserved")) >= count
            others[zone] = _calendar_status(zone, machine, is_possible=is_possible, has_room=has_room)
    best = next((zone for zone, (status, _) in others.items() if status == "RECOMMENDED"), "")
    others.pop(best, None)
    found: Json = {
        "recommendationId": str(uuid.uuid4()),
        "recommendationType": "FUTURE_RESERVATION",
        "otherLocations": {
            f"zones/{zone}": {"status": status, "details": details} for zone, (status, details) in others.items()
        },
    }
    if best:  # without a location there is no recommendation (FutureResourcesRecommendation.location)
        start = max(window.earliest, now)
        end = start + max(window.shortest, _MIN_S)
        found |= {"location": f"zones/{best}", "startTime": timestamp(start), "endTime": timestamp(end)}
    return {"recommendations": [{"recommendationsPerSpec": {key: found}}]}


def _window(given: Json, now: float) -> _Window:
    window = _Window(
        _time(given, "startTimeNotEarlierThan", now),
        _time(given, "startTimeNotLaterThan", now + _MAX_S),
        _seconds(given, "minDuration", _MIN_S),
        _seconds(given, "maxDuration", _MAX_S),
    )
    if window.earliest > window.latest or window.shortest > window.longest:
        raise invalid("Invalid value for field 'timeRangeSpec': no interval matches the time range.")
    return window


def _calendar_status(zone: str, machine: Machine, *, is_possible: bool, has_room: bool) -> tuple[str, str]:
    """Return the status of a zone, and its details."""
    if not _RESERVABLE.fullmatch(machine.name) or not offers(zone, machine.accelerator):
        return "NOT_SUPPORTED", f"Machine type {machine.name} is not supported in zone {zone}."
    if not is_possible:
        return "CONDITIONS_NOT_MET", "The duration must be 1 to 90 days, and the start in the future."
    if not has_room:
        return "NO_CAPACITY", "There is no capacity within the requested time window."
    return "RECOMMENDED", ""


# Fields


def _limited(count: int | None) -> int:
    return _PLENTY if count is None else count


def _wrong(field: str, value: str, rule: str) -> GoogleError:
    return invalid(f"Invalid value for field 'resource.{field}': '{value}'. {rule}")


def _object(given: Json, path: str) -> Json:
    """Return a nested object; an empty one if it is missing."""
    found: object = given
    for key in path.split("."):
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _objects(given: Json, key: str) -> list[Json]:
    found = given.get(key)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _text(given: Json, path: str) -> str:
    above, _, key = path.rpartition(".")
    return str((_object(given, above) if above else given).get(key) or "")


def _count(given: Json, key: str) -> int:
    text = _text(given, key)  # an int64 is a string in JSON
    if not text.isdecimal() or not int(text):
        raise _wrong(key, text, "It must be a positive number.")
    return int(text)


def _time(given: Json, key: str, default: float) -> float:
    text = _text(given, key)
    if not text:
        return default
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise _wrong(f"timeRangeSpec.{key}", text, "It must be a time of RFC 3339.")
    return found.timestamp()


def _seconds(given: Json, key: str, default: float) -> float:
    text = _text(given, key)
    found = _DURATION.fullmatch(text)
    if text and not found:
        raise _wrong(f"timeRangeSpec.{key}", text, "It must be a duration such as 86400s.")
    return float(found[1]) if found else default


def _zone(region: str, given: str) -> str:
    zone = given.rpartition("zones/")[2]
    if not exists(zone) or region_of(zone) != region:
        raise _wrong("zone", given, f"It must be a zone of {region}, such as zones/{zones_of(region)[0]}.")
    return zone


def _machine(field: str, name: str) -> Machine:
    found = find_machine(name)
    if found is None:
        raise _wrong(field, name, "There is no such machine type.")
    return found
