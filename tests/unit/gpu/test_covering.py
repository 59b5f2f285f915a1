"""The fewest mixes that cover a demand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpukube.gpu.covering import Mix, cover

FANO: list[Mix] = [
    tuple(int(point in line) for point in range(7))
    for line in ((0, 1, 2), (0, 3, 4), (0, 5, 6), (1, 3, 5), (1, 4, 6), (2, 3, 6), (2, 4, 5))
]
"""The lines of the Fano plane: 7/3 of them cover it in fractions, so the bound is 3."""


def fewest(mixes: list[Mix], wanted: Mix) -> int:
    """Count by trying all sequences of mixes."""
    reached, taken = {wanted}, 0
    while not any(not any(rest) for rest in reached):
        reached = {tuple(max(0, r - m) for r, m in zip(rest, mix, strict=True)) for rest in reached for mix in mixes}
        taken += 1
    return taken


def is_cover(found: dict[Mix, int], mixes: list[Mix], wanted: Mix) -> bool:
    """Check that it gives exactly what is wanted, by nothing that no mix has."""
    given = [sum(mix[kind] * count for mix, count in found.items()) for kind in range(len(wanted))]
    within = all(any(all(map(int.__le__, part, mix)) for mix in mixes) for part in found)
    return within and tuple(given) == wanted and all(count > 0 and any(mix) for mix, count in found.items())


@st.composite
def covers(draw: st.DrawFn) -> tuple[list[Mix], Mix]:
    kinds = draw(st.integers(1, 4))
    row = st.tuples(*[st.integers(0, 3)] * kinds)
    mixes = draw(st.lists(row.filter(any), min_size=1, max_size=5, unique=True))
    single = [tuple(int(kind == other) for other in range(kinds)) for kind in range(kinds)]
    missing = [mix for kind, mix in enumerate(single) if not any(other[kind] for other in mixes)]
    return mixes + missing, draw(st.tuples(*[st.integers(0, 5)] * kinds))


@settings(max_examples=150)
@given(covers())
def test_cover_when_mixes_are_of_any_kind_then_as_few_as_trying_all_finds(case: tuple[list[Mix], Mix]) -> None:
    mixes, wanted = case
    found = cover(mixes, wanted)
    assert is_cover(found, mixes, wanted)
    assert sum(found.values()) == fewest(mixes, wanted)


ROUNDED: dict[str, tuple[list[Mix], Mix, int]] = {
    "a triangle, where halves would do": ([(1, 1, 0), (1, 0, 1), (0, 1, 1)], (1, 1, 1), 2),
    "the rounded answer leaves too much over": ([(3, 0, 0), (0, 2, 0), (1, 1, 1), (0, 0, 2)], (7, 3, 3), 5),
    "more than the bound": ([(1, 1, 0, 0, 0, 0, 0), *FANO], (1, 1, 1, 1, 1, 1, 1), 3),
    "no more than the bound leaves after rounding": ([(3, 0, 2), (0, 3, 0), (2, 1, 3), (1, 1, 2)], (4, 2, 0), 2),
    "not the first way that is found": ([(2, 3, 1), (3, 1, 0), (0, 0, 3)], (5, 0, 4), 3),
    "many": ([(1, 1, 0), (1, 0, 1), (0, 1, 1)], (1001, 1001, 1001), 1502),
}


@pytest.mark.parametrize("case", ROUNDED)
def test_cover_when_the_bound_is_not_whole_then_still_the_fewest(case: str) -> None:
    mixes, wanted, least = ROUNDED[case]
    found = cover(mixes, wanted)
    assert is_cover(found, mixes, wanted)
    assert sum(found.values()) == least
    assert max(wanted) > 10 or least == fewest(mixes, wanted)
