"""Converts EC2's and AWS's price list's data about instance types to offers of GPU machines.

In scope: filters of these lists, and parsing their items. Out of scope: calls (`live.market`).

Sources: EC2 DescribeInstanceTypes and DescribeSpotPriceHistory, AWS Price List GetProducts (botocore 1.44.5).
"""

from __future__ import annotations

import json
from dataclasses import replace
from math import log
from typing import TYPE_CHECKING, Final

from gpukube.core.jsontree import at, decimal, strings, tree, trees
from gpukube.gpu.catalog import CatalogError
from gpukube.gpu.models import find_models
from gpukube.gpu.refreshed import Offer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

TYPE_FILTER: Final = [{"Name": "instance-type", "Values": ["p*", "g*"]}]
"""Filter for GPU types, which are all in the families p and g; EC2 cannot filter by GpuInfo."""
_MIB: Final = 1024


def price_filters(region: str, *, bare_metal: bool) -> list[dict[str, str]]:
    """Return GetProducts filters: Linux without licenses, on demand, in use; bare metal is sold as dedicated."""
    terms = {
        "regionCode": region,
        "operatingSystem": "Linux",
        "preInstalledSw": "NA",
        "capacitystatus": "Used",
        "marketoption": "OnDemand",
        "tenancy": "Dedicated" if bare_metal else "Shared",
        "productFamily": "Compute Instance (bare metal)" if bare_metal else "Compute Instance",
    }
    return [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in terms.items()]


def read_type(item: Mapping[str, object]) -> Offer | None:
    """Parse one type from DescribeInstanceTypes; None if it has no NVIDIA GPU.

    A fractional GPU has Count 0, LogicalGpuCount 1, and a partition size; its memory is that of the fraction
    (aws/karpenter-provider-aws#8324).
    """
    gpus = trees(item, "GpuInfo", "Gpus")
    if not gpus or str(gpus[0].get("Manufacturer")).upper() != "NVIDIA":
        return None
    gpu = gpus[0]
    part = decimal(gpu, "GpuPartitionSize") or 1.0
    count = decimal(gpu, "Count") or part * (decimal(gpu, "LogicalGpuCount") or 1)
    memory = decimal(item, "MemoryInfo", "SizeInMiB")
    vcpus = decimal(item, "VCpuInfo", "DefaultVCpus")
    architectures = at(item, "ProcessorInfo", "SupportedArchitectures")
    return Offer(
        name=str(item.get("InstanceType")),
        model=_model(str(gpu.get("Name")), (decimal(gpu, "MemoryInfo", "SizeInMiB") or 0) / part),
        gpus=count,
        vcpus=None if vcpus is None else int(vcpus),
        memory_gib=None if memory is None else memory / _MIB,
        arch="arm64" if isinstance(architectures, list) and "arm64" in architectures else "amd64",
        status="current" if item.get("CurrentGeneration", True) else "legacy",
        efa_cards=_efa_cards(item),
    )


def _efa_cards(item: Mapping[str, object]) -> tuple[int, ...]:
    """Return the cards that take an EFA-only interface, at most as many as the type may have EFA interfaces.

    The number of cards alone misleads: some types have one without EFA (eksctl-io/eksctl#8685).
    """
    most = int(decimal(item, "NetworkInfo", "EfaInfo", "MaximumEfaInterfaces") or 0)
    cards = (
        card for card in trees(item, "NetworkInfo", "NetworkCards") if "efa-only" in strings(card, "InterfaceTypes")
    )
    return tuple(int(decimal(card, "NetworkCardIndex") or 0) for card in cards)[:most]


def read_price(text: str) -> tuple[str, float] | None:
    """Parse one product from GetProducts, a JSON string: type and US dollars per hour; None without a price."""
    product = _parsed(text)
    name = at(product, "product", "attributes", "instanceType")
    terms = tree(product, "terms", "OnDemand")
    for term in terms.values():
        for dimension in tree(term, "priceDimensions").values():
            price = decimal(dimension, "pricePerUnit", "USD")
            if name and price:
                return str(name), price
    return None


def read_spot(items: Iterable[Mapping[str, object]]) -> dict[str, float]:
    """Parse DescribeSpotPriceHistory: the lowest price of each type across zones."""
    found: dict[str, float] = {}
    for item in items:
        name, price = str(item.get("InstanceType")), decimal(item, "SpotPrice")
        if price:
            found[name] = min(price, found.get(name, price))
    return found


def read_spot_zones(items: Iterable[Mapping[str, object]]) -> dict[tuple[str, str], float]:
    """Parse DescribeSpotPriceHistory: the newest price of each type in each zone.

    Zone names are those of the calling account; they differ between accounts.
    """
    newest: dict[tuple[str, str], tuple[str, float]] = {}
    for item in items:
        price = decimal(item, "SpotPrice")
        key = str(item.get("InstanceType")), str(item.get("AvailabilityZone") or "")
        at_time = str(item.get("Timestamp") or "")
        if price and at_time >= newest.get(key, ("", 0.0))[0]:
            newest[key] = at_time, price
    return {key: price for key, (_, price) in newest.items()}


def priced(offers: Iterable[Offer], prices: Mapping[str, float], spot: Mapping[str, float]) -> tuple[Offer, ...]:
    """Add prices to offers."""
    return tuple(replace(o, price_usd_h=prices.get(o.name), spot_usd_h=spot.get(o.name)) for o in offers)


def _model(name: str, mib: float) -> str:
    """Return the model by chip and memory ("A100" is two models), or EC2's name if the catalog has no such model."""
    try:
        sizes = find_models(name)
    except CatalogError:
        return name
    if mib <= 0:
        return name
    return str(min(sizes, key=lambda model: abs(log(model.memory_gb * _MIB / mib))))


def _parsed(text: str) -> Mapping[str, object]:
    try:
        return tree(json.loads(text))
    except ValueError:
        return {}
