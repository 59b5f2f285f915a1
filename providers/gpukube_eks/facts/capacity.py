"""Converts EC2's data about free machines to ways to get them: reservations, Capacity Blocks, Spot.

In scope: filters, legal durations, and parsing items. Out of scope: calls (`live.capacity`), prices on demand.

Sources: botocore ec2/2016-11-15 (DescribeCapacityReservations, DescribeCapacityBlockOfferings, GetSpotPlacementScores);
docs: AWSEC2 capacity-blocks-purchase, capacity-blocks-how, capacity-reservations-using, spot-placement-score;
eks/capacity-blocks-mng.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from gpukube.core.capacity_sources import PAID, Way, band
from gpukube.core.jsontree import decimal, number, text, trees
from gpukube.core.reservations import RUNS_ON, LiveReservation
from gpukube_eks.facts.images import family_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

BLOCK_FAMILIES: Final = frozenset({"p4d", "p4de", "p5", "p5e", "p5en", "p6-b200", "p6-b300", "p6e-gb200"})
"""GPU families available as Capacity Blocks (EC2 DescribeInstanceTypes SupportedUsageClasses; UltraServers of
p6e-gb200 are available no other way)."""
_ULTRA: Final = "p6e-"
LARGEST_BLOCK: Final = 64  # botocore ec2/2016-11-15 DescribeCapacityBlockOfferingsRequest
FEWEST_TYPES: Final = 3
"""Instance types below which a Spot placement score is always low (botocore GetSpotPlacementScoresRequest)."""
_HOUR_S: Final = 3600
_BLOCK_HOURS: Final = tuple(24 * days for days in (*range(1, 15), *range(21, 183, 7)))
"""Hours of a Capacity Block (botocore DescribeCapacityBlockOfferingsRequest CapacityDurationHours)."""
_LIKELY: Final = 7
_POSSIBLE: Final = 4
"""Lower bounds of AWS's scores from 1 to 10 for a class; gpukube's own."""
_MARKET: Final = "EC2 DescribeSpotPriceHistory"
_BLOCK_FEE: Final = "upfront fee of the offering, per hour"


def can_be_block(instance_type: str) -> bool:
    """Return whether AWS sells a type in Capacity Blocks."""
    return family_of(instance_type) in BLOCK_FAMILIES


def is_ultra(instance_type: str) -> bool:
    """Return whether a type is a part of UltraServers, which AWS sells whole, in Capacity Blocks only."""
    return instance_type.startswith(_ULTRA)


def block_hours(seconds: int) -> int | None:
    """Return the hours of the shortest Capacity Block that is long enough; None if none is."""
    return next((hours for hours in _BLOCK_HOURS if hours * _HOUR_S >= seconds), None)


def reservation_filter(types: Sequence[str]) -> list[dict[str, object]]:
    """Return the filter for reservations of these types that can be used now or later."""
    return [
        {"Name": "instance-type", "Values": list(types)},
        {"Name": "state", "Values": ["active", "scheduled"]},
    ]


def read_offered(items: Iterable[Mapping[str, object]]) -> dict[str, tuple[str, ...]]:
    """Parse DescribeInstanceTypeOfferings: type -> zones that sell it."""
    found: dict[str, set[str]] = {}
    for item in items:
        found.setdefault(text(item, "InstanceType"), set()).add(text(item, "Location"))
    return {name: tuple(sorted(zones)) for name, zones in found.items()}


def read_zone_names(items: Iterable[Mapping[str, object]]) -> dict[str, str]:
    """Parse DescribeAvailabilityZones: id -> name in this account; the same name is another zone elsewhere."""
    return {text(item, "ZoneId"): text(item, "ZoneName") for item in items}


def read_scores(items: Iterable[Mapping[str, object]], names: Mapping[str, str]) -> dict[str, int]:
    """Parse GetSpotPlacementScores: zone name -> score."""
    found = ((names.get(text(item, "AvailabilityZoneId")), number(item, "Score")) for item in items)
    return {zone: score for zone, score in found if zone and score}


def read_reservation(item: Mapping[str, object], nodes: int) -> Way | None:
    """Parse a reservation or a purchased Capacity Block; None if nodes of EKS cannot use it.

    Args:
        item: From DescribeCapacityReservations.
        nodes: Number of nodes that are needed.
    """
    if text(item, "Tenancy") not in ("", "default") or text(item, "InstancePlatform") not in ("", "Linux/UNIX"):
        return None
    block = text(item, "ReservationType") == "capacity-block"
    free, total = number(item, "AvailableInstanceCount"), number(item, "TotalInstanceCount")
    start, active = _moment(item.get("StartDate")), text(item, "State") == "active"
    return Way(
        kind="block" if block else "reservation",
        machine=text(item, "InstanceType"),
        zone=text(item, "AvailabilityZone"),
        known=("free" if free >= nodes else "none") if active else "not told",
        free=free if active else 0,
        words=f"{free} of {total} free" if active else text(item, "State"),
        why="" if active else f"it starts at {start}",
        usd=0.0,
        price_source=PAID,
        start="" if active else start,
        end=_moment(item.get("EndDate")),
        form="capacityBlock" if block else "capacityReservation",
        id=text(item, "CapacityReservationId"),
        note="; ".join(_reservation_notes(item, block=block)),
    )


def read_reserved(item: Mapping[str, object]) -> LiveReservation:
    """Parse the reservation or Capacity Block that a pool names.

    Args:
        item: From DescribeCapacityReservations.
    """
    total, minutes = number(item, "TotalInstanceCount"), 60 if is_ultra(text(item, "InstanceType")) else 30
    block = f"EKS scales the group down first, and EC2 ends its machines from {minutes} minutes before the end"
    return LiveReservation(
        id=text(item, "CapacityReservationId"),
        total=total,
        used=total - number(item, "AvailableInstanceCount"),
        active=text(item, "State") == "active",
        end=_moment(item.get("EndDate")),
        at_end=block if text(item, "ReservationType") == "capacity-block" else RUNS_ON,
    )


def _reservation_notes(item: Mapping[str, object], *, block: bool) -> Iterable[str]:
    if text(item, "InstanceMatchCriteria") == "open" and not block:
        yield "open: any matching instance of the account may take it"
    if item.get("Interruptible"):
        yield "interruptible, with 2 minutes' notice"
    if group := text(item, "PlacementGroupArn"):
        yield f"only in the placement group {group.rpartition('/')[2]}"
    if block:
        yield "AWS ends its instances from 30 minutes before its end"


def read_offering(item: Mapping[str, object], region: str, asked: int) -> Way:
    """Parse an offering of a Capacity Block.

    Args:
        item: From DescribeCapacityBlockOfferings.
        region: Region of the offering.
        asked: Hours that were requested; all blocks end at the same time of day, so one that starts soon is shorter.
    """
    count, minutes = number(item, "InstanceCount"), number(item, "CapacityBlockDurationMinutes")
    hours = number(item, "CapacityBlockDurationHours") + minutes / 60  # EC2 reports the rest beside the whole hours
    fee, currency = decimal(item, "UpfrontFee"), text(item, "CurrencyCode") or "USD"
    identity = text(item, "CapacityBlockOfferingId")
    priced = fee is not None and currency == "USD" and count > 0 and hours > 0
    segments = len(trees(item, "CapacityBlockOfferingSegments"))
    notes = [f"shorter than the {asked} hours requested"] if hours < asked else []
    notes += [f"in {segments} parts: each is a reservation of its own"] if segments > 1 else []
    return Way(
        kind="block",
        machine=text(item, "InstanceType"),
        zone=text(item, "AvailabilityZone"),
        known="offered",
        words=f"{count} for {round(hours, 1):g} hours" + ("" if fee is None else f", {fee:,.2f} {currency} upfront"),
        usd=fee / hours / count if priced and fee is not None else None,
        price_source=_BLOCK_FEE if priced else "",
        start=_moment(item.get("StartDate")),
        end=_moment(item.get("EndDate")),
        form="capacityBlock",
        id=identity,
        buy=(
            f"aws ec2 purchase-capacity-block --region {region} --capacity-block-offering-id {shlex.quote(identity)} "
            "--instance-platform Linux/UNIX"
        ),
        note="; ".join(notes),
    )


def spot_way(machine: str, zone: str, usd: float | None, score: int | None, types: int) -> Way:
    """Return Spot machines of one type in one zone.

    Args:
        machine: The type.
        zone: The zone.
        usd: Current price per hour; None if unknown.
        score: Score of all types together in that zone; None without one.
        types: Number of types that were scored together; 0 if none were.
    """
    if score is not None:
        known, words, why = band(score, _LIKELY, _POSSIBLE), f"{score}/10 ({types} types)", ""
    elif types:
        known, words, why = "not told", "", "AWS returned no score for this zone"
    else:
        known, words, why = "not told", "", "AWS scores Spot only for a choice of three or more types"
    source = _MARKET if usd is not None else ""
    return Way(kind="spot", machine=machine, zone=zone, known=known, words=words, why=why, usd=usd, price_source=source)


def _moment(value: object) -> str:
    """Return a time of the SDK, which is in UTC, in RFC 3339; "" for none."""
    return str(value).replace(" ", "T").replace("+00:00", "Z") if value else ""
