"""Instance type data that a provider adds to the embedded table.

A provider has one `CloudMachines` as its member `machines`. In scope: its shape, and reading it from the installed
providers. Out of scope: any one cloud, and consequences for a spec (machines, sharing).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from gpukube.entry_points import provider_names
from gpukube.installed import member_of

if TYPE_CHECKING:
    from gpukube.gpu.machine import Machine

NO_GPU = "machines of this family have no GPU"
"""Reason for rejecting a family without GPUs; if the cloud attaches GPUs to other machines, the fix names those."""


@dataclass(frozen=True, slots=True)
class Unsourced:
    """Types without a source for the number of their GPUs.

    Attributes:
        pattern: Regular expression of their names.
        example: One of them.
        model: Their GPU.
        source: Where the cloud names them.
    """

    pattern: str
    example: str
    model: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudMachines:
    """A provider's data about its instance types.

    Attributes:
        rows: Its GPU machines, if the embedded table has none of this cloud.
        refused: Regular expression of names that cannot work -> why.
        without_gpu: Regular expression of families without NVIDIA GPUs, wrong in a GPU pool, fine next to one -> why.
        unsourced: Types that the cloud sells and the catalog lacks, because no source of the cloud has the number of
            their GPUs.
        variants: Regular expression of special-purpose machines, chosen only by name or if the cloud has nothing else
            -> what is special.
        ignores_case: Whether the cloud accepts names in any case.
        own_sharing: Whether its nodes run the cloud's own device plugin with its own sharing rules: it may run MPS on
            MIG instances, and limits clients regardless of the GPU. The provider checks these rules.
    """

    rows: tuple[Machine, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    without_gpu: tuple[tuple[str, str], ...] = ()
    unsourced: tuple[Unsourced, ...] = ()
    variants: tuple[tuple[str, str], ...] = ()
    ignores_case: bool = False
    own_sharing: bool = False


_UNKNOWN = CloudMachines()


def cloud_machines(provider: str) -> CloudMachines:
    """Return a cloud's data; empty if its provider is not installed."""
    return cast("CloudMachines", member_of(provider, "machines")) if provider in provider_names() else _UNKNOWN


def own_machines() -> list[Machine]:
    """List the machines that installed providers add."""
    return [machine for name in provider_names() for machine in cloud_machines(name).rows]
