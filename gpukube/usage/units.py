"""What one device of a resource is: a GPU, a MIG instance, or a share, and how many each GPU has. Pure.

In scope: names, node labels, and fields of pools -> units. Out of scope: counts of a node (`building`).

Source: NVIDIA/k8s-device-plugin v0.20.0, internal/rm (names of resources) and docs/gpu-feature-discovery (labels: a
profile is part of the product's name, "A100-SXM4-40GB-MIG-1g.5gb"; `<resource>.replicas` counts shares).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpukube.core.fields import MIG_PROFILE
from gpukube.gpu.capacity import GPU_RESOURCE, SHARED_SUFFIX
from gpukube.gpu.claims import GPU_CLASS, MIG_CLASS
from gpukube.gpu.mig import RESOURCE_PREFIX, grid_units, profiles, resource_name
from gpukube.usage.world import WHOLE, Unit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.fields import FieldPath
    from gpukube.gpu.machine import Machine
    from gpukube.gpu.mig import MigProfile
    from gpukube.gpu.sharing import Sharing

_PRODUCT: Final = f"{GPU_RESOURCE}.product"
_CUT: Final = "-MIG-"
_SHARED: Final = "-SHARED"


@dataclass(frozen=True, slots=True)
class Hints:
    """What is known about the GPUs of a node beside the names of its resources.

    Attributes:
        machine: Its machine; None if the catalog lacks it.
        labels: Its labels.
        fields: Fields of its live pool.
        sharing: What the spec declares; used only if the node shows nothing.
    """

    machine: Machine | None
    labels: Mapping[str, str]
    fields: Mapping[FieldPath, object]
    sharing: Sharing | None = None


def is_gpu(resource: str) -> bool:
    """Return whether a name stands for GPUs, MIG instances, or shares of them."""
    base = resource.removesuffix(SHARED_SUFFIX)
    return base in (GPU_RESOURCE, GPU_CLASS) or base.startswith((RESOURCE_PREFIX, MIG_CLASS))


def unit_of(resource: str, shown: int, hints: Hints) -> Unit:
    """Return what one device of a resource is.

    Args:
        resource: A name for which `is_gpu` holds.
        shown: How many the node has.
        hints: What else is known of the node.
    """
    if resource == GPU_CLASS:
        return WHOLE
    base = resource.removesuffix(SHARED_SUFFIX)
    profile = _profile(base, shown, hints)
    cut = _find(profile, hints.machine)
    replicas = _replicas(base, hints)
    per_gpu = None if base != GPU_RESOURCE or (profile and cut is None) else cut.max_instances if cut else 1
    if replicas == 1 and not profile and hints.machine and shown > hints.machine.devices:
        replicas = shown // hints.machine.devices  # more than it has: shares that no label announces
    size = cut.size / grid_units(hints.machine.model) if cut and hints.machine else 1.0
    fraction = hints.machine is not None and hints.machine.is_fractional
    return Unit(
        "share" if replicas > 1 or base != resource or fraction else "instance" if profile else "gpu",
        profile,
        None if per_gpu is None else per_gpu * replicas,
        size / replicas,
    )


def _profile(base: str, shown: int, hints: Hints) -> str:
    if base.startswith(MIG_CLASS):
        return base.removeprefix(f"{MIG_CLASS}/")
    if base.startswith(RESOURCE_PREFIX):
        return _plain(base.removeprefix(RESOURCE_PREFIX), hints.machine)
    _, cut, named = hints.labels.get(_PRODUCT, "").partition(_CUT)
    if cut:
        return _plain(named.removesuffix(_SHARED), hints.machine)
    whole = hints.machine.devices if hints.machine else 0
    if shown > whole and (declared := str(hints.fields.get(MIG_PROFILE) or "")):
        return declared  # a cloud's own plugin, without GPU feature discovery
    mig = hints.sharing.mig if hints.sharing else None
    return mig.profile if mig and mig.strategy == "single" else ""


def _plain(name: str, machine: Machine | None) -> str:
    """Return NVIDIA's name of a profile: resources and labels have "." for "+"."""
    known = profiles(machine.model) if machine else ()
    return next((one.name for one in known if resource_name(one) == RESOURCE_PREFIX + name), name)


def _find(profile: str, machine: Machine | None) -> MigProfile | None:
    known = profiles(machine.model) if machine and profile else ()
    return next((one for one in known if one.name == profile), None)


def _replicas(base: str, hints: Hints) -> int:
    label = hints.labels.get(f"{base}.replicas", "")
    if label.isdecimal():
        return max(1, int(label))
    for path, value in hints.fields.items():
        if path.is_below("sharing") and path.key == "replicas" and isinstance(value, int):
            return max(1, value)
    slicing = hints.sharing.slicing if hints.sharing else None
    return slicing.replicas if slicing else 1
