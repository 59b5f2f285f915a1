"""How few GPUs give the wanted MIG instances, and how each is cut: exact and deterministic.

Lives here: several GPUs of one model. Must not live here: one GPU (mig, mig_room), machines and nodes.

A GPU holds one of a few mixes of instances, and the GPUs needed are the fewest mixes that cover what is wanted. The
same question with fractions of GPUs (a small linear program, solved exactly) bounds the answer from below and gives
most of the mixes; what rounding leaves over is searched. The search starts at the bound: what it finds is the fewest.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from math import ceil
from typing import TYPE_CHECKING, Final

from gpukube.gpu.mig import find_profile, fits, hardest_first, profiles
from gpukube.gpu.refusal import CatalogueError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpukube.gpu.mig import MigProfile
    from gpukube.gpu.models import GpuModel

__all__ = ["MOST_INSTANCES", "Mix", "Packing", "cover", "cut_alike", "pack"]

MOST_INSTANCES: Final = 1_000_000
"""Of one profile in one question: some 18,000 nodes of eight GPUs."""

_REMEMBERED: Final = 100_000

Mix = tuple[int, ...]
"""Instances per profile, in the order of the profiles asked for."""


@dataclass(frozen=True, slots=True)
class Packing:
    """GPUs and how each is cut.

    Attributes:
        model: Which GPU.
        layouts: Instances of one GPU, those hardest to place first, and how many GPUs are cut so.
    """

    model: str
    layouts: tuple[tuple[tuple[str, ...], int], ...]

    @property
    def gpus(self) -> int:
        """How many there are."""
        return sum(count for _, count in self.layouts)


def pack(model: GpuModel, wanted: Mapping[str, int], *, gpus: int | None = None) -> Packing:
    """Cut the fewest GPUs that give exactly the wanted instances.

    A100-40GB, {"1g.5gb": 9, "3g.20gb": 2}: two GPUs of 3g.20gb + 4 x 1g.5gb and one of 1g.5gb.

    Args:
        model: Which GPU.
        wanted: Profile -> instances, 0 to MOST_INSTANCES.
        gpus: How many there are; None for any number.

    Raises:
        CatalogueError: As find_profile; mig-layout for a number that is out of range, or when more GPUs are needed.
    """
    asked = _asked(model, wanted)
    mixes = _mixes(model, tuple(p.name for p in asked))
    layouts = cover(mixes, tuple(wanted[p.name] for p in asked))
    named = tuple((_named(asked, mix), count) for mix, count in sorted(layouts.items(), reverse=True))
    packing = Packing(model.name, named)
    if gpus is not None and packing.gpus > gpus:
        raise CatalogueError(
            f"{_told(wanted)} need {packing.gpus} x {model}, and there are {gpus}",
            fix=f"ask for fewer or smaller instances, or for {packing.gpus} GPUs",
            code="mig-layout",
        )
    return packing


def cut_alike(model: GpuModel, wanted: Mapping[str, int]) -> Packing:
    """Cut the fewest GPUs, all alike, that give at least the wanted instances: as a pool's layout cuts its nodes.

    The layout is as full as it can be with the profiles asked for; of several that need as few GPUs, the one with the
    larger instances.

    Raises:
        CatalogueError: As pack.
    """
    asked = _asked(model, wanted)
    if not asked:
        return Packing(model.name, ())
    counts = tuple(wanted[p.name] for p in asked)
    mixes = [mix for mix in _mixes(model, tuple(p.name for p in asked)) if all(mix)]
    if not mixes:
        raise CatalogueError(
            f"no one {model} holds {' and '.join(p.name for p in asked)}",
            why="one layout cuts all GPUs of a pool, so it has to hold some of each",
            fix="make a pool for each of them",
            code="mig-layout",
        )
    needed = {mix: max(ceil(count / held) for count, held in zip(counts, mix, strict=True)) for mix in mixes}
    best = min(mixes, key=lambda mix: (needed[mix], tuple(-held for held in mix)))
    return Packing(model.name, ((_named(asked, best), needed[best]),))


def _asked(model: GpuModel, wanted: Mapping[str, int]) -> tuple[MigProfile, ...]:
    """Order the profiles that are wanted, the hardest to place first."""
    for name, count in wanted.items():
        find_profile(model, name)
        if not 0 <= count <= MOST_INSTANCES:
            raise CatalogueError(
                f"{count} x {name} is out of range",
                fix=f"write a number from 0 to {MOST_INSTANCES}",
                code="mig-layout",
            )
    return tuple(p for p in sorted(profiles(model), key=hardest_first) if wanted.get(p.name))


def _named(asked: Sequence[MigProfile], mix: Mix) -> tuple[str, ...]:
    return tuple(p.name for p, count in zip(asked, mix, strict=True) for _ in range(count))


def _told(wanted: Mapping[str, int]) -> str:
    return " and ".join(f"{count} x {name}" for name, count in wanted.items() if count)


@cache
def _mixes(model: GpuModel, names: tuple[str, ...]) -> tuple[Mix, ...]:
    """List the fullest mixes of these profiles on one GPU, those with more of the larger first."""
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
    """Leave out every mix to which one instance can be added."""
    for mix in mixes:
        if not any((*mix[:i], mix[i] + 1, *mix[i + 1 :]) in mixes for i in range(len(mix))):
            yield mix


def cover(mixes: Sequence[Mix], wanted: Mix) -> dict[Mix, int]:
    """Cover what is wanted with the fewest mixes.

    Args:
        mixes: What one GPU can give, at its fullest; less of it can be given too. Something of each kind is in one.
        wanted: How many of each kind.

    Returns:
        Mixes that give exactly what is wanted, and how often each is taken.
    """
    shares, least = _fractional(mixes, wanted)
    whole = [int(share) for share in shares]
    allowed = ceil(least)
    while True:
        # Ever fewer mixes are taken from the rounded answer, in the end none: then the search tells for certain.
        for spared in range(max(whole, default=0) + 1):
            base = [max(0, count - spared) for count in whole]
            layouts, rest = _spend(mixes, base, wanted)
            found = _search(tuple(mixes), rest, allowed - sum(base))
            if found is not None:
                return dict(Counter(layouts) + Counter(found))
        allowed += 1


def _spend(mixes: Sequence[Mix], times: Sequence[int], wanted: Mix) -> tuple[dict[Mix, int], Mix]:
    """Take mixes a number of times, each cut down to what is still wanted; gives these, and what is still wanted."""
    layouts: Counter[Mix] = Counter()
    for mix, count in zip(mixes, times, strict=True):
        left = count
        while left and any(used := tuple(map(min, mix, wanted))):
            alike = min([left, *(want // use for want, use in zip(wanted, used, strict=True) if use)])
            layouts[used] += alike
            wanted = tuple(want - use * alike for want, use in zip(wanted, used, strict=True))
            left -= alike
    return layouts, wanted


@lru_cache(maxsize=_REMEMBERED)
def _search(mixes: tuple[Mix, ...], wanted: Mix, gpus: int) -> tuple[Mix, ...] | None:
    """Find at most so many mixes that cover what is wanted; None when there are none."""
    if not any(wanted):
        return ()
    if gpus <= 0:
        return None
    hardest = next(index for index, count in enumerate(wanted) if count)
    for used in _useful(mixes, wanted, hardest):
        rest = tuple(want - use for want, use in zip(wanted, used, strict=True))
        found = _search(mixes, rest, gpus - 1)
        if found is not None:
            return (used, *found)
    return None


def _useful(mixes: Sequence[Mix], wanted: Mix, index: int) -> list[Mix]:
    """Cut mixes down to what is wanted, and keep those with some of a profile that no other one contains."""
    cut = dict.fromkeys(tuple(map(min, mix, wanted)) for mix in mixes if mix[index])
    return [mix for mix in cut if not any(mix != other and all(map(int.__le__, mix, other)) for other in cut)]


def _fractional(mixes: Sequence[Mix], wanted: Mix) -> tuple[list[Fraction], Fraction]:
    """Cover what is wanted with fractions of mixes.

    The simplex method on the dual program, whose start is feasible: prices of instances, as high as they go with no mix
    costing more than one GPU. Bland's rule keeps it from going round in circles. Numbers stay whole: all of them are
    over one scale (Bareiss).

    Returns:
        The share of each mix, and their sum.
    """
    rows, columns, scale = len(mixes), len(wanted), 1
    table = [[*mix, *(int(row == other) for other in range(rows)), 1] for row, mix in enumerate(mixes)]
    goal = [*(-count for count in wanted), *(0 for _ in range(rows + 1))]
    basis = list(range(columns, columns + rows))
    while (enter := next((column for column, value in enumerate(goal[:-1]) if value < 0), None)) is not None:
        leave = min(
            (row for row in range(rows) if table[row][enter] > 0),
            key=lambda row: (Fraction(table[row][-1], table[row][enter]), basis[row]),
        )
        pivot = table[leave]
        table = [row if row is pivot else _cleared(row, pivot, enter, scale) for row in table]
        goal = _cleared(goal, pivot, enter, scale)
        basis[leave], scale = enter, pivot[enter]
    return [Fraction(value, scale) for value in goal[columns:-1]], Fraction(goal[-1], scale)


def _cleared(row: list[int], pivot: list[int], column: int, scale: int) -> list[int]:
    """Take so much of the pivot's row from another that its number in the column is 0; over the new scale."""
    factor, whole = row[column], pivot[column]
    return [(value * whole - factor * other) // scale for value, other in zip(row, pivot, strict=True)]
