"""InfiniBand, NVMe disks, and confidential computing of sizes.

In scope: the tables and their lookup. Out of scope: the driver and the device plugin, which AKS does not install.

Sources: Azure's size pages, virtual-machines/sizes/gpu-accelerated: ndv2, ndasra100v4, ndma100v4, ndh100v5, nd-h200-v5,
nd-gb200-v6, nd-gb300-v6; a size with InfiniBand has an r in its name (docs: aks/use-amd-gpus,
virtual-machines/vm-naming-conventions).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAME: Final = re.compile(r"Standard_N[CD]\d+[a-z]*r[a-z]*(G\d+)?_.+", re.IGNORECASE)
_NICS: Final[Mapping[str, int]] = {
    "Standard_ND40rs_v2": 1,
    "Standard_ND96asr_v4": 8,
    "Standard_ND96amsr_A100_v4": 8,
    "Standard_ND96isr_H100_v5": 8,
    "Standard_ND96isr_H200_v5": 8,
    "Standard_ND128isr_NDR_GB200_v6": 4,
    "Standard_ND128isr_GB300_v6": 4,
    "Standard_ND128isrG5_GB300_v6": 4,
}
_NVME: Final[Mapping[str, tuple[int, int]]] = {
    "Standard_ND96isr_H100_v5": (8, 3840),
    "Standard_ND96isr_H200_v5": (8, 3840),
    "Standard_ND128isr_NDR_GB200_v6": (4, 4000),
    "Standard_ND128isr_GB300_v6": (4, 4000),
    "Standard_ND128isrG5_GB300_v6": (4, 4000),
}


def has_infiniband(size: str) -> bool:
    """Return whether nodes of a size are connected by InfiniBand, also of a size that only a refresh knows."""
    return _NAME.fullmatch(size) is not None


def infiniband_nics(size: str) -> int:
    """Return the InfiniBand interfaces of a node; 0 without InfiniBand, or if no page has their number."""
    return _NICS.get(size, 0)


def nvme_disks(size: str) -> tuple[int, int] | None:
    """Return number and size in GB of a node's local NVMe disks; None if no page has them."""
    return _NVME.get(size)


def is_confidential(size: str) -> bool:
    """Return whether machines of a size are confidential: all of the NCC series are, and no other GPU size is."""
    return size.startswith("Standard_NCC")
