"""Which types `catalog list` shows.

In scope: the filters and the order. Out of scope: how they are given on the command line (cli).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpukube.gpu.models import MODELS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpukube.gpu.machines import Machine
    from gpukube.gpu.models import GpuModel
    from gpukube.gpu.refreshed import Entry

DEPLOYABLE: Final = ("current", "legacy", "preview", "unknown")
"""Statuses that are shown when none is asked for."""


@dataclass(frozen=True, slots=True)
class Filters:
    """What must hold of a type; an empty or absent filter holds of all.

    Attributes:
        providers: Of these clouds.
        models: With one of these GPUs.
        gpu_memory_gib: Each GPU, or the share, has at least so much.
        mig: Whether it can be cut; a type where that is unconfirmed cannot.
        arch: CPU architecture.
        max_price: US dollars per hour of a node, on demand; a type without a known price does not hold.
        statuses: One of these.
        region: Not one that a refresh of this region did not see.
    """

    providers: tuple[str, ...] = ()
    models: tuple[GpuModel, ...] = ()
    gpu_memory_gib: float | None = None
    mig: bool | None = None
    arch: str = ""
    max_price: float | None = None
    statuses: tuple[str, ...] = ()
    region: str = ""

    def holds(self, machine: Machine) -> bool:
        """Judge a machine by everything but status and region."""
        return (
            (not self.providers or machine.provider in self.providers)
            and (not self.models or machine.model in self.models)
            and (self.gpu_memory_gib is None or machine.gpu_memory_gib >= self.gpu_memory_gib)
            and (self.mig is None or (machine.mig_capable is True) == self.mig)
            and (not self.arch or machine.arch == self.arch)
            and (self.max_price is None or (machine.price_usd_h is not None and machine.price_usd_h <= self.max_price))
        )


@dataclass(frozen=True, slots=True)
class Shown:
    """The types to show, and how many were left out for which reason."""

    entries: tuple[Entry, ...]
    left_out: dict[str, int]


def choose_entries(entries: Iterable[Entry], filters: Filters) -> Shown:
    """Apply the filters; by cloud, then GPU, number and price."""
    requested = filters.statuses or DEPLOYABLE
    kept: list[Entry] = []
    left_out: dict[str, int] = {}
    for entry in entries:
        if not filters.holds(entry.machine):
            continue
        if entry.machine.status not in requested:
            if not filters.statuses:
                left_out[entry.machine.status] = left_out.get(entry.machine.status, 0) + 1
        elif filters.region and filters.region in entry.missing:
            reason = f"not offered in {filters.region}"
            left_out[reason] = left_out.get(reason, 0) + 1
        else:
            kept.append(entry)
    return Shown(tuple(sorted(kept, key=_place)), left_out)


def _place(entry: Entry) -> tuple[str, int, float, bool, float, str]:
    machine = entry.machine
    price = machine.price_usd_h
    return machine.provider, MODELS.index(machine.model), machine.gpus, price is None, price or 0, machine.name
