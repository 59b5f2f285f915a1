"""GPUs attached to GCE's N1 machines, which have none of their own.

In scope: names and sizes of N1 machines, and how many GPUs each can have. Out of scope: the catalog's machines, and
combining the two (machines.py).

Sources: docs: compute/docs/gpus (the limits of vCPUs per GPU; also in GKE's cluster autoscaler), compute/docs/
general-purpose-machines (N1 shapes).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

ATTACHED: Final = "n1-*"
"""Machine name in the catalog for a GPU that can be attached to any N1 machine."""

MOST_VCPUS: Final[dict[str, dict[int, int]]] = {
    "T4-16GB": {1: 48, 2: 48, 4: 96},
    "V100-16GB": {1: 12, 2: 24, 4: 48, 8: 96},
    "P100-16GB": {1: 16, 2: 32, 4: 64},
    "P4-8GB": {1: 24, 2: 48, 4: 96},
    "K80-12GB": {1: 8, 2: 16, 4: 32, 8: 64},
}
"""GPU model -> GPUs of a node -> maximum vCPUs of its machine."""

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
"""vCPUs per GPU if the spec names only the GPU: as many as g4dn.xlarge and Standard_NC4as_T4_v3 have for one T4."""


@dataclass(frozen=True, slots=True)
class Host:
    """A machine that GPUs can be attached to."""

    name: str
    vcpus: int
    memory_gib: float


def find_host(name: str) -> Host | None:
    """Parse the name of an N1 machine, n1-standard-8 or n1-custom-8-32768; return None for any other name."""
    if custom := _CUSTOM.fullmatch(name):
        return Host(name, int(custom[1]), int(custom[2]) / _MIB)
    found = _PREDEFINED.fullmatch(name)
    if found is None or int(found[2]) not in _SIZES[found[1]]:
        return None
    vcpus = int(found[2])
    return Host(name, vcpus, round(vcpus * _GIB_PER_VCPU[found[1]], 2))


def usual_host(count: float) -> Host:
    """Return the default machine for a number of GPUs: 4 vCPUs per GPU."""
    vcpus = _USUAL_VCPUS * int(count)
    return Host(f"n1-standard-{vcpus}", vcpus, vcpus * _GIB_PER_VCPU["standard"])
