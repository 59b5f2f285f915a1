"""Availability and prices of VM sizes in the emulated Azure: ARM's Resource SKUs, and the public retail prices.

In scope: both responses, and invented prices. Out of scope: HTTP (`routes`), the sizes themselves (`sizes`).

Sources: docs: rest/api/compute/resource-skus/list, rest/api/cost-management/retail-prices.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpukube_sandbox.aks.answers import arm_error
from gpukube_sandbox.aks.reservations import is_reservable
from gpukube_sandbox.aks.sizes import SIZES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube_sandbox.aks.answers import Json
    from gpukube_sandbox.aks.restrictions import Restrictions
    from gpukube_sandbox.aks.sizes import VmSize

_LOCATION = re.compile(r"location eq '([a-z0-9]+)'")
_TERM = re.compile(r"(\w+) eq '([^']*)'")
_SHARES = {"Standard_NV6ads_A10_v5": 1 / 6, "Standard_NV12ads_A10_v5": 1 / 3, "Standard_NV18ads_A10_v5": 1 / 2}
_GPU_USD = {
    "T4-16GB": 0.35, "V100-16GB": 2.8, "V100-32GB": 3.1, "A100-80GB": 3.5, "A100-40GB": 3.0,
    "H100-94GB": 6.5, "H100-80GB": 11.0, "H200-141GB": 12.0, "A10-24GB": 2.0, "RTXPRO6000-96GB": 4.0,
}  # fmt: skip
_VCPU_USD = 0.03
_FAR = 1.2
_SPOT = 0.3
_PAGE = 60
"""Prices per page; the real service returns 1,000."""


def resource_skus(query: Mapping[str, str], subscription: str, restrictions: Restrictions) -> Json:
    """Return all SKUs of a location, including disks, as in the real response.

    Args:
        query: The request's query.
        subscription: The subscription that asks.
        restrictions: Sizes that it may not use.

    Raises:
        ArmError: 400 for any other filter.
    """
    clause = query.get("$filter", "")
    found = _LOCATION.fullmatch(clause)
    if clause and found is None:
        raise arm_error(400, "InvalidFilterInQueryString", "The filter query specified in the request is not valid.")
    location = found[1] if found else "eastus"
    disk = {"resourceType": "disks", "name": "Premium_LRS", "locations": [location], "capabilities": []}
    return {
        "value": [
            disk,
            *(_sku(size, location, restrictions.wire(subscription, location, size.name)) for size in SIZES.values()),
        ]
    }


def _sku(size: VmSize, location: str, restrictions: list[Json]) -> Json:
    capabilities = {
        "vCPUs": str(size.vcpus),
        "MemoryGB": str(size.memory_gib),
        "CpuArchitectureType": "x64",
        "LowPriorityCapable": "True",
        "RdmaEnabled": str(size.infiniband > 0),
        "CapacityReservationSupported": "True",
        "SupportedCapacityReservationTypes": "Targeted" if is_reservable(size.name) else "Block",
        **({"GPUs": str(size.gpus)} if size.gpus else {}),
    }
    zones = list(size.zones)
    place: Json = {"location": location, "zones": zones, "zoneDetails": []}
    barred: Json = {
        "type": "Location",
        "values": [location],
        "restrictionInfo": {"locations": [location], "zones": []},
        "reasonCode": "NotAvailableForSubscription",
    }
    partly: Json = {
        "type": "Zone",
        "values": [location],
        "restrictionInfo": {"locations": [location], "zones": ["3"]},
        "reasonCode": "NotAvailableForSubscription",
    }
    return {
        "resourceType": "virtualMachines",
        "name": size.name,
        "tier": "Standard",
        "size": size.name.removeprefix("Standard_"),
        "family": size.family,
        "locations": [location],
        "locationInfo": [place],
        "capabilities": [{"name": name, "value": value} for name, value in capabilities.items()],
        "restrictions": restrictions or ([barred] if size.restricted else [partly] if len(zones) < 3 else []),  # noqa: PLR2004 - zones of a region
    }


def spot_usd(size: VmSize, region: str) -> float:
    """Return the invented current Spot price in US dollars per hour."""
    return round(price_of(size, region) * _SPOT, 4)


def price_of(size: VmSize, region: str) -> float:
    """Return an invented price in US dollars per hour."""
    gpus = size.gpus * _SHARES.get(size.name, 1.0)
    return round((gpus * _GPU_USD.get(size.gpu, 1.0) + size.vcpus * _VCPU_USD) * (1.0 if "us" in region else _FAR), 4)


def retail_prices(query: Mapping[str, str], base: str) -> Json:
    """Return one page of retail prices; reading them needs no account.

    Args:
        query: The request's query; `$filter` is a conjunction of equalities.
        base: The page's own address, for the link to the next page.
    """
    clause = query.get("$filter", "")
    terms: dict[str, str] = dict(_TERM.findall(clause))
    region = terms.get("armRegionName", "eastus")
    items = [item for size in SIZES.values() for item in _items(size, region)]
    expected = {"type" if key == "priceType" else key: value for key, value in terms.items()}
    found = [item for item in items if all(item.get(key) == value for key, value in expected.items())]
    skip = query.get("$skip", "0")
    start = int(skip) if skip.isdigit() else 0
    link = (
        f"{base}?api-version={query.get('api-version', '')}&$filter={clause.replace(' ', '%20')}&$skip={start + _PAGE}"
    )
    return {
        "BillingCurrency": "USD",
        "CustomerEntityId": "Default",
        "CustomerEntityType": "Retail",
        "Items": found[start : start + _PAGE],
        "NextPageLink": link if start + _PAGE < len(found) else None,
        "Count": len(found[start : start + _PAGE]),
    }


def _items(size: VmSize, region: str) -> list[Json]:
    """List the meters of one size: Linux and Windows, each as regular, Spot, and Low Priority."""
    if size.restricted:
        return []
    usd = price_of(size, region)
    short = size.name.removeprefix("Standard_").replace("_", " ")
    series = f"Virtual Machines {short.split()[0]} Series"
    return [
        {
            "currencyCode": "USD",
            "type": "Consumption",
            "serviceFamily": "Compute",
            "serviceName": "Virtual Machines",
            "armRegionName": region,
            "armSkuName": size.name,
            "productName": f"{series}{system}",
            "skuName": f"{short}{deal}",
            "meterName": f"{short}{deal}",
            "unitOfMeasure": "1 Hour",
            "retailPrice": round(usd * share * (1.4 if system else 1.0), 4),
        }
        for system in ("", " Windows")
        for deal, share in (("", 1.0), (" Spot", _SPOT), (" Low Priority", 0.25))
    ]
