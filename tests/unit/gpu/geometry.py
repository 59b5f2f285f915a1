"""MIG geometry written down apart from the product's table, and brute force over it.

In scope: what the tests of MIG hold the product against. Out of scope: anything of gpukube.

Sources: NVIDIA MIG User Guide, "Supported MIG Profiles" (v580, v610); NVIDIA/gpu-operator v26.7.0
assets/state-mig-manager/0400_configmap.yaml (names of GH200-144, B300, GB300).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class Kind:
    """One profile: where it may begin, how many units it takes, its media engines."""

    name: str
    starts: tuple[int, ...]
    size: int
    engines: tuple[int, int, int, int] = (0, 0, 0, 0)

    @property
    def special(self) -> bool:
        return "+me" in self.name


SEVEN_NAMES = {  # 1g, 1g of double memory, 2g, 3g, 4g, 7g
    "A100-40GB": "1g.5gb 1g.10gb 2g.10gb 3g.20gb 4g.20gb 7g.40gb",
    "A100-80GB": "1g.10gb 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb",
    "H100-80GB": "1g.10gb 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb",
    "H100-94GB": "1g.12gb 1g.24gb 2g.24gb 3g.47gb 4g.47gb 7g.94gb",
    "H100-96GB": "1g.12gb 1g.24gb 2g.24gb 3g.48gb 4g.48gb 7g.96gb",
    "H200-141GB": "1g.18gb 1g.35gb 2g.35gb 3g.71gb 4g.71gb 7g.141gb",
    "GH200-144GB": "1g.18gb 1g.36gb 2g.36gb 3g.72gb 4g.72gb 7g.144gb",
    "B200-180GB": "1g.23gb 1g.45gb 2g.45gb 3g.90gb 4g.90gb 7g.180gb",
    "GB200-186GB": "1g.23gb 1g.47gb 2g.47gb 3g.93gb 4g.93gb 7g.186gb",
    "B300-269GB": "1g.34gb 1g.67gb 2g.67gb 3g.135gb 4g.135gb 7g.269gb",
    "GB300-278GB": "1g.35gb 1g.70gb 2g.70gb 3g.139gb 4g.139gb 7g.278gb",
}
SEVEN_PLACES = (
    (tuple(range(7)), 1),
    ((0, 2, 4, 6), 2),
    ((0, 2, 4), 2),
    ((0, 4), 4),
    ((0,), 4),
    ((0,), 8),
)


def _seven(names: str) -> tuple[Kind, ...]:
    plain = [Kind(name, *place) for name, place in zip(names.split(), SEVEN_PLACES, strict=True)]
    return (*plain, Kind(f"{plain[0].name}+me", *SEVEN_PLACES[0]))


QUARTERS = (0, 3, 6, 9)
RTX_PRO_6000 = (
    Kind("1g.24gb", QUARTERS, 3, (1, 1, 1, 0)),
    Kind("1g.24gb+me", QUARTERS, 3, (1, 1, 1, 1)),
    Kind("1g.24gb+gfx", QUARTERS, 3, (1, 1, 1, 0)),
    Kind("1g.24gb+me.all", QUARTERS, 3, (4, 4, 4, 1)),
    Kind("1g.24gb-me", QUARTERS, 3),
    Kind("2g.48gb", (0, 6), 6, (2, 2, 2, 0)),
    Kind("2g.48gb+gfx", (0, 6), 6, (2, 2, 2, 0)),
    Kind("2g.48gb+me.all", (0, 6), 6, (4, 4, 4, 1)),
    Kind("2g.48gb-me", (0, 6), 6),
    Kind("4g.96gb", (0,), 12, (4, 4, 4, 1)),
    Kind("4g.96gb+gfx", (0,), 12, (4, 4, 4, 1)),
)
A30 = (
    Kind("1g.6gb", (0, 1, 2, 3), 1),
    Kind("1g.6gb+me", (0, 1, 2, 3), 1),
    Kind("2g.12gb", (0, 2), 2),
    Kind("2g.12gb+me", (0, 2), 2),
    Kind("4g.24gb", (0,), 4),
)
TWO = {
    "RTXPRO5000-48GB": "1g.24gb 1g.24gb+me 1g.24gb+gfx 1g.24gb+me.all 1g.24gb-me 2g.48gb 2g.48gb+gfx",
    "RTXPRO4500-32GB": "1g.16gb 1g.16gb+gfx 1g.16gb+me.all 1g.16gb-me 2g.32gb 2g.32gb+gfx",
}


def _two(names: str) -> tuple[Kind, ...]:
    return tuple(Kind(name, (0, 1), 1) if name.startswith("1g") else Kind(name, (0,), 2) for name in names.split())


GPUS: dict[str, tuple[Kind, ...]] = {
    **{model: _seven(names) for model, names in SEVEN_NAMES.items()},
    **{model: _two(names) for model, names in TWO.items()},
    "A30-24GB": A30,
    "RTXPRO6000-96GB": RTX_PRO_6000,
}
"""Model -> its profiles."""

MIXES_OF_SEVEN = frozenset(
    f"{wide}{narrow}"
    for wide, narrows in {
        "": ("1111111", "111111d", "111112", "11112d", "11113", "1111dd", "11122", "1114", "1122d", "1123"),
        "11": ("2dd", "3d", "4d", "ddd"),
        "1": ("222", "24"),
        "2": ("22d", "23", "2dd", "3d", "4d", "ddd"),
        "3": ("3", "4", "dd"),
        "4": ("dd",),
        "7": ("",),
        "d": ("ddd",),
    }.items()
    for narrow in narrows
)
"""Every mix of a seven-slice GPU to which nothing can be added; "d" is one slice of double memory."""


@cache
def holds(model: str, layout: tuple[str, ...]) -> bool:
    """Try every place for every instance."""
    kinds = [next(kind for kind in GPUS[model] if kind.name == name) for name in layout]
    whole = max(GPUS[model], key=lambda kind: kind.size).engines
    if sum(kind.special for kind in kinds) > 1:
        return False
    if any(whole) and any(sum(kind.engines[i] for kind in kinds) > whole[i] for i in range(4)):
        return False
    return _placeable(kinds, frozenset())


def _placeable(kinds: list[Kind], taken: frozenset[int]) -> bool:
    if not kinds:
        return True
    places = (frozenset(range(start, start + kinds[0].size)) for start in kinds[0].starts)
    return any(_placeable(kinds[1:], taken | place) for place in places if not place & taken)


def most(model: str, name: str) -> int:
    """Count how often one profile goes on a GPU."""
    count = 0
    while holds(model, (name,) * (count + 1)):
        count += 1
    return count


def layouts_within(model: str, wanted: tuple[tuple[str, int], ...]) -> list[tuple[int, ...]]:
    """List what one GPU can give of what is wanted, as counts in the same order; nothing at all is left out."""
    found: list[tuple[int, ...]] = [()]
    for _, count in wanted:
        found = [(*counts, more) for counts in found for more in range(min(count, 7) + 1)]
    return [counts for counts in found if any(counts) and sum(counts) <= 7 and _held(model, wanted, counts)]


def _held(model: str, wanted: tuple[tuple[str, int], ...], counts: tuple[int, ...]) -> bool:
    names = (name for (name, _), count in zip(wanted, counts, strict=True) for _ in range(count))
    return holds(model, tuple(sorted(names)))


def best_cover(model: str, wanted: dict[str, int]) -> int:
    """Count the fewest GPUs by trying every sequence of what one GPU can give."""
    asked = tuple((name, count) for name, count in sorted(wanted.items()) if count)
    reached, gpus = {tuple(count for _, count in asked)}, 0
    gives = layouts_within(model, asked)
    while not any(not any(rest) for rest in reached):
        reached = {
            tuple(a - b for a, b in zip(rest, give, strict=True))
            for rest in reached
            for give in gives
            if all(a >= b for a, b in zip(rest, give, strict=True))
        }
        gpus += 1
    return gpus
