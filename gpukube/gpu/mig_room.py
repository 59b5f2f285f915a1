"""Free room on a partly used GPU, the effect of creation order, and why a layout does not fit.

In scope: one GPU. Out of scope: several GPUs (mig_solver), and placement itself (mig).

The driver places an instance at any free position and never moves it, so the same instances can leave room or none
(NVIDIA MIG User Guide, "create larger instances first"; NVIDIA/mig-parted tries orders until one fits).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from gpukube.gpu.mig import Placement, find_profile, fits, grid_units, hardest_first, media_fit, place_beside, profiles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.gpu.mig import MigProfile
    from gpukube.gpu.models import GpuModel

_ENGINES: Final = ("NVDEC", "NVENC", "JPEG", "OFA")
"""Names in the order of MigProfile.engines."""


def room_left(model: GpuModel, live: Sequence[Placement]) -> dict[str, int]:
    """Count how many more of each profile fit next to live instances, each profile on its own; zeros are omitted.

    A100-40GB with a 3g.20gb at 0: {"1g.5gb": 3, "1g.5gb+me": 1, "1g.10gb": 2, "2g.10gb": 1, "3g.20gb": 1}.
    """
    counts = {profile.name: _more(model, live, profile) for profile in profiles(model)}
    return {name: count for name, count in counts.items() if count}


def stranded_profiles(model: GpuModel, live: Sequence[Placement]) -> tuple[str, ...]:
    """Return the profiles that no longer fit but would if the same instances were placed again: fragmentation.

    A100-40GB with a 1g.5gb at 0 and one at 4: 4g.20gb and 3g.20gb.
    """
    held = [placement.profile.name for placement in live]
    room = room_left(model, live)
    return tuple(p.name for p in profiles(model) if p.name not in room and fits(model, [*held, p.name]))


def can_block(model: GpuModel, order: Sequence[str]) -> bool:
    """Return whether creating instances in this order can leave one without a free position.

    Assumes the worst choice among free positions at every step; () never blocks.

    Raises:
        CatalogError: See find_profile.
    """
    return _blocks([find_profile(model, name) for name in order], frozenset())


def largest_fit(model: GpuModel, layout: Sequence[str]) -> tuple[str, ...]:
    """Return the part of a layout that fits, largest instances first.

    Raises:
        CatalogError: See find_profile.
    """
    kept: tuple[str, ...] = ()
    for profile in sorted((find_profile(model, name) for name in layout), key=hardest_first):
        if fits(model, (*kept, profile.name)):
            kept = (*kept, profile.name)
    return kept


def explain_misfit(model: GpuModel, layout: Sequence[str]) -> str:
    """Explain why profiles do not fit together on one GPU; "" if they do.

    Raises:
        CatalogError: See find_profile.
    """
    if fits(model, layout):
        return ""
    requested = [find_profile(model, name) for name in layout]
    return _too_many(model, requested) or _too_large(model, requested) or _no_place(model, requested)


def _more(model: GpuModel, live: Sequence[Placement], profile: MigProfile) -> int:
    count = 0
    while place_beside(model, live, [profile] * (count + 1)) is not None:
        count += 1
    return count


def _blocks(order: Sequence[MigProfile], taken: frozenset[int]) -> bool:
    if not order:
        return False
    first, *others = order
    free = [units for units in first.ranges if not units & taken]
    return not free or any(_blocks(others, taken | units) for units in free)


def _too_many(model: GpuModel, requested: Sequence[MigProfile]) -> str:
    for profile, count in Counter(requested).items():
        if count > profile.max_instances:
            return f"{profile.max_instances} x {profile.name} is the maximum on one {model}"
    if sum(profile.is_media_extension for profile in requested) > 1:
        return "only one instance of a GPU can have the media engines (+me)"
    return ""


def _too_large(model: GpuModel, requested: Sequence[MigProfile]) -> str:
    taken, units = sum(profile.size for profile in requested), grid_units(model)
    if taken > units:
        return f"together they need {taken} units of memory, but one {model} has {units}"
    if not media_fit(model, requested):
        whole = max(profiles(model), key=lambda p: p.size).engines
        short = (
            f"{sum(profile.engines[kind] for profile in requested)} {name} of {whole[kind]}"
            for kind, name in enumerate(_ENGINES)
            if sum(profile.engines[kind] for profile in requested) > whole[kind]
        )
        return f"together they need {', '.join(short)}"
    return ""


def _no_place(model: GpuModel, requested: Sequence[MigProfile]) -> str:
    kinds = sorted(set(requested), key=hardest_first)
    places = (f"{p.name} starts at {', '.join(map(str, p.starts))} and needs {p.size}" for p in kinds)
    return f"no placement fits all: of {grid_units(model)} units of memory, {'; '.join(places)}"
