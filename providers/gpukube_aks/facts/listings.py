"""What Azure's Resource SKUs and retail prices list, as offers of GPU sizes.

In scope: the filters of those two lists, and reading their items. Out of scope: calls (`live.market`).

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
    """Make the filter of Resource SKUs; nothing but the location can be filtered by."""
    return f"location eq '{region}'"


def price_query(region: str, size: str = "") -> str:
    """Make the filter of the retail prices: virtual machines of a region, as used, in US dollars.

    Args:
        region: Azure's name of it.
        size: The only one that is asked for, in Azure's spelling: values are compared with case; "" for all.
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
    """Read one Resource SKU; None for what is no virtual machine with GPUs of NVIDIA.

    The GPUs are the catalog's own: the API counts a share as one and names no model. A size that the catalog does
    not know has neither.
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
    """Read one retail price; None for Windows, Low Priority, and what is not by the hour."""
    product, meter = str(item.get("productName")), str(item.get("meterName"))
    usd = decimal(item, "retailPrice")
    if product.endswith(" Windows") or meter.endswith(" Low Priority") or not usd:
        return None
    if str(item.get("unitOfMeasure", "1 Hour")) != "1 Hour" or not item.get("armSkuName"):
        return None
    return Price(str(item["armSkuName"]), usd, is_spot=str(item.get("skuName")).endswith(" Spot"))


def priced(offers: Iterable[Offer], prices: Iterable[Price]) -> tuple[Offer, ...]:
    """Put prices to sizes; the lowest where a size has several."""
    found: dict[tuple[str, bool], float] = {}
    for price in prices:
        key = (price.size.lower(), price.is_spot)
        found[key] = min(price.usd, found.get(key, price.usd))
    return tuple(
        replace(o, price_usd_h=found.get((o.name.lower(), False)), spot_usd_h=found.get((o.name.lower(), True)))
        for o in offers
    )


def _restriction(item: Mapping[str, object]) -> str:
    """Return why the subscription cannot have the size in the whole region; a zone alone is no such reason."""
    for restriction in trees(item, "restrictions"):
        if str(restriction.get("type")) == "Location":
            return str(restriction.get("reasonCode") or "restricted")
    return ""
