"""Converts Azure's data about free machines to ways to get them: reservations, Spot, what the subscription may use.

In scope: bodies of requests, and parsing responses. Out of scope: calls (`live.capacity`), and prices.

Sources: azure-mgmt-compute 39.0.0, ResourceSku and CapacityReservationGroup; azure-mgmt-computerecommender 1.0.0b3,
SpotPlacementScoresInput; docs: virtual-machine-scale-sets/spot-placement-score (scores),
virtual-machines/capacity-reservation-overallocate (a full group does not refuse).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpukube.core.capacity_sources import PAID, Way
from gpukube.core.jsontree import items, number, strings, text, tree, trees
from gpukube.core.reservations import RUNS_ON, LiveReservation

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from gpukube.core.capacity_sources import Known

Json = dict[str, object]
FORM: Final = "capacityReservationGroup"
_SCORES: Final[Mapping[str, Known]] = {
    "high": "likely",
    "medium": "possible",
    "low": "unlikely",
    "restrictedsku": "none",
}
"""Score in lower-case letters -> class; others, such as "Data Not Found", mean nothing."""
_GROUP: Final = re.compile(
    r"/subscriptions/[0-9A-Fa-f-]{36}/resource[Gg]roups/[\w().-]+"
    r"/providers/[Mm]icrosoft\.[Cc]ompute/[Cc]apacity[Rr]eservation[Gg]roups/[\w.-]+"
)
_BLOCK: Final = "Block"
_OPEN: Final = "Open"


@dataclass(frozen=True, slots=True)
class Sold:
    """Where a subscription may use a size.

    Attributes:
        zones: Zones of the region; ("",) in a region without zones, () if the size is not for this subscription.
        is_block: Whether Azure reserves the size in blocks.
        note: What the subscription may not use; "" for nothing.
    """

    zones: tuple[str, ...]
    is_block: bool = False
    note: str = ""


def read_sold(skus: Iterable[Mapping[str, object]], sizes: Iterable[str], region: str) -> dict[str, Sold]:
    """Parse Resource SKUs: size -> where the subscription may use it; a size that the region lacks is not in it.

    Args:
        skus: Items of the list.
        sizes: Sizes to look for.
        region: The region.
    """
    wanted = {size.lower(): size for size in sizes}
    found = {}
    for item in skus:
        size = wanted.get(text(item, "name").lower())
        if size is not None and text(item, "resourceType").lower() == "virtualmachines":
            found[size] = _sold(item, size, region)
    return found


def _sold(item: Mapping[str, object], size: str, region: str) -> Sold:
    zones = tuple(sorted(strings(item, "locationInfo", 0, "zones"))) or ("",)
    kinds = [text(one, "value") for one in trees(item, "capabilities") if one.get("name") == _RESERVABLE]
    is_block = any(_BLOCK in kind for kind in kinds)
    barred: set[str] = set()
    for restriction in trees(item, "restrictions"):
        if text(restriction, "type") == "Location":
            reason = text(restriction, "reasonCode") or "restricted"
            return Sold((), is_block, f"{size} is not available to the subscription in {region} ({reason})")
        barred.update(strings(restriction, "restrictionInfo", "zones"))
    if not barred & set(zones):
        return Sold(zones, is_block)
    note = f"{size} is not available to the subscription in zones {', '.join(sorted(barred))} of {region}"
    return Sold(tuple(zone for zone in zones if zone not in barred), is_block, note)


_RESERVABLE: Final = "SupportedCapacityReservationTypes"


def scores_body(region: str, sizes: Sequence[str], nodes: int, *, zonal: bool) -> Json:
    """Return the body of placementScores/spot/generate; at most five sizes."""
    return {
        "desiredLocations": [region],
        "desiredSizes": [{"sku": size} for size in sizes],
        "desiredCount": nodes,
        "availabilityZones": zonal,
    }


def read_scores(answer: Mapping[str, object]) -> dict[tuple[str, str], tuple[str, bool]]:
    """Parse Spot placement scores: size in lower case and zone -> score, and whether the quota covers the request."""
    return {
        (text(one, "sku").lower(), text(one, "availabilityZone")): (
            text(one, "score"),
            one.get("isQuotaAvailable") is not False,
        )
        for one in trees(answer, "placementScores")
    }


def spot_way(size: str, zone: str, score: tuple[str, bool] | None) -> Way:
    """Return Spot machines of one size in one zone.

    Args:
        size: The size.
        zone: The zone; "" for the region.
        score: As in `read_scores`; None without one.
    """
    words, has_quota = score or ("", True)
    known = _SCORES.get(re.sub("[^a-z]", "", words.lower()), "not told")
    why = "Azure has no score for it" if known == "not told" else ""
    note = "" if has_quota else "Azure reports that the quota is too small"
    return Way(kind="spot", machine=size, zone=zone, known=known, words=words, why=why, note=note)


def is_group(identity: str) -> bool:
    """Return whether a text is the id of a capacity reservation group, and so can be part of an address."""
    return _GROUP.fullmatch(identity) is not None


def read_groups(found: Iterable[Mapping[str, object]], region: str) -> list[str]:
    """Parse capacity reservation groups: the ids of those in a region."""
    here = [text(item, "id") for item in found if _plain(text(item, "location")) == _plain(region)]
    return [identity for identity in here if is_group(identity)]


def read_reservations(
    group: Mapping[str, object], listed: Iterable[Mapping[str, object]], sizes: Iterable[str], nodes: int, today: str
) -> list[Way]:
    """Parse the reservations of a group that have one of these sizes.

    Args:
        group: The group with its instance view.
        listed: Its reservations.
        sizes: The sizes.
        nodes: Number of nodes that are needed.
        today: Date in UTC, "2026-06-27".
    """
    wanted = {size.lower(): size for size in sizes}
    views, ways = _views(group), []
    for item in listed:
        size = wanted.get(text(item, "sku", "name").lower())
        if size is not None:
            view = views.get(text(item, "name").lower(), {})
            ways.append(_reservation(group, item, tree(view, "utilizationInfo"), size, nodes, today))
    return ways


def _reservation(  # noqa: PLR0913, PLR0917 - a reservation is described in three places
    group: Mapping[str, object],
    item: Mapping[str, object],
    use: Mapping[str, object],
    size: str,
    nodes: int,
    today: str,
) -> Way:
    kind = text(group, "properties", "reservationType")
    total = _total(item, use)
    free = max(0, total - len(items(use, "virtualMachinesAllocated")))
    schedule = tree(item, "properties", "scheduleProfile")
    start, why = text(schedule, "start"), ""
    if start > today:
        why = f"it starts on {start}"
    elif kind == _OPEN:
        why = "Azure does not report how many machines of an open reservation are used"
    elif not use:
        why = "its use could not be read"
    is_full = not why and free < nodes and kind != _BLOCK
    return Way(
        kind="block" if kind == _BLOCK else "reservation",
        machine=size,
        zone="".join(strings(item, "zones")[:1]),
        known="not told" if why else "free" if free >= nodes else "none",
        free=0 if why else free,
        words=f"{total} reserved" if why else f"{free} of {total} free",
        why=why,
        usd=0.0,
        price_source=PAID,
        start=start if start > today else "",
        end=text(schedule, "end"),
        form=FORM,
        id=text(group, "id"),
        note="a full group does not refuse: Azure takes further machines on demand" if is_full else "",
    )


def read_reserved(
    group: Mapping[str, object], listed: Iterable[Mapping[str, object]], size: str, zones: Collection[str], today: str
) -> LiveReservation | None:
    """Parse the reservations of a group that a pool uses; None if it has none, or their use is unknown.

    Args:
        group: The group with its instance view.
        listed: Its reservations.
        size: VM size of the pool.
        zones: Zones of the pool; empty for a pool without zones.
        today: Date in UTC, "2026-06-27".
    """
    views = _views(group)
    usable = [
        item
        for item in listed
        if text(item, "sku", "name").lower() == size.lower() and _serves(strings(item, "zones"), zones)
    ]
    uses = [tree(views.get(text(item, "name").lower()), "utilizationInfo") for item in usable]
    kind = text(group, "properties", "reservationType")
    if not usable or not all(uses) or kind == _OPEN:
        return None
    begun = [text(item, "properties", "scheduleProfile", "start") <= today for item in usable]
    ends = [text(item, "properties", "scheduleProfile", "end") for item in usable]
    return LiveReservation(
        id=text(group, "name") or text(group, "id").rpartition("/")[2],
        total=sum(_total(item, use) for item, use, has_begun in zip(usable, uses, begun, strict=True) if has_begun),
        used=sum(len(items(use, "virtualMachinesAllocated")) for use in uses),
        active=any(begun),
        end=min(filter(None, ends), default=""),
        at_end="Azure may end its machines with it" if kind == _BLOCK else RUNS_ON,
    )


def _serves(reserved: Collection[str], zones: Collection[str]) -> bool:
    """Return whether a reservation in one zone, or in none, is for a pool in these zones, or in none."""
    return {*reserved} <= {*zones} if reserved else not zones


def _views(group: Mapping[str, object]) -> dict[str, Mapping[str, object]]:
    """Return the instance views of a group's reservations by name in lower case."""
    found = trees(group, "properties", "instanceView", "capacityReservations")
    return {text(one, "name").lower(): one for one in found}


def _total(item: Mapping[str, object], use: Mapping[str, object]) -> int:
    return number(use, "currentCapacity") or number(item, "sku", "capacity")


def _plain(location: str) -> str:
    """Return a location as ARM compares it: "East US" is eastus."""
    return location.replace(" ", "").lower()
