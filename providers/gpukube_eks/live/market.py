"""The live half of EKS's catalog contribution: types from EC2, prices from AWS's price list.

In scope: the calls. Out of scope: parsing responses (`facts.listings`).

Prices are optional: an identity that may not read them still gets types, and a note.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from gpukube.core.cloud_catalog import Findings, LivePrice, LivePrices
from gpukube.core.jsontree import strings, trees
from gpukube.endpoint import choose_endpoint
from gpukube.errors import CloudError, GpukubeError
from gpukube_eks.facts.listings import (
    TYPE_FILTER,
    price_filters,
    priced,
    read_price,
    read_spot,
    read_spot_zones,
    read_type,
)
from gpukube_eks.live.access import connect_region
from gpukube_eks.live.failures import explained

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gpukube.core.cloud_catalog import Inquiry, PriceInquiry
    from gpukube_eks.live.sdk import Answer, Ec2Types, PricingSdk, SpotPrices

_PRICES_AT: Final = "us-east-1"
"""Region of the price list: only three have an endpoint, and each serves its whole partition."""
_OTHER_PARTITIONS: Final = ("cn-", "us-gov-", "us-iso")
_PAGE: Final = 100
_MOST_PAGES: Final = 500


def fetch(inquiry: Inquiry) -> Findings:
    """Read types and prices with the credentials of AWS's default chain.

    Raises:
        AccessError: No credentials, or no permission to describe instance types.
        CloudError: Any other failure to describe them.
    """
    return read_offers(*_clients(inquiry), inquiry)


def fetch_prices(requested: PriceInquiry) -> LivePrices:
    """Read the prices of some types: one query per type for on-demand, one in total for Spot.

    Raises:
        AccessError: No credentials.
    """
    return read_prices(*_clients(requested.inquiry), requested)


def _clients(inquiry: Inquiry) -> tuple[Ec2Types, PricingSdk | None]:
    """Connect to EC2 in the region, and to the price list if it covers the region."""
    endpoint = choose_endpoint("eks", inquiry.settings, inquiry.where, carries="a session token")
    ec2 = connect_region(inquiry.region, endpoint, inquiry.settings).types
    if inquiry.region.startswith(_OTHER_PARTITIONS) or (endpoint.url and not endpoint.is_emulated):
        return ec2, None
    return ec2, connect_region(_PRICES_AT, endpoint, inquiry.settings).pricing


def read_prices(ec2: Ec2Types, pricing: PricingSdk | None, requested: PriceInquiry) -> LivePrices:
    """Read prices with the given clients; failures become notes.

    Args:
        ec2: The region's EC2 client.
        pricing: The price list; None if it does not cover the region.
        requested: Machines whose prices to read.
    """
    notes: list[str] = []
    found: list[LivePrice] = []
    if requested.on_demand and pricing is None:
        notes.append("AWS's price list does not cover this region or endpoint")
    try:
        for machine in requested.on_demand:
            usd = _price_of(pricing, machine.name, requested.inquiry).get(machine.name) if pricing else None
            found += [LivePrice(machine.name, usd)] if usd else []
    except GpukubeError as error:
        notes.append(f"prices could not be read: {error}")
    try:
        history = (
            spot_history(ec2, [machine.name for machine in requested.spot], requested.inquiry) if requested.spot else []
        )
        found += [LivePrice(name, usd, spot=True, zone=zone) for (name, zone), usd in read_spot_zones(history).items()]
    except GpukubeError as error:
        notes.append(f"spot prices could not be read: {error}")
    return LivePrices(tuple(found), tuple(notes))


def _price_of(pricing: PricingSdk, name: str, inquiry: Inquiry) -> dict[str, float]:
    only = {"Type": "TERM_MATCH", "Field": "instanceType", "Value": name}
    return _listed_prices(pricing, [*price_filters(inquiry.region, bare_metal=".metal" in name), only], inquiry)


def read_offers(ec2: Ec2Types, pricing: PricingSdk | None, inquiry: Inquiry) -> Findings:
    """Read types and prices with the given clients.

    Args:
        ec2: The region's EC2 client.
        pricing: The price list; None if it does not cover the region.
        inquiry: The query.
    """
    with explained(inquiry.where):
        items = all_pages(lambda **more: ec2.describe_instance_types(Filters=TYPE_FILTER, MaxResults=_PAGE, **more))
        offers = [offer for item in items_of(items, "InstanceTypes") if (offer := read_type(item))]
    names = [offer.name for offer in offers]
    notes: list[str] = []
    prices = _or_note(notes, "prices", lambda: _prices(pricing, inquiry)) if pricing else None
    spot = _or_note(notes, "spot prices", lambda: read_spot(spot_history(ec2, names, inquiry))) if names else {}
    if pricing is None:
        notes.append("AWS's price list does not cover this region or endpoint; prices are unchanged")
    return Findings(priced(offers, prices or {}, spot or {}), priced=prices is not None, notes=tuple(notes))


def _prices(pricing: PricingSdk, inquiry: Inquiry) -> dict[str, float]:
    found: dict[str, float] = {}
    for bare_metal in (False, True):
        found |= _listed_prices(pricing, price_filters(inquiry.region, bare_metal=bare_metal), inquiry)
    return found


def _listed_prices(pricing: PricingSdk, filters: Sequence[Mapping[str, str]], inquiry: Inquiry) -> dict[str, float]:
    found: dict[str, float] = {}
    with explained(inquiry.where):
        for page in all_pages(
            lambda **more: pricing.get_products(ServiceCode="AmazonEC2", Filters=filters, MaxResults=_PAGE, **more)
        ):
            read = (read_price(text) for text in strings(page, "PriceList"))
            found |= dict(price for price in read if price)
    return found


def spot_history(ec2: SpotPrices, names: Sequence[str], inquiry: Inquiry) -> list[Mapping[str, object]]:
    """Read the current spot prices: with now as its start time, the history contains each zone's latest price."""
    with explained(inquiry.where):
        pages = all_pages(
            lambda **more: ec2.describe_spot_price_history(
                InstanceTypes=list(names), ProductDescriptions=["Linux/UNIX"], StartTime=datetime.now(UTC), **more
            )
        )
        return list(items_of(pages, "SpotPriceHistory"))


def _or_note(notes: list[str], what: str, read: Callable[[], dict[str, float]]) -> dict[str, float] | None:
    try:
        return read()
    except GpukubeError as error:
        notes.append(f"{what} could not be read and are unchanged: {error}")
        return None


def all_pages(call: Callable[..., Answer]) -> Iterator[Answer]:
    """Yield all pages; fail if the list does not end."""
    token = ""
    for _ in range(_MOST_PAGES):
        answer = call(**({"NextToken": token} if token else {}))
        yield answer
        token = str(answer.get("NextToken") or "")
        if not token:
            return
    raise CloudError(f"AWS's response has more than {_MOST_PAGES} pages", code="bad-answer")


def items_of(pages: Iterator[Answer], key: str) -> Iterator[Mapping[str, object]]:
    """Yield the objects in one list of all pages."""
    for page in pages:
        yield from trees(page, key)
