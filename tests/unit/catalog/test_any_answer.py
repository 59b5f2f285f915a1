"""Whatever a cloud answers, it is read without a traceback, and the catalog that comes of it is whole."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, get_args

from hypothesis import given, settings
from hypothesis import strategies as st

from gpukube.catalog.documents import list_document
from gpukube.catalog.filters import Filters, choose_entries
from gpukube.gpu.machines import Status, machines
from gpukube.gpu.refreshed import Offer, Stock, lay_over
from gpukube_aks.facts.listings import read_price as read_azure_price
from gpukube_aks.facts.listings import read_sku
from gpukube_eks.facts.listings import read_price, read_spot, read_type
from gpukube_gke.facts.listings import bundled_ssds, read_accelerators, read_machines
from gpukube_gke.facts.prices import price_offers, read_skus

if TYPE_CHECKING:
    from collections.abc import Mapping

_WORDS = """
GpuInfo Gpus Manufacturer NVIDIA Name Count A100 MemoryInfo SizeInMiB InstanceType GpuPartitionSize
product attributes instanceType terms OnDemand priceDimensions pricePerUnit USD SpotPrice name
capabilities value GPUs resourceType virtualMachines restrictions type Location armSkuName
retailPrice productName items zones/us-central1-a machineTypes accelerators guestAcceleratorType
nvidia-l4 guestAcceleratorCount acceleratorTypes maximumCardsPerInstance nvidia-tesla-t4 description
category usageType serviceRegions us-central1 pricingInfo pricingExpression tieredRates unitPrice
units nanos bundledLocalSsds partitionCount deprecated
"""
WORDS = st.sampled_from(_WORDS.split())
SCALARS = st.none() | st.booleans() | st.integers(-5, 10**6) | st.floats() | st.text(max_size=5) | WORDS
ANY = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=5), max_leaves=12
)
OBJECTS = st.dictionaries(WORDS, ANY, max_size=6)


@settings(max_examples=100)
@given(OBJECTS, ANY)
def test_answer_when_of_any_shape_then_read_or_left_out(item: dict[str, object], other: object) -> None:
    read_type(item)
    read_type({"GpuInfo": {"Gpus": [{"Manufacturer": "NVIDIA", **item}]}})
    read_price(json.dumps(item))
    read_price(json.dumps({"product": other, "terms": item}))
    read_spot([item])
    read_sku(item)
    read_sku({"resourceType": "virtualMachines", "capabilities": other, "name": "Standard_NC4as_T4_v3", **item})
    read_azure_price(item)
    pages: list[Mapping[str, object]] = [
        item,
        {"items": {"zones/us-central1-a": {"machineTypes": [item], "acceleratorTypes": [item]}}},
    ]
    offers = (*read_machines(pages, "us-central1"), *read_accelerators(pages, "us-central1"))
    book = read_skus(
        [item, {"serviceRegions": ["us-central1"], "category": {"usageType": "OnDemand"}, **item}], "us-central1"
    )
    price_offers(offers, bundled_ssds(pages, "us-central1"), book)


NAMES = st.sampled_from([*sorted({m.name for m in machines()})[::15], "n1-*", "new.large", "other.large"])
OFFERS = st.builds(
    Offer,
    name=NAMES,
    model=st.sampled_from(["", "L4", "A100", "nvidia-tesla-t4", "H200", "Z9"]),
    gpus=st.none() | st.sampled_from([0.0, 0.25, 1.0, 2.0, 8.0]),
    vcpus=st.none() | st.integers(1, 200),
    arch=st.sampled_from(["", "amd64", "arm64"]),
    status=st.sampled_from(["", "current", "legacy", "retired", "unknown"]),
    price_usd_h=st.none() | st.floats(0.01, 200),
)
STOCKS = st.builds(
    Stock,
    provider=st.sampled_from(["aks", "eks", "gke"]),
    region=st.sampled_from(["eastus", "us-east-1", "us-central1", "elsewhere"]),
    fetched=st.sampled_from(["2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"]),
    offers=st.lists(OFFERS, max_size=6).map(tuple),
)


@settings(max_examples=40)
@given(
    st.lists(STOCKS, max_size=4, unique_by=lambda s: (s.provider, s.region)),
    st.sampled_from(["", "eastus", "elsewhere"]),
)
def test_catalog_when_anything_was_refreshed_then_nothing_embedded_is_lost_and_every_price_has_day_and_region(
    stocks: list[Stock], region: str
) -> None:
    entries = lay_over(stocks, region)
    keys = [(e.machine.provider, e.machine.name, str(e.machine.model), e.machine.gpus) for e in entries]
    assert len(keys) == len(set(keys))
    assert {(m.provider, m.name, str(m.model), m.gpus) for m in machines()} <= set(keys)
    for entry in entries:
        machine = entry.machine
        assert (machine.price_usd_h is None) == (machine.price_region == "") == (machine.price_date == "")
        assert not set(entry.regions) & set(entry.missing)
        assert (entry.source == "refreshed") == bool(entry.regions)
    shown = choose_entries(entries, Filters(statuses=get_args(Status), region=region))
    assert len(shown.entries) + sum(shown.left_out.values()) == len(entries)
    document = list_document(shown, stocks, region)
    assert json.loads(json.dumps(document)) == document


def test_order_when_stocks_come_in_another_one_then_the_same_catalog() -> None:
    offers = (Offer("g6.xlarge", price_usd_h=1.0), Offer("new.large", "L4", 1.0))
    one = Stock("eks", "eu-west-1", "2026-12-01T00:00:00Z", offers)
    two = replace(one, region="eu-north-1", offers=(replace(offers[0], price_usd_h=2.0),))
    assert lay_over([one, two]) == lay_over([two, one])
