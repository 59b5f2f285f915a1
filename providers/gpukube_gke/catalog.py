"""GKE's part of the catalog, and of the search for machines.

In scope: MIG partitions, drivers, and networks per machine. Out of scope: calls (`live.market`, `live.capacity`), and
parsing their responses (`facts.listings`, `facts.prices`, `facts.capacity`).

Source: docs: kubernetes-engine/how-to/gpus.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.capacity_sources import CloudCapacity
from gpukube.core.cloud_catalog import CloudCatalog, Fact, Network
from gpukube.provider import importing_sdk
from gpukube_gke.facts.capacity import is_sold
from gpukube_gke.facts.fabric import fabric_of
from gpukube_gke.facts.partitions import PARTITIONS

if TYPE_CHECKING:
    from gpukube.core.capacity_sources import CapacityQuery, Offers
    from gpukube.core.cloud_catalog import Findings, Inquiry, LivePrices, PriceInquiry
    from gpukube.gpu.catalog import Machine

_GPUS: Final = "docs: kubernetes-engine/how-to/gpus"
_MULTI: Final = "docs: kubernetes-engine/how-to/gpus-multi"
_UBUNTU: Final = {"L4": 535, "H100": 535, "H200": 550, "B200": 570, "RTXPRO6000": 580}
"""Chip -> oldest driver branch that supports it on Ubuntu nodes."""


def _profiles(machine: Machine) -> tuple[str, ...]:
    return tuple(PARTITIONS.get(machine.accelerator, ())) if machine.mig_capable else ()


def _facts(machine: Machine) -> tuple[Fact, ...]:
    facts = [Fact("GKE installs the driver (gpuDriverVersion DEFAULT or LATEST) and runs its own device plugin", _GPUS)]
    if branch := _UBUNTU.get(machine.model.chip):
        facts.append(Fact(f"on Ubuntu it needs driver R{branch} or newer", _GPUS))
    if _profiles(machine):
        facts.append(Fact("all GPUs of a GKE pool use the same MIG size, advertised as nvidia.com/gpu", _MULTI))
    return tuple(facts)


def _network(machine: Machine) -> Network | None:
    fabric = fabric_of(machine.name)
    return Network(fabric.kind, fabric.interfaces) if fabric else None


def _fetch(inquiry: Inquiry) -> Findings:
    with importing_sdk("google-cloud-container", ("google", "grpc", "requests"), "gke", inquiry.where):
        from gpukube_gke.live.market import fetch  # noqa: PLC0415 - only this call needs the SDK
    return fetch(inquiry)


def _prices(requested: PriceInquiry) -> LivePrices:
    with importing_sdk("google-cloud-container", ("google", "grpc", "requests"), "gke", requested.inquiry.where):
        from gpukube_gke.live.market import fetch_prices  # noqa: PLC0415 - only this call needs the SDK
    return fetch_prices(requested)


def _capacity(query: CapacityQuery) -> Offers:
    with importing_sdk("google-cloud-container", ("google", "grpc", "requests"), "gke", query.inquiry.where):
        from gpukube_gke.live.capacity import fetch_capacity  # noqa: PLC0415 - only this needs the SDK
    return fetch_capacity(query)


CAPACITY: Final = CloudCapacity(_capacity, is_sold)

CATALOG: Final = CloudCatalog(
    home="us-central1",
    region_form=r"[a-z]+-[a-z]+\d+",
    region_example="us-central1",
    profiles=_profiles,
    facts=_facts,
    network=_network,
    fetch=_fetch,
    prices=_prices,
    location="location",
)
