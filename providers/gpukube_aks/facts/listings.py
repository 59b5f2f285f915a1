"""Reads offers of GPU sizes from Azure's Resource SKUs and retail prices.

In scope: the filters of those two lists, and parsing their items. Out of scope: calls (`live.market`).

Sources: docs: rest/api/compute/resource-skus/list, rest/api/cost-management/retail-prices.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from gpukube.core.jsontree import decimal, trees
from gpukube.gpu.catalog import find_machine, refuse_reason
from gpukube.gpu.refreshed import Offer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Price(NamedTuple):
    """One price of one size, per hour in US dollars."""

    size: str
    usd: float
    is_spot: bool


def sku_filter(region: str) -> str:
    """Return the filter of Resource SKUs; the API filters by location only."""
    return f"location eq '{region}'"


def price_query(region: str, size: str = "") -> str:
    """Return the filter of the retail prices: pay-as-you-go virtual machines of a region, in US dollars.

    Args:
        region: Azure's name of the region.
        size: The only size to list, in Azure's spelling (values are case-sensitive); "" for all.
    """
    return " and ".join(
        [
            "priceType eq 'Consumption'",
            "currencyCode eq 'USD'",
            "serviceFamily eq 'Compute'",
            "serviceName eq 'Virtual Machines'",
            f"armRegionName eq '{region}'",
            *([f"armSkuName eq '{size}'"] if size else []),
        ]
    )


def read_sku(item: Mapping[str, object]) -> Offer | None:
    """Parse one Resource SKU; return None unless it is a virtual machine with NVIDIA GPUs.

    GPU count and model come from the catalog: the API counts a share as one GPU and names no model. A size that is not
    in the catalog has neither.
    """
    name = str(item.get("name"))
    has = {str(c.get("name")): str(c.get("value")) for c in trees(item, "capabilities")}
    if str(item.get("resourceType")).lower() != "virtualmachines" or not decimal(has, "GPUs"):
        return None
    machine = find_machine("aks", name)
    if machine is None and refuse_reason("aks", name):
        return None
    vcpus, memory = decimal(has, "vCPUs"), decimal(has, "MemoryGB")
    return Offer(
        name=name,
        model=str(machine.model) if machine else "",
        gpus=machine.gpus if machine else None,
        vcpus=None if vcpus is None else int(vcpus),
        memory_gib=memory,
        arch="arm64" if has.get("CpuArchitectureType", "").lower() == "arm64" else "amd64",
        restricted=_restriction(item),
    )


def read_price(item: Mapping[str, object]) -> Price | None:
    """Parse one retail price; return None for Windows, Low Priority, and prices that are not per hour."""
    product, meter = str(item.get("productName")), str(item.get("meterName"))
    usd = decimal(item, "retailPrice")
    if product.endswith(" Windows") or meter.endswith(" Low Priority") or not usd:
        return None
    if str(item.get("unitOfMeasure", "1 Hour")) != "1 Hour" or not item.get("armSkuName"):
        return None
    return Price(str(item["armSkuName"]), usd, is_spot=str(item.get("skuName")).endswith(" Spot"))


def priced(offers: Iterable[Offer], prices: Iterable[Price]) -> tuple[Offer, ...]:
    """Add prices to sizes; the lowest if a size has several."""
    found: dict[tuple[str, bool], float] = {}
    for price in prices:
        key = (price.size.lower(), price.is_spot)
        found[key] = min(price.usd, found.get(key, price.usd))
    return tuple(
        replace(o, price_usd_h=found.get((o.name.lower(), False)), spot_usd_h=found.get((o.name.lower(), True)))
        for o in offers
    )


def _restriction(item: Mapping[str, object]) -> str:
    """Return why the size is unavailable to the subscription in the whole region; ignore restrictions of a zone."""
    for restriction in trees(item, "restrictions"):
        if str(restriction.get("type")) == "Location":
            return str(restriction.get("reasonCode") or "restricted")
    return ""
