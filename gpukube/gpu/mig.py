"""MIG profiles of a GPU, how many instances fit, and which mixes can be placed.

In scope: profiles per model, the placement solver, resource names. Out of scope: a cloud's own
profile names (AKS's MIG1g), and whether a cloud allows MIG (`Machine.mig_capable`).

A GPU instance occupies `size` neighbouring units of the memory grid from one of its `starts`; a mix fits if
ranges can be chosen that do not overlap (NVIDIA MIG User Guide, `nvidia-smi mig -lgipp`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from gpukube.gpu.models import GpuModel, model_named
from gpukube.gpu.refusal import CatalogError, nearest
from gpukube.gpu.tables import mig_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


RESOURCE_PREFIX: Final = "nvidia.com/mig-"
_PROFILE: Final = re.compile(r"(?P<slices>\d+g)\.(?P<gib>\d+)gb(?P<extra>.*)")


@dataclass(frozen=True, slots=True)
class MigProfile:
    """One GPU instance profile of one model; the same name is a different fraction on another model.

    Attributes:
        model: Canonical model name, "A100-40GB".
        name: As NVIDIA writes it, "1g.5gb", "1g.5gb+me".
        slice_width: Compute slices: 1, 2, 3, 4 or 7.
        memory_slices: Eighths of the memory on seven-slice GPUs, quarters on A30 and RTX PRO 6000.
        memory_gb: The number in the name.
        memory_mib: Memory that the driver reports, slightly less than in the name; None if no report is known.
        max_instances: Maximum on one GPU.
        starts: Grid units at which an instance may start.
        size: Grid units it occupies.
        confidence: confirmed, vendor-mock, inferred or unconfirmed: how well the placement is known.
        engines: Media engines (nvdec, nvenc, jpeg, ofa); () when unknown.
    """

    model: str
    name: str
    slice_width: int
    memory_slices: int
    memory_gb: int
    memory_mib: int | None
    max_instances: int
    starts: tuple[int, ...]
    size: int
    confidence: str
    engines: tuple[int, ...] = ()

    @property
    def is_media_extension(self) -> bool:
        """Whether it includes media engines: +me or +me.all."""
        return "+me" in self.name

    @property
    def attribute(self) -> str:
        """The suffix after the memory in the name: "", "+me", "+gfx", "+me.all", or "-me"."""
        return self.name.partition("gb")[2]

    @property
    def ranges(self) -> tuple[frozenset[int], ...]:
        """The grid units of each possible position of an instance."""
        return tuple(frozenset(range(start, start + self.size)) for start in self.starts)


@dataclass(frozen=True, slots=True)
class Placement:
    """One instance on the grid: units [start, start + profile.size)."""

    profile: MigProfile
    start: int

    @property
    def units(self) -> frozenset[int]:
        """The grid units that it occupies."""
        return frozenset(range(self.start, self.start + self.profile.size))


def is_mig_model(model: GpuModel) -> bool:
    """Return whether the chip supports MIG; `Machine.mig_capable` is whether the cloud allows it."""
    return bool(_profiles().get(model.name))


def profiles(model: GpuModel) -> tuple[MigProfile, ...]:
    """Return the model's profiles, smallest first; () if the chip has no MIG."""
    return _profiles().get(model.name, ())


def find_profile(model: GpuModel, text: str) -> MigProfile:
    """Find a profile by NVIDIA's spelling.

    Raises:
        CatalogError: mig-capable (the chip has no MIG; lists the models that do), or mig-profile (unknown; lists the
            nearest of the same width first, then all).
    """
    known = profiles(model)
    if not known:
        choices = ", ".join(model.name for model in _mig_models() if model.sold)
        raise CatalogError(
            f"{model} does not support MIG",
            why="the chip has no MIG",
            fix=f"write timeSlicing or mps instead, or choose a model with MIG: {choices}",
            code="mig-capable",
        )
    for profile in known:
        if profile.name == text:
            return profile
    raise _unknown_profile(model, text)


def known_to_none(text: str) -> CatalogError | None:
    """Return the error for a profile that no GPU has; None if some model has it."""
    known = dict.fromkeys(profile.name for found in _profiles().values() for profile in found)
    if text in known:
        return None
    names = _nearest_profiles(known, text)
    return CatalogError(
        f'"{text}" is not a MIG profile of any GPU',
        fix=f"did you mean {names[0]}? gpukube catalog mig MODEL lists the profiles of a model",
        code="mig-profile",
    )


def instances_per_gpu(model: GpuModel, profile: str) -> int:
    """Count the instances of one profile on one GPU: 7 for A100-40GB, "1g.5gb".

    Raises:
        CatalogError: See find_profile.
    """
    return find_profile(model, profile).max_instances


def resource_name(profile: MigProfile | str) -> str:
    """Return the name a node advertises under the mixed strategy: nvidia.com/mig-1g.5gb.

    "+" becomes ".", "-" stays: 1g.24gb+me.all is mig-1g.24gb.me.all (NVIDIA/k8s-device-plugin v0.20.0,
    internal/rm).
    """
    name = profile if isinstance(profile, str) else profile.name
    return RESOURCE_PREFIX + name.replace("+", ".")


def is_same_profile(first: str, second: str) -> bool:
    """Compare two names; the memory in a name may differ by one between boards and drivers (NVIDIA/mig-parted#31)."""
    one, other = _PROFILE.fullmatch(first), _PROFILE.fullmatch(second)
    if one is None or other is None:
        return first == second
    alike = (one["slices"], one["extra"]) == (other["slices"], other["extra"])
    return alike and abs(int(one["gib"]) - int(other["gib"])) <= 1


def fits(model: GpuModel, layout: Sequence[str]) -> bool:
    """Return whether profiles fit together on one GPU; raise CatalogError for an unknown profile."""
    return place_layout(model, layout) is not None


def place_layout(model: GpuModel, layout: Sequence[str]) -> tuple[Placement, ...] | None:
    """Place profiles on one GPU.

    Returns:
        Placements in the order in which to create them (hardest_first); None if they do not fit together.

    Raises:
        CatalogError: See find_profile.
    """
    return place_beside(model, (), [find_profile(model, name) for name in layout])


def place_beside(
    model: GpuModel, live: Sequence[Placement], requested: Sequence[MigProfile]
) -> tuple[Placement, ...] | None:
    """Place more profiles on a GPU without moving its instances; otherwise like place_layout."""
    everything = [*(placement.profile for placement in live), *requested]
    if sum(p.size for p in everything) > grid_units(model) or not media_fit(model, everything):
        return None
    taken = frozenset(unit for placement in live for unit in placement.units)
    return _place(sorted(requested, key=hardest_first), taken)


def maximal_mixes(model: GpuModel) -> tuple[tuple[str, ...], ...]:
    """Return the maximal mixes of plain profiles, to which nothing can be added; () without MIG."""
    for row in mig_table()["models"]:
        if row["name"] == model.name:
            return tuple(_mix(text) for text in row["mixes"])
    return ()


def hardest_first(profile: MigProfile) -> tuple[int, int, str]:
    """Sort key for placing profiles: the largest first; at equal size those with fewer positions, 4g before 3g."""
    return -profile.size, len(profile.starts), profile.name


def grid_units(model: GpuModel) -> int:
    """Return the number of units of the memory grid: 8 on seven-slice GPUs, 4 on A30, 12 on RTX PRO 6000."""
    return next(row["gridUnits"] for row in mig_table()["models"] if row["name"] == model.name)


def pci_ids(model: GpuModel) -> tuple[str, ...]:
    """Return the PCI device ids of a model's boards, "20B0"; () if none is known or the chip has no MIG."""
    return next((tuple(row["pciIds"]) for row in mig_table()["models"] if row["name"] == model.name), ())


def media_fit(model: GpuModel, requested: Sequence[MigProfile]) -> bool:
    """Return whether the media engines suffice: at most one +me, and no more of any kind than the full GPU has.

    The rule is inferred from NVIDIA's tables (it matches every published maximum); unknown engines are not counted.
    """
    if sum(p.is_media_extension for p in requested) > 1:
        return False
    whole = max(profiles(model), key=lambda p: p.size).engines
    if not whole or not all(p.engines for p in requested):
        return True
    return all(sum(p.engines[kind] for p in requested) <= limit for kind, limit in enumerate(whole))


def _place(
    requested: Sequence[MigProfile], taken: frozenset[int], last: Placement | None = None
) -> tuple[Placement, ...] | None:
    """Try all positions; among equal instances, which are adjacent in the order, each starts after the previous one."""
    if not requested:
        return ()
    first, *others = requested
    behind = last.start if last is not None and last.profile == first else -1
    for start, units in zip(first.starts, first.ranges, strict=True):
        if start <= behind or units & taken:
            continue
        placed = Placement(first, start)
        rest = _place(others, taken | units, placed)
        if rest is not None:
            return (placed, *rest)
    return None


def _mix(text: str) -> tuple[str, ...]:
    parts = [part.split("x", 1) for part in text.split(",")]
    return tuple(name for count, name in parts for _ in range(int(count)))


def _unknown_profile(model: GpuModel, text: str) -> CatalogError:
    names = _nearest_profiles([profile.name for profile in profiles(model)], text)
    why = ""
    if re.match(r"\d+c\.", text):
        why = "the device plugin advertises whole GPU instances only, no compute instances (1c.3g.20gb)"
    elif other := [m for m in _mig_models() if any(p.name == text for p in profiles(m))]:
        why = f"it is a profile of {', '.join(map(str, other))}; the memory in the name is the model's"
    return CatalogError(
        f'"{text}" is not a MIG profile of {model}',
        why=why,
        fix=f"did you mean {names[0]}? {model} has {', '.join(p.name for p in profiles(model))}",
        code="mig-profile",
    )


def _nearest_profiles(known: Iterable[str], text: str) -> list[str]:
    requested = text.casefold().removeprefix("nvidia.com/").removeprefix("mig-").removeprefix("mig")
    requested = re.sub(r"^\d+c\.", "", requested)
    width = requested.partition("g")[0]
    names = nearest(requested, known)
    exact = [name for name in names if name.replace("+", ".") == requested.replace("+", ".")]
    same_width = [name for name in names if name.startswith(f"{width}g.")]
    return [*exact, *same_width, *names]


@cache
def _mig_models() -> tuple[GpuModel, ...]:
    return tuple(model_named(row["name"]) for row in mig_table()["models"])


@cache
def _profiles() -> dict[str, tuple[MigProfile, ...]]:
    found: dict[str, list[MigProfile]] = {}
    for row in mig_table()["profiles"]:
        found.setdefault(row["model"], []).append(
            MigProfile(
                model=row["model"],
                name=row["name"],
                slice_width=row["computeSlices"],
                memory_slices=row["memorySlices"],
                memory_gb=row["memoryGB"],
                memory_mib=row.get("memoryMiB"),
                max_instances=row["max"],
                starts=tuple(row["starts"]),
                size=row["size"],
                confidence=row["confidence"],
                engines=tuple(row.get("engines", ())),
            )
        )
    return {name: tuple(sorted(rows, key=lambda p: (p.slice_width, p.memory_gb))) for name, rows in found.items()}
