"""EKS's contribution to the catalog, and to the search for machines.

In scope: MIG profiles, images, drivers, network, and disks per machine. Out of scope: calls (`live.market`,
`live.capacity`), and parsing their responses (`facts.listings`, `facts.capacity`).

Source: docs: eks/ml-eks-optimized-ami.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.capacity_sources import CloudCapacity
from gpukube.core.cloud_catalog import CloudCatalog, Disks, Fact, Network
from gpukube.gpu.mig import profiles
from gpukube.provider import importing_sdk
from gpukube_eks.facts.capacity import is_ultra
from gpukube_eks.facts.fabric import FABRICS, efa_cards
from gpukube_eks.facts.images import SYSTEMS, family_of, find_image

if TYPE_CHECKING:
    from gpukube.core.capacity_sources import CapacityQuery, Offers
    from gpukube.core.cloud_catalog import Findings, Inquiry, LivePrices, PriceInquiry
    from gpukube.gpu.catalog import Machine

_IMAGES: Final = "docs: eks/ml-eks-optimized-ami"


def _profiles(machine: Machine) -> tuple[str, ...]:
    """Return all MIG profiles of the GPU: the GPU Operator's MIG manager can create any."""
    return tuple(p.name for p in profiles(machine.model)) if machine.mig_capable else ()


def _facts(machine: Machine) -> tuple[Fact, ...]:
    images = [(system, image.name) for system in SYSTEMS if (image := find_image(system, machine))]
    if not images:
        text = f"EKS has no image with an NVIDIA driver for the family {family_of(machine.name)}"
        return (Fact(text, _IMAGES),)
    listed = ", ".join(f"{system} ({name})" for system, name in images)
    facts = [Fact(f"image with the NVIDIA driver: {listed}", _IMAGES)]
    if machine.mig_capable:
        facts.append(Fact("MIG on al2023 needs the GPU Operator with its MIG manager", "NVIDIA GPU Operator with MIG"))
    return tuple(facts)


def _network(machine: Machine) -> Network | None:
    efa = efa_cards(machine)
    fabric = FABRICS.get(machine.name)
    return Network("EFA", len(efa), fabric.cards if fabric else 0) if efa else None


def _disks(machine: Machine) -> Disks | None:
    fabric = FABRICS.get(machine.name)
    return Disks(fabric.disks, fabric.disk_gb) if fabric and fabric.disks else None


def _fetch(inquiry: Inquiry) -> Findings:
    with importing_sdk("boto3", ("boto3", "botocore"), "eks", inquiry.where):
        from gpukube_eks.live.market import fetch  # noqa: PLC0415 - only this needs the SDK
    return fetch(inquiry)


def _prices(requested: PriceInquiry) -> LivePrices:
    with importing_sdk("boto3", ("boto3", "botocore"), "eks", requested.inquiry.where):
        from gpukube_eks.live.market import fetch_prices  # noqa: PLC0415 - only this needs the SDK
    return fetch_prices(requested)


def _capacity(query: CapacityQuery) -> Offers:
    with importing_sdk("boto3", ("boto3", "botocore"), "eks", query.inquiry.where):
        from gpukube_eks.live.capacity import fetch_capacity  # noqa: PLC0415 - only this needs the SDK
    return fetch_capacity(query)


CAPACITY: Final = CloudCapacity(_capacity, lambda name, _kind: not is_ultra(name))

CATALOG: Final = CloudCatalog(
    home="us-east-1",
    region_form=r"[a-z]{2,3}(-(gov|iso[a-z]?))?-[a-z]+-\d",
    region_example="us-east-1",
    profiles=_profiles,
    facts=_facts,
    network=_network,
    fetch=_fetch,
    prices=_prices,
    location="region",
    disks=_disks,
)
