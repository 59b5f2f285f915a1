"""The catalog's values for fields that allow any text: editors suggest them, but do not enforce them.

In scope: which field has which values. Out of scope: the values themselves (gpukube.gpu), checks of a written value
(core.resolve): clouds offer new machines before the catalog has them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from gpukube.gpu.catalog import machines
from gpukube.gpu.mig import profiles
from gpukube.gpu.models import MODELS
from gpukube.spec.model import PROVIDERS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gpukube.gpu.models import GpuModel


def gpu_models() -> tuple[str, ...]:
    """Return the canonical names of GPU models that some cloud offers a machine with, oldest first."""
    return tuple(model.name for model in _models())


def mig_profiles() -> tuple[str, ...]:
    """Return the MIG profiles of these models, each once."""
    return tuple(dict.fromkeys(profile.name for model in _models() for profile in profiles(model)))


def instance_types(provider: str) -> tuple[str, ...]:
    """Return the instance types of one provider that have a name.

    A pattern such as n1-* is not a name: GPUs can be attached to any machine of that family.
    """
    return tuple(m.name for m in machines(provider) if m.status != "retired" and "*" not in m.name)


def _models() -> tuple[GpuModel, ...]:
    there = {machine.model for machine in machines() if machine.status != "retired"}
    return tuple(model for model in MODELS if model in there)


TYPES: Final[Mapping[str, str]] = {provider: f"{provider.capitalize()}InstanceType" for provider in PROVIDERS}
"""Provider -> name of its list of instance types."""

LISTS: Final[Mapping[str, Callable[[], tuple[str, ...]]]] = {
    "GpuModel": gpu_models,
    "MigProfile": mig_profiles,
    **{name: partial(instance_types, provider) for provider, name in TYPES.items()},
}
"""Name of a list -> function that returns it."""

WORDS: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("Gpu", "model"): ("GpuModel",),
    ("Mig", "profile"): ("MigProfile",),
    ("Mig", "layout"): ("MigProfile",),
    ("PoolSettings", "instanceType"): tuple(TYPES.values()),
    ("PoolSettings", "instanceTypes"): tuple(TYPES.values()),
}
"""Model and key of a field -> lists of its values. In a list field they are values of its items."""
