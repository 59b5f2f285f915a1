"""Covers a demand with the minimum number of mixes: exact and deterministic.

In scope: arithmetic on counts. Out of scope: what is counted (mig_solver: MIG instances of GPUs).

The linear relaxation (fractions of mixes, a small linear program solved exactly) gives a lower bound and most of the
mixes; a search covers what rounding leaves. It starts at the bound, so its first result is minimal.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

Mix: TypeAlias = tuple[int, ...]
"""Counts per kind, in a fixed order."""

_REMEMBERED: Final = 100_000


def cover(mixes: Sequence[Mix], requested: Mix) -> dict[Mix, int]:
    """Cover a demand with the minimum number of mixes.

    Args:
        mixes: Largest combinations that fit together; subsets fit too. Each kind occurs in at least one.
        requested: How many of each kind.

    Returns:
        Mixes that add up to exactly the demand, and how often each is used.
    """
    shares, least = _fractional(mixes, requested)
    whole = [int(share) for share in shares]
    allowed = ceil(least)
    while True:
        # Keep fewer and fewer mixes of the rounded answer; with none left, the search is exhaustive.
        for spared in range(max(whole, default=0) + 1):
            base = [max(0, count - spared) for count in whole]
            layouts, rest = _spend(mixes, base, requested)
            found = _search(tuple(mixes), rest, allowed - sum(base))
            if found is not None:
                return dict(Counter(layouts) + Counter(found))
        allowed += 1


def _spend(mixes: Sequence[Mix], times: Sequence[int], requested: Mix) -> tuple[dict[Mix, int], Mix]:
    """Use each mix the given number of times, trimmed to the remaining demand; return the mixes and the rest."""
    layouts: Counter[Mix] = Counter()
    for mix, count in zip(mixes, times, strict=True):
        left = count
        while left and any(used := tuple(map(min, mix, requested))):
            alike = min([left, *(want // use for want, use in zip(requested, used, strict=True) if use)])
            layouts[used] += alike
            requested = tuple(want - use * alike for want, use in zip(requested, used, strict=True))
            left -= alike
    return layouts, requested


@lru_cache(maxsize=_REMEMBERED)
def _search(mixes: tuple[Mix, ...], requested: Mix, times: int) -> tuple[Mix, ...] | None:
    """Find at most `times` mixes that cover the demand; None if there are none."""
    if not any(requested):
        return ()
    if times <= 0:
        return None
    hardest = next(index for index, count in enumerate(requested) if count)
    # Mixes trimmed to the demand; only those that no other one contains.
    cut = dict.fromkeys(tuple(map(min, mix, requested)) for mix in mixes if mix[hardest])
    for used in [mix for mix in cut if not any(mix != other and all(map(int.__le__, mix, other)) for other in cut)]:
        rest = tuple(want - use for want, use in zip(requested, used, strict=True))
        found = _search(mixes, rest, times - 1)
        if found is not None:
            return (used, *found)
    return None


def _fractional(mixes: Sequence[Mix], requested: Mix) -> tuple[list[Fraction], Fraction]:
    """Cover the demand with fractions of mixes.

    Runs the simplex method on the dual program, whose start is feasible: maximize the price of each kind while no mix
    costs more than one. Bland's rule prevents cycling. Numbers stay integers over one common scale (Bareiss).

    Returns:
        The share of each mix, and their sum.
    """
    rows, columns, scale = len(mixes), len(requested), 1
    table = [[*mix, *(int(row == other) for other in range(rows)), 1] for row, mix in enumerate(mixes)]
    goal = [*(-count for count in requested), *(0 for _ in range(rows + 1))]
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
    """Subtract the pivot row from another so that its entry in the column is 0, over the new scale."""
    factor, whole = row[column], pivot[column]
    return [(value * whole - factor * other) // scale for value, other in zip(row, pivot, strict=True)]
