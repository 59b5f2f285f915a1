"""EC2's calls about capacity: Spot placement scores, Capacity Blocks for sale, Capacity Manager.

In scope: what each call returns, from the sandbox's stock. Out of scope: reservations that exist (`reservations`),
prices of Spot (`market`), the XML itself (`query`).

Sources: botocore ec2/2016-11-15; docs: AWSEC2/latest/UserGuide spot-placement-score, capacity-blocks-purchase. A
message or a number without a source is unconfirmed.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

from gpukube_sandbox.eks.filters import page_of, read_tags
from gpukube_sandbox.eks.instances import TYPES, InstanceType, zone_id
from gpukube_sandbox.eks.prices import price_of
from gpukube_sandbox.eks.regions import STANDARD
from gpukube_sandbox.eks.reservations import reservation_json
from gpukube_sandbox.eks.templatedata import TAG_SPECIFICATIONS
from gpukube_sandbox.eks.things import Reservation
from gpukube_sandbox.eks.wire.answers import AwsError, Json, strings_in
from gpukube_sandbox.eks.wire.query import Member, read_members, when

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gpukube_sandbox.eks.service import EksService
    from gpukube_sandbox.eks.wire.identity import Caller

SCORES: Final = (
    Member("InstanceTypes", "texts", "InstanceType"),
    Member("TargetCapacity"),
    Member("TargetCapacityUnitType"),
    Member("SingleAvailabilityZone"),
    Member("RegionNames", "texts", "RegionName"),
    Member("DryRun"),
    Member("MaxResults"),
    Member("NextToken"),
    Member("IncludeLocalZones"),
)
"""Parameters of GetSpotPlacementScores except InstanceRequirementsWithMetadata, which is not emulated."""
BLOCKS: Final = (
    Member("DryRun"),
    Member("InstanceType"),
    Member("InstanceCount"),
    Member("StartDateRange"),
    Member("EndDateRange"),
    Member("CapacityDurationHours"),
    Member("NextToken"),
    Member("MaxResults"),
    Member("AllAvailabilityZones"),
    Member("InstanceTypePreferences", "list", "InstanceTypePreference", members=(Member("InstanceType"),)),
)
"""Parameters of DescribeCapacityBlockOfferings except those of UltraServers, which are not emulated."""
PURCHASE: Final = (TAG_SPECIFICATIONS, Member("DryRun"), Member("CapacityBlockOfferingId"), Member("InstancePlatform"))
SUPPORTABILITY: Final = (
    Member("MarketType"),
    Member("CapacityAmount"),
    Member("CapacityUnit"),
    Member("CapacityAvailabilityZoneIds", "texts", "CapacityAvailabilityZoneId"),
    Member("InstanceTypes", "texts", "InstanceType"),
    Member("DryRun"),
)

_PLACES = 10
_REGIONS = 10
_FEWEST_TYPES = 3
_GRADES: Final = {True: (1, 4, 7, 9), False: (1, 1, 2, 3)}
"""Whether there are enough types -> score by grade: none, some, enough, three times as many or more."""
_CONFIGURATIONS = 10
_DAY_S, _HOUR_S, _MINUTE_S = 86400.0, 3600.0, 60.0
_MOST_AT_ONCE = 64
_LONGEST_DAYS, _LONGEST_WEEKS = 14, 26
_END_S = 11.5 * _HOUR_S
_LEAD_S = 30 * _MINUTE_S
_OFFERS = 6
_AHEAD_DAYS = 56
_BLOCK_SHARE = 0.9


def _members(params: Mapping[str, str], table: tuple[Member, ...], *required: str) -> Json:
    """Read a request's parameters.

    Raises:
        AwsError: 400 for an unknown or missing parameter.
    """
    given = {key: value for key, value in params.items() if key not in {"Action", "Version"}}
    found = read_members(given, "", table)
    for name in required:
        if name not in found:
            raise AwsError("MissingParameter", f"The request must contain the parameter {name}")
    return found


def _number(found: Json, name: str, least: int, most: int, usual: int = 0) -> int:
    text = str(found.get(name, usual))
    if not text.isdigit() or not least <= int(text) <= most:
        raise AwsError("InvalidParameterValue", f"Value ({text}) for parameter {name} is invalid.")
    return int(text)


def _kinds(names: Sequence[str]) -> list[InstanceType]:
    if unknown := [name for name in names if name not in TYPES]:
        message = f"The following supplied instance types do not exist: [{', '.join(unknown)}]"
        raise AwsError("InvalidInstanceType", message)
    return [TYPES[name] for name in names]


def _placement_scores(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    """Return the ten best places; few types always score low, and one account gets few new configurations a day."""
    if any(key.startswith("InstanceRequirementsWithMetadata.") for key in params):
        message = "The gpukube sandbox does not emulate InstanceRequirementsWithMetadata."
        raise AwsError("InvalidAction", message, status=501)
    found = _members(params, SCORES, "TargetCapacity")
    names, regions = strings_in(found.get("InstanceTypes")), strings_in(found.get("RegionNames"))
    unit, target = str(found.get("TargetCapacityUnitType", "units")), _number(found, "TargetCapacity", 1, 2 * 10**9)
    if not names:
        raise AwsError("MissingParameter", "The request must contain the parameter InstanceTypes")
    if wrong := regions[_REGIONS:] or sorted({*regions} - STANDARD):
        raise AwsError("InvalidParameterValue", f"Value ({wrong[0]}) for parameter RegionNames is invalid.")
    if unit not in {"vcpu", "memory-mib", "units"}:
        raise AwsError("InvalidParameterValue", f"Value ({unit}) for parameter TargetCapacityUnitType is invalid.")
    _number(found, "MaxResults", 10, 1000, 1000)
    kinds, is_zonal = _kinds(names), str(found.get("SingleAvailabilityZone", "false")) == "true"
    key = (tuple(sorted({*names})), target, unit, is_zonal, tuple(sorted({*regions})))
    _count_configuration(service, caller.account, key)
    wanted = _Wanted(tuple(dict.fromkeys(kinds)), target, unit)
    entries = [
        entry
        for region in sorted(regions or STANDARD)
        for entry in (_zone_scores if is_zonal else _region_scores)(service, wanted, region)
    ]
    best = sorted(entries, key=lambda entry: -int(str(entry["score"])))[:_PLACES]
    page, more = page_of(best, params, 1000)
    return {"spotPlacementScoreSet": {"item": list(page)}, "nextToken": more}


class _Wanted:
    """A target capacity of some types.

    Args:
        kinds: The types.
        target: How much of the unit.
        unit: "units" (machines), "vcpu" or "memory-mib".
    """

    def __init__(self, kinds: tuple[InstanceType, ...], target: int, unit: str) -> None:
        self.kinds = kinds
        self._target = target
        self._unit = unit

    def share(self, service: EksService, region: str, letter: str) -> float:
        """Return how often the target is there on Spot in a zone; infinity without a limit."""
        total = 0.0
        for kind in self.kinds:
            if letter in kind.zones:
                free = service.stock.free("eks", f"{region}{letter}", kind.name, "spot")
                total += float("inf") if free is None else free * self._size(kind)
        return total / self._target

    def score(self, share: float) -> int:
        """Return the score of places that have the target so often."""
        grade = 0 if share == 0 else 1 if share < 1 else 2 if share < 3 else 3  # noqa: PLR2004 - see _GRADES
        return _GRADES[len(self.kinds) >= _FEWEST_TYPES][grade]

    def _size(self, kind: InstanceType) -> float:
        return {"units": 1, "vcpu": kind.vcpus, "memory-mib": kind.memory_gib * 1024}[self._unit]


def _zone_scores(service: EksService, wanted: _Wanted, region: str) -> Iterator[Json]:
    for letter in sorted({letter for kind in wanted.kinds for letter in kind.zones}):
        score = wanted.score(wanted.share(service, region, letter))
        yield {"region": region, "availabilityZoneId": zone_id(region, letter), "score": score}


def _region_scores(service: EksService, wanted: _Wanted, region: str) -> Iterator[Json]:
    letters = {letter for kind in wanted.kinds for letter in kind.zones}
    share = sum(wanted.share(service, region, letter) for letter in letters)
    yield {"region": region, "score": wanted.score(share)}


def _count_configuration(service: EksService, account: str, key: tuple[object, ...]) -> None:
    """Count a configuration; one that was used within the last day is not new.

    Raises:
        AwsError: 400 beyond the limit. That there is one: docs: spot-placement-score, limitations; its size: README of
            AWS's Spot placement score tracker.
    """
    now = service.clock.now()
    used = service.configurations.setdefault(account, {})
    for old in [old for old, at in used.items() if at <= now - _DAY_S]:
        del used[old]
    if key not in used and len(used) >= _CONFIGURATIONS:
        message = "You have exceeded your maximum allowed Spot placement configurations. You can retry later."
        raise AwsError("MaxConfigLimitExceeded", message)
    used[key] = now


def _describe_blocks(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    """Return up to six offers with enough reserved machines in stock, the earliest first; all end at 11:30 UTC."""
    if any(key.startswith("Ultraserver") for key in params):
        raise AwsError("InvalidAction", "The gpukube sandbox does not emulate UltraServers.", status=501)
    found = _members(params, BLOCKS, "CapacityDurationHours")
    preferences = found.get("InstanceTypePreferences")
    names = [str(one.get("InstanceType")) for one in (preferences if isinstance(preferences, list) else [])]
    names += [str(found["InstanceType"])] if "InstanceType" in found else []
    if not names:
        raise AwsError("MissingParameter", "The request must contain the parameter InstanceType")
    count = _number(found, "InstanceCount", 1, _MOST_AT_ONCE)
    seconds = _duration(found)
    earliest, latest = (_moment(str(found.get(name, ""))) for name in ("StartDateRange", "EndDateRange"))
    offers = []
    for start, end in _times(service.clock.now(), seconds):
        if start < earliest or (latest and end > latest):
            continue
        for kind in _kinds(names):
            for letter in kind.zones if kind.block else "":
                free = service.stock.free("eks", f"{caller.region}{letter}", kind.name, "reserved")
                if free is None or free >= count:
                    offers.append(Reservation("", kind.name, letter, count, block=True, start=start, end=end))
    entries = []
    for offer in offers[:_OFFERS]:
        entry = _offering(caller, offer)
        service.offered[str(entry["capacityBlockOfferingId"])] = offer
        entries.append(entry)
    page, more = page_of(entries, params, 1000)
    return {"capacityBlockOfferingSet": {"item": list(page)}, "nextToken": more}


def _duration(found: Json) -> float:
    """Return a block's duration in seconds: whole days up to 14, whole weeks up to 26."""
    hours = _number(found, "CapacityDurationHours", 24, _LONGEST_WEEKS * 7 * 24)
    days = hours / 24
    if days % 1 or (days > _LONGEST_DAYS and days % 7):
        raise AwsError("InvalidParameterValue", f"Value ({hours}) for parameter CapacityDurationHours is invalid.")
    return hours * _HOUR_S


def _times(now: float, seconds: float) -> Iterator[tuple[float, float]]:
    """Yield when blocks start and end: one soon, which ends early, then one a day with the full duration."""
    soon = (now + _LEAD_S) // _MINUTE_S * _MINUTE_S
    cut = (soon + seconds - _END_S) // _DAY_S * _DAY_S + _END_S
    yield soon, cut
    first = (now // _DAY_S + 1) * _DAY_S + _END_S
    for day in range(_AHEAD_DAYS):
        yield first + day * _DAY_S, first + day * _DAY_S + seconds


def _moment(text: str) -> float:
    """Parse a time as SDKs write it; 0 for none."""
    if not text:
        return 0.0
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError as error:
        raise AwsError("InvalidParameterValue", f"Value ({text}) for parameter date is invalid.") from error


def _offering(caller: Caller, offer: Reservation) -> Json:
    seconds = (offer.end or 0.0) - offer.start
    parts = (caller.account, caller.region, offer.type, offer.zone, offer.count, offer.start, offer.end)
    fee = price_of(TYPES[offer.type], caller.region) * _BLOCK_SHARE * (offer.count or 0) * seconds / _HOUR_S
    return {
        "capacityBlockOfferingId": f"cb-0{hashlib.sha256(repr(parts).encode()).hexdigest()[:16]}",
        "instanceType": offer.type,
        "availabilityZone": f"{caller.region}{offer.zone}",
        "instanceCount": offer.count,
        "startDate": when(offer.start),
        "endDate": when(offer.end or 0.0),
        "capacityBlockDurationHours": int(seconds // _HOUR_S),
        "capacityBlockDurationMinutes": int(seconds % _HOUR_S // _MINUTE_S),
        "upfrontFee": f"{fee:.4f}",
        "currencyCode": "USD",
        "tenancy": "default",
        "zoneType": "availability-zone",
    }


def _purchase_block(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    """Refuse to buy, as the policy of a careful organization does, unless the sandbox's settings allow it."""
    found = _members(params, PURCHASE, "CapacityBlockOfferingId", "InstancePlatform")
    read_tags(params, "capacity-reservation")
    identity = str(found["CapacityBlockOfferingId"])
    if not service.sells_blocks:
        action = f"User: {caller.arn} is not authorized to perform: ec2:PurchaseCapacityBlock"
        why = "with an explicit deny in a service control policy"
        message = f"You are not authorized to perform this operation. {action} {why}"
        raise AwsError("UnauthorizedOperation", message, status=403)
    offer = service.offered.get(identity)
    if offer is None:
        message = f"The Capacity Block offering '{identity}' does not exist"
        raise AwsError("InvalidCapacityBlockOfferingId.NotFound", message)
    known, now = service.known(caller.account, caller.region), service.clock.now()
    made = replace(offer, id=f"cr-{identity.removeprefix('cb-')}", created=now)
    known.reservations[made.id] = made
    return {"capacityReservation": reservation_json(caller, known, made, service.stock, now)}


def _manager_attributes(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    del service, caller, params
    return {"capacityManagerStatus": "disabled", "organizationsAccess": False, "dataExportCount": 0}


def _supportability(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    """Refuse: Capacity Manager is disabled, and the account has no Unified Operations plan (code unconfirmed)."""
    del service
    required = ("MarketType", "CapacityAmount", "CapacityUnit", "CapacityAvailabilityZoneIds")
    _members(params, SUPPORTABILITY, *required)
    message = f"EC2 Capacity Manager is not enabled for account {caller.account}."
    raise AwsError("CapacityManagerNotEnabled", message)


ACTIONS: dict[str, Callable[[EksService, Caller, Mapping[str, str]], Json]] = {
    "GetSpotPlacementScores": _placement_scores,
    "DescribeCapacityBlockOfferings": _describe_blocks,
    "PurchaseCapacityBlock": _purchase_block,
    "GetCapacityManagerAttributes": _manager_attributes,
    "GetCapacityManagerSupportabilityScores": _supportability,
}
"""Actions of EC2, next to those of `ec2`."""
