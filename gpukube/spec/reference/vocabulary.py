"""Words that the catalog knows for fields which take any text: offered by editors, never enforced by them.

In scope: which field takes which words. Out of scope: the words themselves (gpukube.gpu), checks of a
written value (core.resolve): a cloud sells new machines before the catalog has them.
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
    """List the GPU models that some cloud has a machine with, by their canonical names, oldest first."""
    return tuple(model.name for model in _models())


def mig_profiles() -> tuple[str, ...]:
    """List the MIG profiles of these models, each once."""
    return tuple(dict.fromkeys(profile.name for model in _models() for profile in profiles(model)))


def instance_types(provider: str) -> tuple[str, ...]:
    """List the instance types of one provider that can be had by name.

    A pattern such as n1-* is no name: GPUs are attached to any machine of that family.
    """
    return tuple(m.name for m in machines(provider) if m.status != "retired" and "*" not in m.name)


def _models() -> tuple[GpuModel, ...]:
    there = {machine.model for machine in machines() if machine.status != "retired"}
    return tuple(model for model in MODELS if model in there)


TYPES: Final[Mapping[str, str]] = {provider: f"{provider.capitalize()}InstanceType" for provider in PROVIDERS}
"""Provider -> name of the list of its instance types."""

LISTS: Final[Mapping[str, Callable[[], tuple[str, ...]]]] = {
    "GpuModel": gpu_models,
    "MigProfile": mig_profiles,
    **{name: partial(instance_types, provider) for provider, name in TYPES.items()},
}
"""Name of a list -> what makes it."""

WORDS: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("Gpu", "model"): ("GpuModel",),
    ("Mig", "profile"): ("MigProfile",),
    ("Mig", "layout"): ("MigProfile",),
    ("PoolSettings", "instanceType"): tuple(TYPES.values()),
}
"""Model and key of a field -> lists of its words. A field that is a list takes them for its items."""
