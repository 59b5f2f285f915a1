"""Computes prices of Google Cloud machines from the SKUs of the Cloud Billing Catalog.

In scope: the SKUs of each machine, and their sum. Out of scope: calls (`live.market`), machines (`listings`).

A machine is billed by its parts: vCPUs, GiB of memory, GPUs, and local SSDs, whose price is per month. A machine with a
part that has no SKU in the region gets no price. The families whose SKUs are uncertain (A3 Mega and Ultra, A4, A4X,
shares of a G4) keep their old price.

Sources: docs: billing/docs/reference/rest/v1/services.skus (descriptions and resource groups);
skypilot-org/skypilot sky/catalog/data_fetchers/fetch_gcp.py; Cyclenerd/google-cloud-pricing-cost-calculator.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from gpukube.core.jsontree import decimal, tree, trees
from gpukube.gpu.attached import ATTACHED, find_host
from gpukube.gpu.catalog import find_machine
from gpukube.gpu.refreshed import Offer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gpukube.gpu.catalog import Machine

COMPUTE_ENGINE: Final = "6F81-5844-456A"
"""Id of Compute Engine in the catalog."""

_SERIES: Final[Mapping[str, str]] = {
    "a2-": "A2 Instance",
    "a3-highgpu-": "A3 Instance",
    "g2-": "G2 Instance",
    "g4-": "G4 Instance",
}
"""Prefix of machine names -> prefix of the descriptions of their vCPU and memory SKUs."""
_GPUS: Final[Mapping[str, str]] = {
    "nvidia-tesla-a100": "Nvidia Tesla A100 GPU",
    "nvidia-a100-80gb": "Nvidia Tesla A100 80GB GPU",
    "nvidia-h100-80gb": "Nvidia H100 80GB GPU",
    "nvidia-l4": "Nvidia L4 GPU",
    "nvidia-rtx-pro-6000": "RTX 6000 96GB",
    "nvidia-tesla-t4": "Nvidia Tesla T4 GPU",
    "nvidia-tesla-v100": "Nvidia Tesla V100 GPU",
    "nvidia-tesla-p100": "Nvidia Tesla P100 GPU",
    "nvidia-tesla-p4": "Nvidia Tesla P4 GPU",
}
"""Accelerator type -> prefix of the descriptions of its SKUs."""
_HOST: Final = "N1 Predefined Instance"
"""Prefix of the SKU descriptions of N1 machines with a predefined shape; custom shapes have others."""
_SSD: Final = "SSD backed Local Storage"
_SPOT_WORDS: Final = re.compile(r"^Spot Preemptible | attached to (Spot )?Preemptible VMs")
_OTHER_DEALS: Final = re.compile(r"commitment|reserved|dws|custom|premium|sole tenancy", re.IGNORECASE)
_PLACE: Final = re.compile(r"( running)? in .*$")
_SSD_GIB: Final = 375
_HOURS_OF_MONTH: Final = 730


@dataclass(frozen=True, slots=True)
class UnitPrices:
    """Unit prices of a region: (part, whether spot) -> US dollars per hour; SSDs per GiB and month."""

    units: dict[tuple[str, bool], float] = field(default_factory=dict)

    def unit(self, what: str, *, spot: bool) -> float | None:
        """Return the price of a part; None if the region has no SKU for it."""
        return self.units.get((what, spot))


def read_skus(items: Iterable[Mapping[str, object]], region: str) -> UnitPrices:
    """Parse the relevant SKUs: of the region, on demand or spot, without other discounts. The first of several wins."""
    found: dict[tuple[str, bool], float] = {}
    for item in items:
        text, category = str(item.get("description")), tree(item, "category")
        regions, usage = item.get("serviceRegions"), category.get("usageType")
        if not isinstance(regions, list) or region not in regions or _OTHER_DEALS.search(text):
            continue
        if usage not in ("OnDemand", "Preemptible"):
            continue
        price = _unit_price(item)
        spot = usage == "Preemptible" or bool(_SPOT_WORDS.search(text))  # spot SSDs are listed as OnDemand
        what = _PLACE.sub("", _SPOT_WORDS.sub("", text))
        if price:
            found.setdefault((what, spot), price)
    return UnitPrices(found)


def price_offers(offers: Iterable[Offer], ssds: Mapping[str, int], prices: UnitPrices) -> tuple[Offer, ...]:
    """Add prices to machines whose parts all have one."""
    return tuple(
        replace(
            offer, price_usd_h=_sum(offer, ssds, prices, spot=False), spot_usd_h=_sum(offer, ssds, prices, spot=True)
        )
        for offer in offers
    )


def price_machine(machine: Machine, prices: UnitPrices, *, spot: bool) -> float | None:
    """Return the price of a whole machine, including an N1 machine's GPUs; None if a part has no SKU."""
    offer = Offer(
        name=machine.name,
        model=str(machine.model),
        gpus=machine.gpus,
        vcpus=machine.vcpus,
        memory_gib=machine.memory_gib,
        accelerator=machine.accelerator,
    )
    host = find_host(machine.name)
    if host is None:
        return _sum(offer, {machine.name: int((machine.local_ssd_gib or 0) // _SSD_GIB)}, prices, spot=spot)
    gpus = _sum(replace(offer, name=ATTACHED), {}, prices, spot=spot)
    cpu, ram = prices.unit(f"{_HOST} Core", spot=spot), prices.unit(f"{_HOST} Ram", spot=spot)
    if gpus is None or cpu is None or ram is None or "custom" in machine.name:
        return None
    return round(gpus + cpu * host.vcpus + ram * host.memory_gib, 4)


def _sum(offer: Offer, ssds: Mapping[str, int], prices: UnitPrices, *, spot: bool) -> float | None:
    gpu = prices.unit(_GPUS.get(offer.accelerator, ""), spot=spot)
    if gpu is None or not offer.gpus:
        return None
    if offer.name == ATTACHED:
        return round(gpu * offer.gpus, 4)
    series = next((words for start, words in _SERIES.items() if offer.name.startswith(start)), "")
    cpu, ram = prices.unit(f"{series} Core", spot=spot), prices.unit(f"{series} Ram", spot=spot)
    ssd = prices.unit(_SSD, spot=spot) if ssds.get(offer.name) else 0.0
    if cpu is None or ram is None or ssd is None or offer.vcpus is None or offer.memory_gib is None or _is_share(offer):
        return None
    disks = ssds.get(offer.name, 0) * _SSD_GIB * ssd / _HOURS_OF_MONTH
    return round(cpu * offer.vcpus + ram * offer.memory_gib + gpu * offer.gpus + disks, 4)


def _is_share(offer: Offer) -> bool:
    machine = find_machine("gke", offer.name)
    return machine is not None and machine.is_fractional


def _unit_price(item: Mapping[str, object]) -> float:
    rates = trees(item, "pricingInfo", 0, "pricingExpression", "tieredRates")
    price = tree(rates[-1:], 0, "unitPrice")
    return (decimal(price, "units") or 0.0) + (decimal(price, "nanos") or 0.0) / 1e9
