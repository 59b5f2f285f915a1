"""Reads offers of GPU machines from Compute Engine's machine and accelerator types.

In scope: the filter of those lists, and parsing their items. Out of scope: prices (`prices`), calls (`live.market`).

Sources: docs: compute/docs/reference/rest/v1/machineTypes and acceleratorTypes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.jsontree import at, decimal, tree, trees
from gpukube.gpu.attached import ATTACHED
from gpukube.gpu.catalog import machines
from gpukube.gpu.refreshed import Offer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from gpukube.gpu.machines import Status

TYPE_FILTER: Final = 'name eq "[ag][0-9].*"'
"""Filter for machines with built-in GPUs, families a2, a3, ... and g2, g4, ...; a regular expression for the whole
name."""

_MIB: Final = 1024
_STATUSES: Final[Mapping[str, Status]] = {"DEPRECATED": "legacy", "OBSOLETE": "retired", "DELETED": "retired"}


def scoped(pages: Iterable[Mapping[str, object]], region: str, key: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield the items of an aggregated list in the zones of a region, each with its zone.

    Args:
        pages: Pages of the list.
        region: The region.
        key: Member with the items, machineTypes for machineTypes.aggregatedList.
    """
    for page in pages:
        for scope, found in tree(page, "items").items():
            zone = scope.removeprefix("zones/")
            if zone.rpartition("-")[0] == region:
                yield from ((zone, item) for item in trees(found, key))


def read_machines(pages: Iterable[Mapping[str, object]], region: str) -> tuple[Offer, ...]:
    """Parse machineTypes.aggregatedList: machines with NVIDIA GPUs in any zone of the region."""
    found: dict[str, Offer] = {}
    for _, item in scoped(pages, region, "machineTypes"):
        offer = _machine(item)
        if offer is not None:
            found.setdefault(offer.name, offer)
    return tuple(found.values())


def bundled_ssds(pages: Iterable[Mapping[str, object]], region: str) -> dict[str, int]:
    """Return the number of local SSDs included in each machine."""
    found: dict[str, int] = {}
    for _, item in scoped(pages, region, "machineTypes"):
        count = decimal(item, "bundledLocalSsds", "partitionCount")
        found[str(item.get("name"))] = int(count or 0)
    return found


def read_accelerators(pages: Iterable[Mapping[str, object]], region: str) -> tuple[Offer, ...]:
    """Parse acceleratorTypes.aggregatedList: GPUs of the region that attach to N1 machines, in each count.

    The catalog decides which GPUs attach: the API lists built-in ones too.
    """
    most: dict[str, float] = {}
    for _, item in scoped(pages, region, "acceleratorTypes"):
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
