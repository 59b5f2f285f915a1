"""What EC2 and AWS's price list say of instance types, as offers of GPU machines.

In scope: the filters of those lists, and reading their items. Out of scope: calls (`live.market`).

Sources: EC2 DescribeInstanceTypes and DescribeSpotPriceHistory, AWS Price List GetProducts (botocore 1.44.5).
"""

from __future__ import annotations

import json
from dataclasses import replace
from math import log
from typing import TYPE_CHECKING, Final

from gpukube.core.jsontree import at, decimal, tree, trees
from gpukube.gpu.catalog import CatalogError
from gpukube.gpu.models import find_models
from gpukube.gpu.refreshed import Offer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

TYPE_FILTER: Final = [{"Name": "instance-type", "Values": ["p*", "g*"]}]
"""GPU types are of the families p and g; GpuInfo itself cannot be filtered by."""
_MIB: Final = 1024


def price_filters(region: str, *, bare_metal: bool) -> list[dict[str, str]]:
    """Make the filters of GetProducts: Linux without licences, on demand, as used; bare metal is sold as dedicated."""
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
    """Read one type of DescribeInstanceTypes; None for one without GPUs of NVIDIA.

    A fraction has Count 0, LogicalGpuCount 1 and a partition size, and its memory is the fraction's
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
    )


def read_price(text: str) -> tuple[str, float] | None:
    """Read one product of GetProducts, JSON in a string: type and US dollars per hour; None without a price."""
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
    """Read DescribeSpotPriceHistory: the lowest price of a type over the zones."""
    found: dict[str, float] = {}
    for item in items:
        name, price = str(item.get("InstanceType")), decimal(item, "SpotPrice")
        if price:
            found[name] = min(price, found.get(name, price))
    return found


def read_spot_zones(items: Iterable[Mapping[str, object]]) -> dict[tuple[str, str], float]:
    """Read DescribeSpotPriceHistory: the newest price of each type in each zone.

    Zones are those of the account that asks: their names differ by account.
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
    """Put prices to types."""
    return tuple(replace(o, price_usd_h=prices.get(o.name), spot_usd_h=spot.get(o.name)) for o in offers)


def _model(name: str, mib: float) -> str:
    """Name the model by chip and memory: "A100" is two of them; what EC2 calls it where that is none of ours."""
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
