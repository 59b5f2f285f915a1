"""The live half of AKS's part in the catalog: sizes from ARM's Resource SKUs, prices from Azure's retail prices.

In scope: the calls. Out of scope: parsing responses (`facts.listings`).

Retail prices are public, so those calls send no credentials; they cover the public cloud only. Prices are optional:
without them the sizes are still returned, with a note.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from azure.core import PipelineClient
from azure.core.pipeline.policies import HeadersPolicy, RetryPolicy, UserAgentPolicy
from azure.core.pipeline.transport import RequestsTransport
from azure.core.rest import HttpRequest, HttpResponse

from gpukube import __version__
from gpukube.core.cloud_catalog import Findings, LivePrice, LivePrices
from gpukube.endpoint import choose_endpoint
from gpukube.errors import GpukubeError, SpecError, Where
from gpukube_aks.facts.endpoint import is_same_origin
from gpukube_aks.facts.listings import price_query, priced, read_price, read_sku, sku_filter
from gpukube_aks.live.client import PUBLIC_URL, connect_subscription
from gpukube_aks.live.failures import explained
from gpukube_aks.live.pages import listed

if TYPE_CHECKING:
    from gpukube.core.cloud_catalog import Inquiry, PriceInquiry
    from gpukube.endpoint import Endpoint
    from gpukube_aks.facts.listings import Price
    from gpukube_aks.live.pages import Sender

_PRICES_URL: Final = "https://prices.azure.com"
SKUS_VERSION: Final = "2021-07-01"
_PRICES_VERSION: Final = "2023-01-01-preview"
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_RETRIES: Final = 5
_RETRY_FACTOR_S: Final = 1.5
"""The price list sends 429 without a Retry-After; three seconds are enough."""
_RETRY_FACTOR_EMULATED_S: Final = 0.05


def fetch(inquiry: Inquiry) -> Findings:
    """Read Azure's GPU sizes and prices with the credentials of its own chain.

    Raises:
        SpecError: No subscription is named.
        AccessError: No credentials, or no permission to read the subscription's SKUs.
        CloudError: Reading the SKUs failed for another reason.
    """
    endpoint = choose_endpoint("aks", inquiry.settings, inquiry.where)
    subscription = require_subscription(inquiry)
    arm = connect_subscription(subscription, inquiry.settings, endpoint)
    is_public = endpoint.is_emulated or is_same_origin(endpoint.url or PUBLIC_URL, PUBLIC_URL)
    base = endpoint.url or PUBLIC_URL
    try:
        if not is_public:
            return read_offers(arm, None, inquiry, (base, ""))
        with _price_client(inquiry, endpoint) as prices:
            return read_offers(arm, prices, inquiry, (base, endpoint.url if endpoint.is_emulated else _PRICES_URL))
    finally:
        arm.close()


def read_offers(arm: Sender, prices: Sender | None, inquiry: Inquiry, bases: tuple[str, str]) -> Findings:
    """Read GPU sizes and prices over given clients.

    Args:
        arm: Client of the subscription.
        prices: Client of the price list; None if it does not cover the cloud.
        inquiry: The query; its account is a subscription.
        bases: URLs of ARM and of the price list.
    """
    arm_base, price_base = bases
    subscription = require_subscription(inquiry)
    first = HttpRequest(
        "GET",
        f"{arm_base}/subscriptions/{subscription}/providers/Microsoft.Compute/skus",
        params={"api-version": SKUS_VERSION, "$filter": sku_filter(inquiry.region)},
    )
    with explained(inquiry.where):
        items = listed(arm, first, arm_base)
        offers = [offer for item in items if (offer := read_sku(item))]
    unknown = sorted(offer.name for offer in offers if not offer.model)
    notes = [f"GPU sizes that are not in the catalog: {', '.join(unknown)}"] if unknown else []
    if prices is None:
        notes.append("Azure's price list covers the public cloud only; prices are unchanged")
        return Findings(tuple(offers), priced=False, notes=tuple(notes))
    try:
        found = _prices(prices, inquiry, price_base)
    except GpukubeError as error:
        notes.append(f"prices could not be read and are unchanged: {error}")
        return Findings(tuple(offers), priced=False, notes=tuple(notes))
    return Findings(priced(offers, found), priced=True, notes=tuple(notes))


def fetch_prices(requested: PriceInquiry) -> LivePrices:
    """Read prices of some sizes from Azure's price list, without credentials.

    Raises:
        SpecError: The endpoint is not allowed.
    """
    inquiry = requested.inquiry
    endpoint = choose_endpoint("aks", inquiry.settings, inquiry.where)
    if not endpoint.is_emulated and not is_same_origin(endpoint.url or PUBLIC_URL, PUBLIC_URL):
        return LivePrices(notes=("Azure's price list covers the public cloud only",))
    with _price_client(inquiry, endpoint) as client:
        return read_prices(client, requested, endpoint.url if endpoint.is_emulated else _PRICES_URL)


def read_prices(client: Sender, requested: PriceInquiry, base: str) -> LivePrices:
    """Read prices over a given client, size by size; a failure becomes a note.

    Args:
        client: Client of the price list.
        requested: Machines whose prices to read.
        base: URL of the price list.
    """
    sizes = sorted({machine.name for machine in (*requested.on_demand, *requested.spot)})
    lowest: dict[tuple[str, bool], float] = {}
    try:
        for size in sizes:
            for price in _prices(client, requested.inquiry, base, size):
                key = size, price.is_spot
                lowest[key] = min(price.usd, lowest.get(key, price.usd))
    except GpukubeError as error:
        notes: tuple[str, ...] = (f"prices could not be read: {error}",)
    else:
        notes = ()
    return LivePrices(tuple(LivePrice(size, usd, spot) for (size, spot), usd in lowest.items()), notes)


def _prices(client: Sender, inquiry: Inquiry, base: str, size: str = "") -> list[Price]:
    first = HttpRequest(
        "GET",
        f"{base}/api/retail/prices",
        params={"api-version": _PRICES_VERSION, "$filter": price_query(inquiry.region, size)},
    )
    with explained(inquiry.where):
        items = listed(client, first, base, ("Items", "NextPageLink"))
        return [price for item in items if (price := read_price(item))]


def _price_client(inquiry: Inquiry, endpoint: Endpoint) -> PipelineClient[HttpRequest, HttpResponse]:
    """Return a client without credentials; for an emulated cloud it ignores the environment's proxies too."""
    factor = _RETRY_FACTOR_EMULATED_S if endpoint.is_emulated else _RETRY_FACTOR_S
    timeout = inquiry.settings.request_timeout_s
    return PipelineClient(
        endpoint.url if endpoint.is_emulated else _PRICES_URL,
        policies=[
            HeadersPolicy({"Accept": "application/json"}),
            UserAgentPolicy(f"gpukube/{__version__}"),
            RetryPolicy(retry_total=_RETRIES, retry_backoff_factor=factor),
        ],
        transport=RequestsTransport(
            use_env_settings=not endpoint.is_emulated, connection_timeout=timeout, read_timeout=timeout
        ),
    )


def require_subscription(inquiry: Inquiry) -> str:
    """Return the subscription of a query.

    Raises:
        SpecError: It names none, or no id.
    """
    subscription = inquiry.account.subscription
    if not subscription:
        raise SpecError(
            "no Azure subscription is given",
            where=Where("--subscription"),
            fix="add --subscription ID, or set AZURE_SUBSCRIPTION_ID (az account show --query id)",
            why="Azure lists VM sizes per subscription",
            code="subscription",
        )
    if not _UUID.fullmatch(subscription):
        raise SpecError(
            f'"{subscription}" is not a subscription id',
            where=Where("--subscription"),
            fix="write the id, such as 00000000-0000-0000-0000-000000000000",
            code="subscription",
        )
    return subscription
