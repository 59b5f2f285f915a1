"""What Resource SKUs and retail prices say, read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from azure.core.exceptions import HttpResponseError

from gpukube.core.cloud_catalog import Account, Inquiry
from gpukube.core.values import Settings
from gpukube.errors import AccessError, CloudError, SpecError
from gpukube.gpu.machines import machines
from gpukube_aks.catalog import CATALOG
from gpukube_aks.facts.listings import Price, price_query, priced, read_price, read_sku, sku_filter
from gpukube_aks.live.market import fetch, read_offers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from azure.core.rest import HttpRequest

SUBSCRIPTION = "11111111-2222-3333-4444-555555555555"
INQUIRY = Inquiry("aks", "eastus", Account(subscription=SUBSCRIPTION), Settings())
T4 = "Standard_NC4as_T4_v3"


def sku(name: str = T4, *, kind: str = "virtualMachines", restrictions: object = (), **has: str) -> dict[str, object]:
    values = {"vCPUs": "4", "MemoryGB": "28", "GPUs": "1", "CpuArchitectureType": "x64"} | has
    capabilities = [{"name": key, "value": value} for key, value in values.items() if value]
    return {"resourceType": kind, "name": name, "capabilities": capabilities, "restrictions": list(restrictions)}  # type: ignore[call-overload]  # any list


def price(size: str = T4, usd: object = 0.526, **changes: object) -> dict[str, object]:
    item: dict[str, object] = {
        "armSkuName": size, "retailPrice": usd, "unitOfMeasure": "1 Hour", "meterName": "NC4as T4 v3",
        "skuName": "NC4as T4 v3", "productName": "Virtual Machines NCasT4 v3 Series",
    }  # fmt: skip
    return item | changes


def test_sku_when_it_has_gpus_then_shape_from_azure_and_model_from_the_catalog() -> None:
    offer = read_sku(sku(vCPUs="5", MemoryGB="27.5"))
    assert offer is not None
    assert (offer.name, offer.model, offer.gpus) == (T4, "T4-16GB", 1)
    assert (offer.vcpus, offer.memory_gib, offer.arch, offer.restricted) == (5, 27.5, "amd64", "")


def test_sku_when_it_is_a_share_then_the_catalogs_count_not_azures() -> None:
    offer = read_sku(sku("Standard_NV6ads_A10_v5"))
    assert offer is not None
    assert offer.gpus == pytest.approx(1 / 6, abs=0.001)


@pytest.mark.parametrize(
    "item",
    [
        sku(kind="disks"),
        sku("Standard_D4s_v5", GPUs=""),
        sku(GPUs="0"),
        sku("Standard_ND96is_MI300X_v5", GPUs="8"),
        sku("Standard_NV4as_v4"),
        {},
    ],
)
def test_sku_when_it_is_nothing_of_nvidia_then_none(item: dict[str, object]) -> None:
    assert read_sku(item) is None


def test_sku_when_the_catalog_does_not_know_it_then_without_a_model() -> None:
    offer = read_sku(sku("Standard_NC1_B900_v9", CpuArchitectureType="Arm64"))
    assert offer is not None
    assert (offer.model, offer.gpus, offer.arch) == ("", None, "arm64")


@pytest.mark.parametrize(
    ("restrictions", "said"),
    [
        ([{"type": "Location", "reasonCode": "NotAvailableForSubscription"}], "NotAvailableForSubscription"),
        ([{"type": "Zone", "reasonCode": "NotAvailableForSubscription"}], ""),
        ([{"type": "Zone"}, {"type": "Location", "reasonCode": "QuotaId"}], "QuotaId"),
        ([{"type": "Location"}], "restricted"),
    ],
)
def test_sku_when_restricted_then_only_in_the_whole_region(restrictions: list[object], said: str) -> None:
    offer = read_sku(sku(restrictions=restrictions))
    assert offer is not None
    assert offer.restricted == said


@pytest.mark.parametrize(
    ("item", "read"),
    [
        (price(), Price(T4, 0.526, is_spot=False)),
        (price(skuName="NC4as T4 v3 Spot"), Price(T4, 0.526, is_spot=True)),
        (price(productName="Virtual Machines NCasT4 v3 Series Windows"), None),
        (price(meterName="NC4as T4 v3 Low Priority"), None),
        (price(usd=0), None),
        (price(usd="x"), None),
        (price(unitOfMeasure="1 Month"), None),
        (price(size=""), None),
        ({}, None),
    ],
)
def test_price_when_read_then_linux_by_the_hour(item: dict[str, object], read: Price | None) -> None:
    assert read_price(item) == read


def test_prices_when_a_size_has_several_then_the_lowest_whatever_the_case() -> None:
    offer = read_sku(sku())
    assert offer is not None
    prices = [Price(T4.upper(), 0.6, is_spot=False), Price(T4, 0.5, is_spot=False), Price(T4, 0.1, is_spot=True)]
    (done,) = priced([offer], prices)
    assert (done.price_usd_h, done.spot_usd_h) == (0.5, 0.1)


def test_queries_when_made_then_as_azure_takes_them() -> None:
    assert sku_filter("eastus") == "location eq 'eastus'"
    assert price_query("eastus") == (
        "priceType eq 'Consumption' and currencyCode eq 'USD' and serviceFamily eq 'Compute' and "
        "serviceName eq 'Virtual Machines' and armRegionName eq 'eastus'"
    )


def test_price_query_when_for_one_size_then_its_own_spelling() -> None:
    assert price_query("eastus", T4) == f"{price_query('eastus')} and armSkuName eq '{T4}'"


class FakeResponse:
    """One answer."""

    def __init__(self, body: object, status: int = 200) -> None:
        self.status_code = status
        self.reason = "because"
        self.headers: Mapping[str, str] = {}
        self._body = body

    def json(self) -> object:
        return self._body

    def text(self) -> str:
        return json.dumps(self._body)


class FakeSender:
    """Answers by the order of requests."""

    def __init__(self, *answers: FakeResponse | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    def send_request(self, request: HttpRequest) -> FakeResponse:
        self.asked.append(request.url)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def asked(arm: FakeSender, prices: FakeSender | None) -> object:
    return read_offers(arm, prices, INQUIRY, ("https://arm.test", "https://prices.test"))  # type: ignore[arg-type]  # as much of an answer as is read


def test_ask_when_answers_come_in_pages_then_all_are_read() -> None:
    arm = FakeSender(
        FakeResponse({"value": [sku()], "nextLink": "https://arm.test/next"}),
        FakeResponse({"value": [sku("Standard_NC9_B900_v9")]}),
    )
    prices = FakeSender(
        FakeResponse({"Items": [], "NextPageLink": "https://prices.test/next"}),
        FakeResponse({"Items": [price()], "NextPageLink": None}),
    )
    found = read_offers(arm, prices, INQUIRY, ("https://arm.test", "https://prices.test"))  # type: ignore[arg-type]  # as above
    assert [(o.name, o.price_usd_h) for o in found.offers] == [(T4, 0.526), ("Standard_NC9_B900_v9", None)]
    assert found.priced
    assert found.notes == ("GPU sizes that are not in the catalog: Standard_NC9_B900_v9",)
    assert arm.asked[0].startswith(f"https://arm.test/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Compute/skus?")
    assert "api-version=2021-07-01" in arm.asked[0]
    assert prices.asked[0].startswith("https://prices.test/api/retail/prices?api-version=2023-01-01-preview&")


def test_ask_when_the_next_page_is_elsewhere_then_not_followed() -> None:
    arm = FakeSender(FakeResponse({"value": [], "nextLink": "https://evil.test/next"}))
    with pytest.raises(CloudError, match="another host"):
        asked(arm, None)
    assert len(arm.asked) == 1


def test_ask_when_prices_fail_then_sizes_and_a_note() -> None:
    prices = FakeSender(FakeResponse({"error": {"message": "busy"}}, 503))
    arm, bases = FakeSender(FakeResponse({"value": [sku()]})), ("https://a.test", "https://p.test")
    found = read_offers(arm, prices, INQUIRY, bases)  # type: ignore[arg-type]  # as above
    assert ([o.name for o in found.offers], found.priced, len(found.notes)) == ([T4], False, 1)
    assert found.notes[0].startswith("prices could not be read and are unchanged: ")


def test_ask_when_the_cloud_has_no_public_prices_then_said() -> None:
    found = read_offers(FakeSender(FakeResponse({"value": [sku()]})), None, INQUIRY, ("https://arm.test", ""))  # type: ignore[arg-type]  # as above
    assert (found.priced, found.notes) == (
        False, ("Azure's price list covers the public cloud only; prices are unchanged",)
    )  # fmt: skip


def test_ask_when_skus_are_refused_then_no_answer_at_all() -> None:
    refused = FakeResponse({"error": {"code": "AuthorizationFailed", "message": "no"}}, 403)
    with pytest.raises(AccessError) as raised:
        asked(FakeSender(refused), None)
    assert isinstance(raised.value.__cause__, HttpResponseError)


@pytest.mark.parametrize(
    ("subscription", "said"), [("", "no Azure subscription is given"), ("prod", '"prod" is not a subscription id')]
)
def test_fetch_when_no_subscription_is_named_then_asked_for(subscription: str, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        fetch(Inquiry("aks", "eastus", Account(subscription=subscription), Settings()))


def test_facts_when_a_size_has_the_grid_driver_then_said() -> None:
    grid = {m.name for m in machines("aks") if "GRID" in CATALOG.facts(m)[0].text}
    assert grid == {m.name for m in machines("aks") if "_A10_v" in m.name or "RTXPRO6000BSE" in m.name}
