"""Maps a MIG profile to the same fraction of another GPU model: 1g.5gb of one is 1g.10gb of another.

In scope: comparing profiles across models. Out of scope: what fits together on one GPU (mig, mig_room).
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from gpukube.gpu.mig import find_profile, profiles
from gpukube.gpu.models import MODELS, model_named

if TYPE_CHECKING:
    from gpukube.gpu.mig import MigProfile
    from gpukube.gpu.models import GpuModel


def fraction_of(profile: MigProfile) -> tuple[Fraction, Fraction]:
    """Return a profile's shares of the GPU's compute slices and of its memory slices.

    1g.5gb of A100-40GB is (1/7, 1/8); 1g.6gb of A30-24GB and 1g.24gb of RTXPRO6000-96GB are (1/4, 1/4).
    """
    whole = max(profiles(model_named(profile.model)), key=lambda p: p.size)
    return Fraction(profile.slice_width, whole.slice_width), Fraction(profile.memory_slices, whole.memory_slices)


def same_fraction(model: GpuModel, profile: str, other: GpuModel) -> MigProfile | None:
    """Find the profile of another model that is the same fraction with the same attributes (+me, +gfx, -me).

    Returns:
        1g.10gb of A100-80GB for 1g.5gb of A100-40GB; None if there is no such fraction, such as 1/7 on A30-24GB.

    Raises:
        CatalogError: See find_profile, for the first model.
    """
    known = find_profile(model, profile)
    requested = (*fraction_of(known), known.attribute)
    return next((p for p in profiles(other) if (*fraction_of(p), p.attribute) == requested), None)


def same_fractions(model: GpuModel, profile: str) -> dict[str, str]:
    """Map every model with the same fraction to its profile name, including the given model.

    Raises:
        CatalogError: See find_profile.
    """
    found = {other.name: same_fraction(model, profile, other) for other in MODELS}
    return {name: there.name for name, there in found.items() if there is not None}
