"""Searches all machines for parts of GPUs: whole ones, shares that a cloud sells, and MIG slices.

In scope: finding the smallest part with enough memory. Out of scope: which profiles a cloud supports (the providers),
MIG geometry (mig.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from gpukube.gpu.capacity import GPU_RESOURCE
from gpukube.gpu.mig import profiles, resource_name
from gpukube.gpu.selection import variant_reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from gpukube.gpu.machines import Machine, Status
    from gpukube.gpu.refreshed import Entry

_ORDER: Final[dict[Status, int]] = {"current": 0, "legacy": 1, "unknown": 2, "preview": 3, "no-image": 4, "retired": 5}


@dataclass(frozen=True, slots=True)
class Cuts:
    """How a cloud can partition a machine's GPUs.

    Attributes:
        profiles: Available MIG profiles, as NVIDIA names them; () for none.
        mixed: Whether instances can be advertised under their own names (nvidia.com/mig-1g.5gb).
    """

    profiles: tuple[str, ...] = ()
    mixed: bool = False


@dataclass(frozen=True, slots=True)
class Slice:
    """One kind of device, on the machine where it is cheapest.

    Attributes:
        entry: The machine.
        kind: Kind of device.
        profile: MIG profile; "" otherwise.
        memory_gb: Nominal memory, as in NVIDIA's or the cloud's name; usable memory is slightly less.
        per_node: Devices per node.
        single: Resource that a pod requests if all devices have the same name.
        mixed: Resource if instances are named by profile; "" if the cloud cannot, or without MIG.
        confidence: How well the profile's geometry is known; "" without MIG.
    """

    entry: Entry
    kind: Literal["gpu", "share", "mig"]
    profile: str
    memory_gb: float
    per_node: int
    single: str = GPU_RESOURCE
    mixed: str = ""
    confidence: str = ""

    @property
    def price_usd_h(self) -> float | None:
        """Price of the node divided by its devices; None if unknown."""
        price = self.entry.machine.price_usd_h
        return None if price is None else price / self.per_node


def find_slices(entries: Iterable[Entry], at_least_gb: float, cuts: Callable[[Machine], Cuts]) -> tuple[Slice, ...]:
    """Find the devices with enough GPU memory, smallest first.

    Args:
        entries: The catalog; retired and preview machines, and those without a node image, are skipped.
        at_least_gb: Minimum nominal memory of one device.
        cuts: Returns how a machine's cloud can partition it.

    Returns:
        One per cloud, GPU model, and kind, on the machine that is cheapest per device (unknown prices last); sorted by
        memory, then price per device, then model and cloud.
    """
    best: dict[tuple[str, str, str, float], Slice] = {}
    for entry in entries:
        if entry.machine.status in ("retired", "preview", "no-image") or entry.restricted:
            continue
        for found in _slices(entry, cuts(entry.machine)):
            if found.memory_gb < at_least_gb:
                continue
            machine = entry.machine
            key = (machine.provider, str(machine.model), found.profile or found.kind, found.memory_gb)
            if key not in best or _rank(found) < _rank(best[key]):
                best[key] = found
    return tuple(sorted(best.values(), key=_place))


def _slices(entry: Entry, cuts: Cuts) -> Iterator[Slice]:
    machine = entry.machine
    kind: Literal["gpu", "share"] = "share" if machine.is_fractional else "gpu"
    yield Slice(entry, kind, "", machine.gpu_memory_gib, machine.devices)
    for profile in profiles(machine.model):
        if profile.name in cuts.profiles:
            yield Slice(
                entry,
                "mig",
                profile.name,
                profile.memory_gb,
                machine.devices * profile.max_instances,
                mixed=resource_name(profile) if cuts.mixed else "",
                confidence=profile.confidence,
            )


def _rank(found: Slice) -> tuple[bool, int, bool, float, int, str]:
    """Sort key of the machines for one kind of device: ordinary and current before cheap, like selection."""
    machine = found.entry.machine
    price = found.price_usd_h
    return (
        bool(variant_reason(machine)),
        _ORDER[machine.status],
        price is None,
        price or 0,
        found.per_node,
        machine.name,
    )


def _place(found: Slice) -> tuple[float, bool, float, str, str, Sequence[str]]:
    machine, price = found.entry.machine, found.price_usd_h
    return found.memory_gb, price is None, price or 0, str(machine.model), machine.provider, (found.profile,)
