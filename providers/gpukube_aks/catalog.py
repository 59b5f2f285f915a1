"""AKS's part of the catalog, and of the search for machines.

In scope: MIG profiles, drivers, network, and disks per size. Out of scope: calls (`live.market`, `live.capacity`), and
parsing their responses (`facts.listings`, `facts.capacity`).

Sources: docs: aks/use-nvidia-gpu; drivers by size: Azure/AgentBaker, pkg/agent/datamodel/gpu_components.go.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpukube.core.capacity_sources import CloudCapacity
from gpukube.core.cloud_catalog import CloudCatalog, Disks, Fact, Network
from gpukube.provider import importing_sdk
from gpukube_aks.facts.fabric import has_infiniband, infiniband_nics, nvme_disks
from gpukube_aks.facts.partitions import CUTS, can_cut

if TYPE_CHECKING:
    from gpukube.core.capacity_sources import CapacityQuery, Offers
    from gpukube.core.cloud_catalog import Findings, Inquiry, LivePrices, PriceInquiry
    from gpukube.gpu.catalog import Machine

_GRID: Final = re.compile(r"Standard_N[CV]\d+\w*_A10_v[45]|Standard_NC\w+_RTXPRO6000BSE_v6")
_DRIVERS: Final = "Azure/AgentBaker, pkg/agent/datamodel/gpu_components.go"
_IMAGES: Final = "docs: aks/use-nvidia-gpu"
_CUT: Final = "docs: aks/gpu-multi-instance"


def _profiles(machine: Machine) -> tuple[str, ...]:
    return tuple(CUTS[str(machine.model)].values()) if can_cut(machine) else ()


def _facts(machine: Machine) -> tuple[Fact, ...]:
    kind = "GRID" if _GRID.fullmatch(machine.name) else "CUDA"
    facts = [Fact(f"AKS installs the {kind} driver; the device plugin is not installed", _DRIVERS)]
    if machine.arch == "arm64":
        facts.append(Fact("AKS's driver for arm64 is not released yet", "Azure/AgentBaker#8745"))
    if can_cut(machine):
        facts.append(Fact("all GPUs of an AKS pool use the same MIG profile, and changing it replaces the pool", _CUT))
    facts.append(Fact("osSKU Ubuntu or AzureLinux; Flatcar has no NVIDIA driver", _IMAGES))
    return tuple(facts)


def _network(machine: Machine) -> Network | None:
    return Network("InfiniBand", infiniband_nics(machine.name)) if has_infiniband(machine.name) else None


def _disks(machine: Machine) -> Disks | None:
    found = nvme_disks(machine.name)
    return Disks(*found) if found else None


def _fetch(inquiry: Inquiry) -> Findings:
    with importing_sdk("azure-mgmt-containerservice and azure-identity", ("azure",), "aks", inquiry.where):
        from gpukube_aks.live.market import fetch  # noqa: PLC0415 - only this call needs the SDK

        return fetch(inquiry)


def _prices(requested: PriceInquiry) -> LivePrices:
    with importing_sdk("azure-mgmt-containerservice and azure-identity", ("azure",), "aks", requested.inquiry.where):
        from gpukube_aks.live.market import fetch_prices  # noqa: PLC0415 - only this call needs the SDK
    return fetch_prices(requested)


def _capacity(query: CapacityQuery) -> Offers:
    with importing_sdk("azure-mgmt-containerservice and azure-identity", ("azure",), "aks", query.inquiry.where):
        from gpukube_aks.live.capacity import fetch_capacity  # noqa: PLC0415 - only this needs the SDK
    return fetch_capacity(query)


CAPACITY: Final = CloudCapacity(_capacity)

CATALOG: Final = CloudCatalog(
    home="eastus",
    region_form=r"[a-z]+\d?",
    region_example="eastus",
    profiles=_profiles,
    facts=_facts,
    network=_network,
    fetch=_fetch,
    prices=_prices,
    disks=_disks,
)
