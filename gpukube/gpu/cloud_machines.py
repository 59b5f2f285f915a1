"""What a cloud knows of its instance types beside the embedded table, as a value.

A provider gives one `CloudMachines` as its member `machines`. In scope: its shape, and asking the installed
providers. Out of scope: any cloud, and what follows for a spec (machines, sharing).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from gpukube.entry_points import provider_names
from gpukube.installed import member_of

if TYPE_CHECKING:
    from gpukube.gpu.machine import Machine

NO_GPU = "machines of this family have no GPU"
"""Reason of families without GPUs; where the cloud attaches GPUs to other machines, those are offered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudMachines:
    """What a cloud knows of its instance types.

    Attributes:
        rows: Its machines with GPUs, as far as the embedded table has none of this cloud.
        refused: Regular expression of names that cannot work -> why.
        without_gpu: Regular expression of families without NVIDIA GPUs, wrong in a GPU pool and right beside it -> why.
        variants: Regular expression of machines for a special purpose, taken only when named, or when the cloud
            has nothing else -> what makes them so.
        ignores_case: Whether the cloud takes names in any case.
        own_sharing: Whether its nodes run a device plugin of its own making, which shares GPUs by rules of its own: it
            may run MPS on MIG instances, and limits clients without regard to the GPU. Its provider checks them.
    """

    rows: tuple[Machine, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    without_gpu: tuple[tuple[str, str], ...] = ()
    variants: tuple[tuple[str, str], ...] = ()
    ignores_case: bool = False
    own_sharing: bool = False


_UNKNOWN = CloudMachines()


def cloud_machines(provider: str) -> CloudMachines:
    """Return what a cloud knows; nothing where it is not installed."""
    return cast("CloudMachines", member_of(provider, "machines")) if provider in provider_names() else _UNKNOWN


def own_machines() -> list[Machine]:
    """List the machines that installed providers bring."""
    return [machine for name in provider_names() for machine in cloud_machines(name).rows]
