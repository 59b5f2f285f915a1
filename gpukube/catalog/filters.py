"""Filters and order of `catalog list`.

Out of scope: the command-line options (cli).
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

DEPLOYABLE: Final = ("current", "legacy", "preview", "unknown", "no-image")
"""Statuses shown by default."""


@dataclass(frozen=True, slots=True)
class Filters:
    """Conditions for a type; an empty or absent filter matches every type.

    Attributes:
        providers: Clouds of the type.
        models: GPU models, one of which it has.
        gpu_memory_gib: Minimum memory of each GPU or share.
        mig: Whether it supports MIG; an unconfirmed type does not.
        arch: CPU architecture.
        max_price: Maximum on-demand price in US dollars per node and hour; a type without a known price does not match.
        statuses: Allowed statuses.
        region: Region; a type that a refresh of this region did not see does not match.
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
        """Return whether a machine matches everything except status and region."""
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
    """The types to show, and how many were omitted for which reason."""

    entries: tuple[Entry, ...]
    left_out: dict[str, int]


def choose_entries(entries: Iterable[Entry], filters: Filters) -> Shown:
    """Apply the filters; sort by cloud, GPU, count, and price."""
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
    return Shown(tuple(sorted(kept, key=_sort_key)), left_out)


def _sort_key(entry: Entry) -> tuple[str, int, float, bool, float, str]:
    machine = entry.machine
    price = machine.price_usd_h
    return machine.provider, MODELS.index(machine.model), machine.gpus, price is None, price or 0, machine.name
