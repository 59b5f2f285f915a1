"""Reads from EC2 which machines are available: offerings, reservations, Capacity Blocks, Spot.

In scope: the calls, one region in one run. Out of scope: parsing responses (`facts.capacity`), quotas, and prices on
demand. Nothing is bought.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from gpukube.core.capacity_sources import Offers, Reading, Way
from gpukube.core.jsontree import trees
from gpukube.endpoint import choose_endpoint
from gpukube_eks.facts.capacity import (
    FEWEST_TYPES,
    LARGEST_BLOCK,
    block_hours,
    can_be_block,
    is_ultra,
    read_offered,
    read_offering,
    read_reservation,
    read_scores,
    read_zone_names,
    reservation_filter,
    spot_way,
)
from gpukube_eks.facts.listings import read_spot_zones
from gpukube_eks.live.access import connect_aws, connect_region
from gpukube_eks.live.failures import explained
from gpukube_eks.live.market import all_pages, items_of, spot_history

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gpukube.core.capacity_sources import CapacityQuery
    from gpukube_eks.live.sdk import Answer, Ec2Capacity

_OFFERINGS: Final = "EC2 DescribeInstanceTypeOfferings"
_RESERVATIONS: Final = "EC2 DescribeCapacityReservations"
_BLOCKS: Final = "EC2 DescribeCapacityBlockOfferings"
_ZONES: Final = "EC2 DescribeAvailabilityZones"
_SCORES: Final = "EC2 GetSpotPlacementScores"
_PRICES: Final = "EC2 DescribeSpotPriceHistory"
_ON_DEMAND: Final = "EC2 GetCapacityManagerSupportabilityScores"
_WHOLE: Final = "AWS sells whole UltraServers only: see aws ec2 describe-capacity-block-offerings --ultraserver-type"
_UNREAD: Final = "{} could not be read"
_T = TypeVar("_T")


def fetch_capacity(query: CapacityQuery) -> Offers:
    """Read what EC2 reports, with the cluster's credentials if there is one.

    Raises:
        AccessError: Credentials must not be sent to the endpoint of the settings.
    """
    inquiry = query.inquiry
    endpoint = choose_endpoint("eks", inquiry.settings, inquiry.where, carries="a session token")
    if query.cluster is not None:
        return read_capacity(connect_aws(query.cluster, endpoint, inquiry.settings).capacity, query)
    return read_capacity(connect_region(inquiry.region, endpoint, inquiry.settings).capacity, query)


def read_capacity(ec2: Ec2Capacity, query: CapacityQuery) -> Offers:
    """Read with the given client; a source that fails is a line.

    Args:
        ec2: The region's EC2 client.
        query: What to read.
    """
    reading = Reading()
    where, names = query.inquiry.where, [machine.name for machine in query.machines]
    read = partial(_read, reading, where)
    offered = read(_OFFERINGS, partial(_offered, ec2, names))
    if offered is None:
        offered = dict.fromkeys(names, query.zones or ("",))
    sold = {name: zones for name in names if (zones := tuple(filter(query.covers, offered.get(name, ()))))}
    notes = tuple(f"{name} is not sold in {_place(query)}" for name in names if name not in sold)
    if not sold:
        return Offers((), tuple(reading.lines), notes)
    single = {name: zones for name, zones in sold.items() if not is_ultra(name)}
    ways = [
        *_reservations(ec2, query, sold, read),
        *_blocks(ec2, query, single, reading),
        *(_spot(ec2, query, single, reading) if single else ()),
    ]
    reading.skip(_ON_DEMAND, "it needs the Unified Operations support plan")
    why = "AWS does not publish stock of on-demand machines"
    ways += [
        Way(kind="on-demand", machine=name, zone=zone, why=why) for name, zones in single.items() for zone in zones
    ]
    for name in (name for name in sold if name not in single):
        reading.skip(f"{_BLOCKS} {name}", _WHOLE)
        ways += [
            Way(kind="block", machine=name, known="not asked", why=_WHOLE),
            Way(kind="on-demand", machine=name, known="none", words="not available on demand"),
        ]
    return Offers(tuple(ways), tuple(reading.lines), notes)


def _read(reading: Reading, where: str, source: str, call: Callable[[], _T]) -> _T | None:
    def explaining() -> _T:
        with explained(where):
            return call()

    return reading.read(source, explaining)


def _place(query: CapacityQuery) -> str:
    return ", ".join(query.zones) or query.inquiry.region


def _offered(ec2: Ec2Capacity, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    only = [{"Name": "instance-type", "Values": list(names)}]
    call = partial(ec2.describe_instance_type_offerings, LocationType="availability-zone", Filters=only)
    return read_offered(_all(call, "InstanceTypeOfferings"))


def _reservations(
    ec2: Ec2Capacity, query: CapacityQuery, sold: Mapping[str, Sequence[str]], read: Callable[..., list[Way] | None]
) -> Iterator[Way]:
    def found() -> list[Way]:
        call = partial(ec2.describe_capacity_reservations, Filters=reservation_filter(list(sold)))
        return [way for item in _all(call, "CapacityReservations") if (way := read_reservation(item, query.nodes))]

    ways = read(_RESERVATIONS, found)
    if ways is None:
        why = _UNREAD.format("reservations")
        yield from (Way(kind="reservation", machine=name, why=why) for name in sold)
    else:
        yield from (way for way in ways if query.covers(way.zone))


def _blocks(
    ec2: Ec2Capacity, query: CapacityQuery, sold: Mapping[str, Sequence[str]], reading: Reading
) -> Iterator[Way]:
    types = [name for name in sold if can_be_block(name)]
    hours = block_hours(query.seconds) if query.seconds else None
    if not types:
        return
    if hours is None or query.nodes > LARGEST_BLOCK:
        why = "a Capacity Block is bought for a time: add --for 7d"
        if query.nodes > LARGEST_BLOCK:
            why = f"a Capacity Block has at most {LARGEST_BLOCK} instances"
        elif query.seconds:
            why = "a Capacity Block is for at most 182 days"
        reading.skip(_BLOCKS, why)
        yield from (Way(kind="block", machine=name, known="not asked", why=why) for name in types)
        return
    for name in types:
        call = partial(
            ec2.describe_capacity_block_offerings,
            InstanceType=name,
            InstanceCount=query.nodes,
            CapacityDurationHours=hours,
        )
        source = f"{_BLOCKS} {name}"
        items = _read(reading, query.inquiry.where, source, partial(_all, call, "CapacityBlockOfferings"))
        if items is None:
            yield Way(kind="block", machine=name, why=_UNREAD.format("offerings"))
            continue
        ways = [read_offering(item, query.inquiry.region, hours) for item in items]
        ways = [way for way in ways if query.covers(way.zone)]
        yield from ways or [Way(kind="block", machine=name, known="none", words=f"no offering for {hours} hours")]


def _spot(ec2: Ec2Capacity, query: CapacityQuery, sold: Mapping[str, Sequence[str]], reading: Reading) -> Iterator[Way]:
    names, where = list(sold), query.inquiry.where
    prices = _read(reading, where, _PRICES, lambda: read_spot_zones(spot_history(ec2, names, query.inquiry))) or {}
    scores: dict[str, int] | None = None
    scored = len(names) if query.mixed and len(names) >= FEWEST_TYPES else 0
    if scored:
        scores = _read(reading, where, _SCORES, lambda: _scores(ec2, query, names))
    else:
        reading.skip(_SCORES, "a score means something only for a pool of three or more instance types")
    for name, zones in sold.items():
        for zone in zones:
            way = spot_way(name, zone, prices.get((name, zone)), (scores or {}).get(zone), scored)
            yield replace(way, why=_UNREAD.format("scores")) if scored and scores is None else way


def _scores(ec2: Ec2Capacity, query: CapacityQuery, names: Sequence[str]) -> dict[str, int]:
    """Score all types together, for each zone alone; EC2 names zones by ids here."""
    zones = read_zone_names(trees(ec2.describe_availability_zones(), "AvailabilityZones"))
    call = partial(
        ec2.get_spot_placement_scores,
        InstanceTypes=list(names),
        TargetCapacity=query.nodes,
        TargetCapacityUnitType="units",
        SingleAvailabilityZone=True,
        RegionNames=[query.inquiry.region],
    )
    return read_scores(_all(call, "SpotPlacementScores"), zones)


def _all(call: Callable[..., Answer], member: str) -> list[Mapping[str, object]]:
    return list(items_of(all_pages(call), member))
