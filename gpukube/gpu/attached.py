"""GPUs that are attached to a machine: the N1 machines of GCE, which have none of their own.

Lives here: the names and sizes of N1 machines, and which of them takes which GPUs. Must not live here: machines whose
type fixes their GPUs (machines.py).

Sources: docs: compute/docs/gpus (the limits of vCPUs per GPU; also in GKE's cluster autoscaler), compute/docs/
general-purpose-machines (N1 shapes).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from gpukube.gpu.refusal import CatalogueError, one_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.gpu.machines import Machine
    from gpukube.gpu.models import GpuModel

__all__ = ["ATTACHED", "MOST_VCPUS", "Host", "attach_gpus", "find_host", "usual_host"]

ATTACHED: Final = "n1-*"
"""How the catalogue names a GPU that may be attached to any N1 machine."""

MOST_VCPUS: Final[dict[str, dict[int, int]]] = {
    "T4-16GB": {1: 48, 2: 48, 4: 96},
    "V100-16GB": {1: 12, 2: 24, 4: 48, 8: 96},
    "P100-16GB": {1: 16, 2: 32, 4: 64},
    "P4-8GB": {1: 24, 2: 48, 4: 96},
    "K80-12GB": {1: 8, 2: 16, 4: 32, 8: 64},
}
"""GPU model -> GPUs of a node -> most vCPUs of its machine."""

_GIB_PER_VCPU: Final = {"standard": 3.75, "highmem": 6.5, "highcpu": 0.9}
_SIZES: Final = {
    "standard": (1, 2, 4, 8, 16, 32, 64, 96),
    "highmem": (2, 4, 8, 16, 32, 64, 96),
    "highcpu": (2, 4, 8, 16, 32, 64, 96),
}
_PREDEFINED: Final = re.compile(r"n1-(standard|highmem|highcpu)-([1-9]\d*)")
_CUSTOM: Final = re.compile(r"(?:n1-)?custom-([1-9]\d*)-([1-9]\d*)")
_MIB: Final = 1024
_USUAL_VCPUS: Final = 4
"""Per GPU, when only the GPU is asked for: what g4dn.xlarge and Standard_NC4as_T4_v3 have beside one T4."""


@dataclass(frozen=True, slots=True)
class Host:
    """A machine that GPUs can be attached to."""

    name: str
    vcpus: int
    memory_gib: float


def find_host(provider: str, name: str) -> Host | None:
    """Read the name of an N1 machine, n1-standard-8 or n1-custom-8-32768; None for any other name."""
    if provider != "gke":
        return None
    if custom := _CUSTOM.fullmatch(name):
        return Host(name, int(custom[1]), int(custom[2]) / _MIB)
    found = _PREDEFINED.fullmatch(name)
    if found is None or int(found[2]) not in _SIZES[found[1]]:
        return None
    vcpus = int(found[2])
    return Host(name, vcpus, round(vcpus * _GIB_PER_VCPU[found[1]], 2))


def usual_host(count: float) -> Host:
    """Choose the machine for so many GPUs when none is named: 4 vCPUs per GPU."""
    vcpus = _USUAL_VCPUS * int(count)
    return Host(f"n1-standard-{vcpus}", vcpus, vcpus * _GIB_PER_VCPU["standard"])


def attach_gpus(host: Host, parts: Sequence[Machine], gpu: tuple[GpuModel, float] | None) -> Machine:
    """Put GPUs on a machine.

    Args:
        host: The machine.
        parts: The catalogue's attachable GPUs, one row per model and count.
        gpu: Model and count that are asked for.

    Raises:
        CatalogueError: instance-type; no GPU is named, it cannot be attached, or the machine is too large for it.
    """
    if gpu is None:
        raise CatalogueError(
            f'"{host.name}" has no GPU of its own',
            fix="write gpu: {model: T4, count: 1} beside it",
            why="GPUs are attached to N1 machines, in any of several numbers",
            code="instance-type",
        )
    model, count = gpu
    part = next((part for part in parts if part.model == model and part.has_gpus(count)), None)
    if part is None:
        raise _not_attachable(host, parts, model, count)
    most = MOST_VCPUS[model.name][part.devices]
    if host.vcpus > most:
        raise CatalogueError(
            f'"{host.name}" has {host.vcpus} vCPUs, too many for {count:g} x {model}',
            fix=f"write a machine with at most {most} vCPUs, or more GPUs",
            code="instance-type",
        )
    return replace(part, name=host.name, vcpus=host.vcpus, memory_gib=host.memory_gib)


def _not_attachable(host: Host, parts: Sequence[Machine], model: GpuModel, count: float) -> CatalogueError:
    counts = sorted({part.devices for part in parts if part.model == model})
    if counts:
        fix = f"write count {one_of(str(number) for number in counts)}"
        return CatalogueError(f'"{host.name}" cannot have {count:g} x {model}', fix=fix, code="instance-type")
    models = sorted({part.model.name for part in parts if part.status == "current"})
    return CatalogueError(
        f'{model} cannot be attached to "{host.name}"',
        fix=f"drop instanceType, or write model {one_of(models)}",
        code="instance-type",
    )
