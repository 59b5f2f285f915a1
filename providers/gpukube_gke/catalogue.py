"""What GKE contributes to the catalogue.

Lives here: MIG partitions and drivers per machine, and reading what Compute Engine says. Must not live here: prices
(`prices`), calls (`market`).

Sources: docs: compute/docs/reference/rest/v1/machineTypes and acceleratorTypes, kubernetes-engine/how-to/gpus.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.cloud_catalogue import CloudCatalogue, Fact
from gpukube.core.jsontree import at, decimal, tree, trees
from gpukube.gpu.attached import ATTACHED
from gpukube.gpu.catalogue import machines
from gpukube.gpu.refreshed import Offer
from gpukube.provider import importing_sdk
from gpukube_gke.partitions import PARTITIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from gpukube.core.cloud_catalogue import Findings, Inquiry
    from gpukube.gpu.catalogue import Machine
    from gpukube.gpu.machines import Status

__all__ = ["CATALOGUE", "TYPE_FILTER", "bundled_ssds", "in_region", "read_accelerators", "read_machines"]

TYPE_FILTER: Final = 'name eq "[ag][0-9].*"'
"""Machines that GPUs are built into are of the families a2, a3, ... and g2, g4, ...; the word is a regular expression
that has to match the whole name."""
_MIB: Final = 1024
_GPUS: Final = "docs: kubernetes-engine/how-to/gpus"
_MULTI: Final = "docs: kubernetes-engine/how-to/gpus-multi"
_STATUSES: Final[Mapping[str, Status]] = {"DEPRECATED": "legacy", "OBSOLETE": "retired", "DELETED": "retired"}
_UBUNTU: Final = {"L4": 535, "H100": 535, "H200": 550, "B200": 570, "RTXPRO6000": 580}
"""Chip -> the oldest driver branch that Ubuntu nodes need."""


def in_region(scope: str, region: str) -> bool:
    """Tell whether the scope of an aggregated list, zones/us-central1-a, is a zone of a region."""
    return scope.removeprefix("zones/").rpartition("-")[0] == region


def read_machines(pages: Iterable[Mapping[str, object]], region: str) -> tuple[Offer, ...]:
    """Read machineTypes.aggregatedList: machines with GPUs of NVIDIA in any zone of the region."""
    found: dict[str, Offer] = {}
    for item in _scoped(pages, region, "machineTypes"):
        offer = _machine(item)
        if offer is not None:
            found.setdefault(offer.name, offer)
    return tuple(found.values())


def bundled_ssds(pages: Iterable[Mapping[str, object]], region: str) -> dict[str, int]:
    """Read the local SSDs that come with each machine."""
    found: dict[str, int] = {}
    for item in _scoped(pages, region, "machineTypes"):
        count = decimal(item, "bundledLocalSsds", "partitionCount")
        found[str(item.get("name"))] = int(count or 0)
    return found


def read_accelerators(pages: Iterable[Mapping[str, object]], region: str) -> tuple[Offer, ...]:
    """Read acceleratorTypes.aggregatedList: GPUs of the region that are attached to N1 machines, in each number.

    Which GPUs those are is the catalogue's own: the API lists built-in ones too.
    """
    most: dict[str, float] = {}
    for item in _scoped(pages, region, "acceleratorTypes"):
        name, cards = str(item.get("name")), decimal(item, "maximumCardsPerInstance") or 0
        most[name] = max(cards, most.get(name, 0))
    parts = [m for m in machines("gke") if m.name == ATTACHED and m.gpus <= most.get(m.accelerator, 0)]
    return tuple(Offer(ATTACHED, str(m.model), m.gpus, accelerator=m.accelerator) for m in parts)


def _machine(item: Mapping[str, object]) -> Offer | None:
    accelerators = trees(item, "accelerators")
    kind = str(accelerators[0].get("guestAcceleratorType")) if accelerators else ""
    if not kind.startswith("nvidia-"):
        return None
    vcpus, memory = decimal(item, "guestCpus"), decimal(item, "memoryMb")
    state = str(at(item, "deprecated", "state") or "")
    return Offer(
        name=str(item.get("name")),
        model=kind,
        gpus=decimal(accelerators[0], "guestAcceleratorCount"),
        vcpus=None if vcpus is None else int(vcpus),
        memory_gib=None if memory is None else memory / _MIB,
        arch="arm64" if str(item.get("architecture")).upper() == "ARM64" else "amd64",
        accelerator=kind,
        status=_STATUSES.get(state, ""),
    )


def _scoped(pages: Iterable[Mapping[str, object]], region: str, key: str) -> Iterator[Mapping[str, object]]:
    for page in pages:
        for scope, found in tree(page, "items").items():
            if in_region(str(scope), region):
                yield from trees(found, key)


def _profiles(machine: Machine) -> tuple[str, ...]:
    return tuple(PARTITIONS.get(machine.accelerator, ())) if machine.mig_capable else ()


def _facts(machine: Machine) -> tuple[Fact, ...]:
    facts = [Fact("GKE installs the driver (gpuDriverVersion DEFAULT or LATEST) and runs its own device plugin", _GPUS)]
    if branch := _UBUNTU.get(machine.model.chip):
        facts.append(Fact(f"on Ubuntu it needs driver R{branch} or newer", _GPUS))
    if _profiles(machine):
        facts.append(Fact("GKE cuts all GPUs of a pool alike and shows the instances as nvidia.com/gpu", _MULTI))
    return tuple(facts)


def _fetch(inquiry: Inquiry) -> Findings:
    with importing_sdk("google-cloud-container", ("google", "grpc", "requests"), "gke", inquiry.where):
        from gpukube_gke.market import fetch  # noqa: PLC0415 - the SDK is needed for this alone
    return fetch(inquiry)


CATALOGUE: Final = CloudCatalogue(
    home="us-central1",
    region_form=r"[a-z]+-[a-z]+\d+",
    region_example="us-central1",
    profiles=_profiles,
    facts=_facts,
    fetch=_fetch,
)
