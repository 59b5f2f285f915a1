"""What AKS contributes to the catalogue.

Lives here: MIG profiles and drivers per size, and reading what Azure's Resource SKUs and retail prices say. Must not
live here: calls (`market`).

Sources: docs: rest/api/compute/resource-skus/list, rest/api/cost-management/retail-prices, aks/use-nvidia-gpu;
drivers by size: Azure/AgentBaker, pkg/agent/datamodel/gpu_components.go.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from gpukube.core.cloud_catalogue import CloudCatalogue, Fact
from gpukube.core.jsontree import decimal, trees
from gpukube.gpu.catalogue import find_machine, refuse_reason
from gpukube.gpu.refreshed import Offer
from gpukube.provider import importing_sdk
from gpukube_aks.cuts import CUTS, can_cut

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gpukube.core.cloud_catalogue import Findings, Inquiry
    from gpukube.gpu.catalogue import Machine

__all__ = ["CATALOGUE", "Price", "price_query", "priced", "read_price", "read_sku", "sku_filter"]

_GRID: Final = re.compile(r"Standard_N[CV]\d+\w*_A10_v[45]|Standard_NC\w+_RTXPRO6000BSE_v6")
_DRIVERS: Final = "Azure/AgentBaker, pkg/agent/datamodel/gpu_components.go"
_IMAGES: Final = "docs: aks/use-nvidia-gpu"
_CUT: Final = "docs: aks/gpu-multi-instance"


class Price(NamedTuple):
    """One price of one size, per hour in US dollars."""

    size: str
    usd: float
    is_spot: bool


def sku_filter(region: str) -> str:
    """Make the filter of Resource SKUs; nothing but the location can be filtered by."""
    return f"location eq '{region}'"


def price_query(region: str) -> str:
    """Make the filter of the retail prices: virtual machines of a region, as used, in US dollars."""
    return " and ".join(
        [
            "priceType eq 'Consumption'",
            "currencyCode eq 'USD'",
            "serviceFamily eq 'Compute'",
            "serviceName eq 'Virtual Machines'",
            f"armRegionName eq '{region}'",
        ]
    )


def read_sku(item: Mapping[str, object]) -> Offer | None:
    """Read one Resource SKU; None for what is no virtual machine with GPUs of NVIDIA.

    The GPUs are the catalogue's own: the API counts a share as one and names no model. A size that the catalogue does
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
    """Say why the subscription cannot have the size in the whole region; a zone alone is no such reason."""
    for restriction in trees(item, "restrictions"):
        if str(restriction.get("type")) == "Location":
            return str(restriction.get("reasonCode") or "restricted")
    return ""


def _profiles(machine: Machine) -> tuple[str, ...]:
    return tuple(CUTS[str(machine.model)].values()) if can_cut(machine) else ()


def _facts(machine: Machine) -> tuple[Fact, ...]:
    kind = "GRID" if _GRID.fullmatch(machine.name) else "CUDA"
    facts = [Fact(f"AKS installs the {kind} driver; the device plugin is not installed", _DRIVERS)]
    if machine.arch == "arm64":
        facts.append(Fact("AKS's own driver on arm64 is still in test", "Azure/AgentBaker#8745"))
    if can_cut(machine):
        facts.append(Fact("AKS cuts all GPUs of a pool alike, and a cut cannot be changed: the pool is replaced", _CUT))
    facts.append(Fact("osSKU Ubuntu or AzureLinux; Flatcar has no NVIDIA driver", _IMAGES))
    return tuple(facts)


def _fetch(inquiry: Inquiry) -> Findings:
    with importing_sdk("azure-mgmt-containerservice and azure-identity", ("azure",), "aks", inquiry.where):
        from gpukube_aks.market import fetch  # noqa: PLC0415 - the SDK is needed for this alone
    return fetch(inquiry)


CATALOGUE: Final = CloudCatalogue(
    home="eastus",
    region_form=r"[a-z]+\d?",
    region_example="eastus",
    profiles=_profiles,
    facts=_facts,
    fetch=_fetch,
)
