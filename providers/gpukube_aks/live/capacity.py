"""Reads from Azure which machines are available: Resource SKUs, capacity reservations, Spot placement scores.

In scope: the calls, one region in one run. Out of scope: bodies and parsing responses (`facts.capacity`), quotas, and
prices. Nothing is bought.

All calls are plain requests through the pipeline of AKS's client, as in `live.market`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final

from azure.core.rest import HttpRequest

from gpukube.core.capacity_sources import Offers, Reading, Way
from gpukube.endpoint import choose_endpoint
from gpukube_aks.facts.capacity import (
    Sold,
    read_groups,
    read_reservations,
    read_scores,
    read_sold,
    scores_body,
    spot_way,
)
from gpukube_aks.facts.listings import sku_filter
from gpukube_aks.live.client import PUBLIC_URL, connect_subscription
from gpukube_aks.live.failures import explained
from gpukube_aks.live.market import SKUS_VERSION, require_subscription
from gpukube_aks.live.pages import answer_of, listed
from gpukube_aks.live.reservations import GROUPS_VERSION, read_group

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpukube.core.capacity_sources import CapacityQuery
    from gpukube_aks.live.pages import Sender

_Sold = dict[str, list[str]]
"""Sizes with the zones to look at."""
_SKUS: Final = "Microsoft.Compute skus"
_GROUPS: Final = "Microsoft.Compute capacityReservationGroups"
_SCORES: Final = "Microsoft.Compute placementScores/spot"
_MIX: Final = "Microsoft.Compute skuMixPlacementScores"
_SCORES_VERSION: Final = "2025-06-05"
_NOWHERE: Final = Sold(())
_UNREAD: Final = "{} could not be read"
_NO_BLOCKS: Final = "Azure lists no Block reservations for sale"
_NO_STOCK: Final = "Azure does not publish stock of on-demand machines"


def fetch_capacity(query: CapacityQuery) -> Offers:
    """Read what Azure reports, with the cluster's subscription and tenant if there is one.

    Raises:
        SpecError: No subscription is named.
        AccessError: No credentials, or they must not be sent to the endpoint of the settings.
    """
    inquiry = query.inquiry
    endpoint = choose_endpoint("aks", inquiry.settings, inquiry.where)
    identity = query.cluster.identity if query.cluster else {}
    subscription = identity.get("subscription") or require_subscription(inquiry)
    arm = connect_subscription(subscription, inquiry.settings, endpoint, identity.get("tenant", ""))
    try:
        return read_capacity(arm, subscription, query, endpoint.url or PUBLIC_URL)
    finally:
        arm.close()


def read_capacity(arm: Sender, subscription: str, query: CapacityQuery, base: str) -> Offers:
    """Read with the given client; a source that fails is a line.

    Args:
        arm: Client of the subscription.
        subscription: The subscription.
        query: What to read.
        base: URL of ARM.
    """
    return _Sources(arm, subscription, query, base).offers()


class _Sources:
    """The sources of one result."""

    def __init__(self, arm: Sender, subscription: str, query: CapacityQuery, base: str) -> None:
        self._arm = arm
        self._query = query
        self._base = base
        self._compute = f"{base}/subscriptions/{subscription}/providers/Microsoft.Compute"
        self._reading = Reading()

    def offers(self) -> Offers:
        """Read all of them."""
        query, names = self._query, [machine.name for machine in self._query.machines]
        found = self._reading.read(_SKUS, partial(self._skus, names))
        if found is None:
            found = dict.fromkeys(names, Sold(query.zones or ("",)))
        sold = {name: zones for name in names if (zones := self._wanted(found.get(name, _NOWHERE)))}
        place = f"zones {', '.join(query.zones)} of {query.inquiry.region}" if query.zones else query.inquiry.region
        notes = [one.note for one in found.values() if one.note]
        others = [name for name in names if name not in sold and not found.get(name, _NOWHERE).note]
        notes += [f"{name} is not sold in {place}" for name in others]
        self._reading.skip(_MIX, "it is in preview")
        ways: list[Way] = []
        if sold:
            ways += self._reservations(sold)
            ways += [Way(kind="block", machine=name, why=_NO_BLOCKS) for name in sold if found[name].is_block]
            ways += self._spot(sold)
        for name, zones in sold.items():
            ways += [Way(kind="on-demand", machine=name, zone=zone, why=_NO_STOCK) for zone in zones]
        return Offers(tuple(ways), tuple(self._reading.lines), tuple(notes))

    def _wanted(self, sold: Sold) -> list[str]:
        return [zone for zone in sold.zones if self._query.covers(zone)]

    def _skus(self, names: Sequence[str]) -> dict[str, Sold]:
        region = self._query.inquiry.region
        params = {"api-version": SKUS_VERSION, "$filter": sku_filter(region)}
        with explained(self._query.inquiry.where):
            return read_sold(self._listed(f"{self._compute}/skus", params), names, region)

    def _reservations(self, sold: _Sold) -> Iterator[Way]:
        ways = self._reading.read(_GROUPS, partial(self._reserved, sold))
        if ways is None:
            why = _UNREAD.format("reservations")
            yield from (Way(kind="reservation", machine=name, why=why) for name in sold)
        else:
            yield from (way for way in ways if self._query.covers(way.zone))

    def _reserved(self, sold: _Sold) -> list[Way]:
        """Read each group of the region with its use, and its reservations: only they have sizes and zones."""
        params, today = {"api-version": GROUPS_VERSION}, datetime.now(UTC).date().isoformat()
        ways = []
        with explained(self._query.inquiry.where):
            listed_groups = self._listed(f"{self._compute}/capacityReservationGroups", params)
            for group in read_groups(listed_groups, self._query.inquiry.region):
                viewed, inside = read_group(self._arm, self._base, group)
                ways += read_reservations(viewed, inside, sold, self._query.nodes, today)
        return ways

    def _spot(self, sold: _Sold) -> Iterator[Way]:
        found = self._reading.read(_SCORES, partial(self._scores, sold))
        for name, zones in sold.items():
            for zone in zones:
                if found is None:
                    yield Way(kind="spot", machine=name, zone=zone, why=_UNREAD.format("scores"))
                else:
                    yield spot_way(name, zone, found.get((name.lower(), zone)))

    def _scores(self, sold: _Sold) -> dict[tuple[str, str], tuple[str, bool]]:
        """Score sizes by zone, and those that have no zones in the region as a whole."""
        region = self._query.inquiry.region
        address = f"{self._compute}/locations/{region}/placementScores/spot/generate"
        found: dict[tuple[str, str], tuple[str, bool]] = {}
        for zonal in (True, False):
            sizes = [name for name, zones in sold.items() if (zones != [""]) is zonal]
            if sizes:
                body = scores_body(region, sizes, self._query.nodes, zonal=zonal)
                request = HttpRequest("POST", address, params={"api-version": _SCORES_VERSION}, json=body)
                with explained(self._query.inquiry.where):
                    found |= read_scores(answer_of(self._arm, request))
        return found

    def _listed(self, address: str, params: Mapping[str, str]) -> Iterator[Mapping[str, object]]:
        return listed(self._arm, HttpRequest("GET", address, params=dict(params)), self._base)
