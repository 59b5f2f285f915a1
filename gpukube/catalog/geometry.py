"""The document of `gpukube catalog mig`.

In scope: parsing the options, and the document. Out of scope: MIG geometry itself (gpu.mig and its neighbors),
rendering (cli).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.gpu.mig import Placement, find_profile, maximal_mixes, place_layout, profiles, resource_name
from gpukube.gpu.mig_fractions import same_fractions
from gpukube.gpu.mig_room import can_block, room_left, stranded_profiles
from gpukube.gpu.mig_solver import cut_alike, pack
from gpukube.gpu.refusal import CatalogError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gpukube.engine.documents.shapes.mig import (
        CatalogMigDocument,
        CutPart,
        FragmentPart,
        MigProfilePart,
        PackingPart,
    )
    from gpukube.gpu.mig import MigProfile
    from gpukube.gpu.models import GpuModel


def read_requested(words: Iterable[str]) -> dict[str, int]:
    """Parse PROFILE=N; counts of the same profile add up.

    Raises:
        CatalogError: A word has another form.
    """
    requested: dict[str, int] = {}
    for word in words:
        profile, _, count = word.rpartition("=")
        if not profile or not count.isdecimal():
            raise _unread(word, "1g.5gb=9")
        requested[profile] = requested.get(profile, 0) + int(count)
    return requested


def read_live(model: GpuModel, words: Iterable[str]) -> tuple[Placement, ...]:
    """Parse PROFILE@START, as `nvidia-smi mig -lgi` shows instances and their placements.

    Raises:
        CatalogError: A word has another form, the placement does not exist, or two instances overlap.
    """
    live: list[Placement] = []
    for word in words:
        name, _, start = word.rpartition("@")
        if not name or not start.isdecimal():
            raise _unread(word, "1g.5gb@0")
        profile = find_profile(model, name)
        if int(start) not in profile.starts:
            at = ", ".join(map(str, profile.starts))
            raise CatalogError(
                f"{name} cannot start at {start} on {model}",
                fix=f"use {name}@START with one of {at}",
                code="mig-layout",
            )
        placed = Placement(profile, int(start))
        if taken := next((other for other in live if other.units & placed.units), None):
            message = f"{word} overlaps {taken.profile.name}@{taken.start}"
            fix = "use the placements that `nvidia-smi mig -lgi` shows for one GPU"
            raise CatalogError(message, fix=fix, code="mig-layout")
        live.append(placed)
    return tuple(live)


def mig_document(
    model: GpuModel, requested: Mapping[str, int], live: Sequence[Placement], *, alike: bool
) -> CatalogMigDocument:
    """Return the MIG geometry of a GPU as a document.

    Args:
        model: The GPU; must support MIG.
        requested: Instances to place on the fewest GPUs; empty for none.
        live: Instances of one GPU.
        alike: Whether all GPUs must have one layout, as in a pool.

    Raises:
        CatalogError: The GPU has no MIG or lacks a profile, or the instances do not fit.
    """
    known = profiles(model)
    if not known:
        find_profile(model, "")  # raises the error
    return {
        "schemaVersion": 1,
        "kind": "CatalogMig",
        "model": str(model),
        "profiles": [_profile(model, profile) for profile in known],
        "mixes": [list(mix) for mix in maximal_mixes(model)],
        "packing": _packing(model, requested, alike=alike) if requested else None,
        "fragment": _fragment(model, live) if live else None,
    }


def _profile(model: GpuModel, profile: MigProfile) -> MigProfilePart:
    elsewhere = same_fractions(model, profile.name)
    return {
        "name": profile.name,
        "memoryGB": profile.memory_gb,
        "memoryMiB": profile.memory_mib,
        "perGpu": profile.max_instances,
        "resource": resource_name(profile),
        "elsewhere": {other: name for other, name in elsewhere.items() if other != model.name},
        "confidence": profile.confidence,
    }


def _packing(model: GpuModel, requested: Mapping[str, int], *, alike: bool) -> PackingPart:
    found = cut_alike(model, requested) if alike else pack(model, requested)
    return {
        "wanted": dict(requested),
        "alike": alike,
        "gpus": found.gpus,
        "cuts": [_cut(model, layout, count) for layout, count in found.layouts],
    }


def _cut(model: GpuModel, layout: Sequence[str], gpus: int) -> CutPart:
    left = room_left(model, place_layout(model, layout) or ())
    return {"gpus": gpus, "layout": list(layout), "left": left, "mayBlock": can_block(model, layout)}


def _fragment(model: GpuModel, live: Sequence[Placement]) -> FragmentPart:
    return {
        "live": [f"{placed.profile.name}@{placed.start}" for placed in live],
        "left": room_left(model, live),
        "stranded": list(stranded_profiles(model, live)),
    }


def _unread(word: str, example: str) -> CatalogError:
    return CatalogError(f'"{word}" has the wrong form', fix=f"use a form such as {example}", code="mig-question")
