"""Finds the minimum number of GPUs for the requested MIG instances, and the layout of each: exact and deterministic.

In scope: several GPUs of one model. Out of scope: one GPU (mig, mig_room), machines and nodes,
and the arithmetic of covering (covering).

A GPU has one of a few mixes of instances; the answer is the minimum number of mixes that covers the request.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import ceil
from typing import TYPE_CHECKING, Final

from gpukube.gpu.covering import cover
from gpukube.gpu.mig import find_profile, fits, hardest_first, profiles
from gpukube.gpu.refusal import CatalogError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpukube.gpu.covering import Mix
    from gpukube.gpu.mig import MigProfile
    from gpukube.gpu.models import GpuModel

MOST_INSTANCES: Final = 1_000_000
"""Maximum instances of one profile in a request: about 18,000 nodes with eight GPUs."""


@dataclass(frozen=True, slots=True)
class Packing:
    """GPUs and the layout of each.

    Attributes:
        model: The GPU model.
        layouts: Instances of one GPU, hardest to place first, and how many GPUs have this layout.
    """

    model: str
    layouts: tuple[tuple[tuple[str, ...], int], ...]

    @property
    def gpus(self) -> int:
        """The number of GPUs."""
        return sum(count for _, count in self.layouts)


def pack(model: GpuModel, requested: Mapping[str, int], *, gpus: int | None = None) -> Packing:
    """Lay out the minimum number of GPUs that provides exactly the requested instances.

    A100-40GB, {"1g.5gb": 9, "3g.20gb": 2}: two GPUs of 3g.20gb + 4 x 1g.5gb and one of 1g.5gb.

    Args:
        model: The GPU model.
        requested: Profile -> instances, 0 to MOST_INSTANCES.
        gpus: Available GPUs; None for any number.

    Raises:
        CatalogError: See find_profile; mig-layout if a number is out of range, or if more GPUs are needed.
    """
    profiles = _profiles_of(model, requested)
    mixes = _mixes(model, tuple(p.name for p in profiles))
    layouts = cover(mixes, tuple(requested[p.name] for p in profiles))
    named = tuple((_named(profiles, mix), count) for mix, count in sorted(layouts.items(), reverse=True))
    packing = Packing(model.name, named)
    if gpus is not None and packing.gpus > gpus:
        raise CatalogError(
            f"{_described(requested)} need {packing.gpus} x {model}, and there are {gpus}",
            fix=f"use fewer or smaller instances, or {packing.gpus} GPUs",
            code="mig-layout",
        )
    return packing


def cut_alike(model: GpuModel, requested: Mapping[str, int]) -> Packing:
    """Lay out the minimum number of GPUs, all alike as in a pool, that provides at least the requested instances.

    The layout is maximal for the requested profiles; among several with the same number of GPUs, the one with larger
    instances wins.

    Raises:
        CatalogError: See pack.
    """
    profiles = _profiles_of(model, requested)
    if not profiles:
        return Packing(model.name, ())
    counts = tuple(requested[p.name] for p in profiles)
    mixes = [mix for mix in _mixes(model, tuple(p.name for p in profiles)) if all(mix)]
    if not mixes:
        raise CatalogError(
            f"one {model} cannot hold {' and '.join(p.name for p in profiles)}",
            why="all GPUs of a pool have one layout, so it must contain each profile",
            fix="use a separate pool for each of them",
            code="mig-layout",
        )
    needed = {mix: max(ceil(count / held) for count, held in zip(counts, mix, strict=True)) for mix in mixes}
    best = min(mixes, key=lambda mix: (needed[mix], tuple(-held for held in mix)))
    return Packing(model.name, ((_named(profiles, best), needed[best]),))


def _profiles_of(model: GpuModel, requested: Mapping[str, int]) -> tuple[MigProfile, ...]:
    """Sort the requested profiles, hardest to place first."""
    for name, count in requested.items():
        find_profile(model, name)
        if not 0 <= count <= MOST_INSTANCES:
            raise CatalogError(
                f"{count} x {name} is out of range",
                fix=f"write a number from 0 to {MOST_INSTANCES}",
                code="mig-layout",
            )
    return tuple(p for p in sorted(profiles(model), key=hardest_first) if requested.get(p.name))


def _named(profiles: Sequence[MigProfile], mix: Mix) -> tuple[str, ...]:
    return tuple(p.name for p, count in zip(profiles, mix, strict=True) for _ in range(count))


def _described(requested: Mapping[str, int]) -> str:
    return " and ".join(f"{count} x {name}" for name, count in requested.items() if count)


@cache
def _mixes(model: GpuModel, names: tuple[str, ...]) -> tuple[Mix, ...]:
    """Return the maximal mixes of these profiles on one GPU, those with more large ones first."""
    found: set[Mix] = set()

    def grow(mix: Mix, first: int) -> None:
        for index in range(first, len(names)):
            more = (*mix[:index], mix[index] + 1, *mix[index + 1 :])
            if fits(model, [name for name, count in zip(names, more, strict=True) for _ in range(count)]):
                found.add(more)
                grow(more, index)

    grow((0,) * len(names), 0)
    return tuple(sorted(_fullest(found), reverse=True))


def _fullest(mixes: set[Mix]) -> Iterator[Mix]:
    """Yield the mixes to which no instance can be added."""
    for mix in mixes:
        if not any((*mix[:i], mix[i] + 1, *mix[i + 1 :]) in mixes for i in range(len(mix))):
            yield mix
