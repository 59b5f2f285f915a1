"""Machine types of the emulated region: vCPU, memory, and their GPUs.

In scope: the sandbox's own machine table. Out of scope: accelerators that can be attached (`accelerators`).

Sources: GKE cluster-autoscaler machinetypes; docs: compute/docs/gpus, compute/docs/general-purpose-machines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

DEFAULT_MACHINE = "e2-medium"


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine type.

    Attributes:
        name: Google's spelling.
        vcpus: Virtual CPUs.
        memory_gib: Memory.
        accelerator: `accelerator_type` of the included GPUs; "" for none.
        gpus: Number of included GPUs, which requests must have.
        arm: Whether its CPUs are arm64.
        fractional: Whether it has a part of one GPU.
    """

    name: str
    vcpus: int
    memory_gib: float
    accelerator: str = ""
    gpus: int = 0
    arm: bool = False
    fractional: bool = False

    @property
    def family(self) -> str:
        """Return the series, "a2"."""
        return self.name.partition("-")[0]

    @property
    def disk_type(self) -> str:
        """Return the default boot disk type; some machines boot only from Hyperdisk Balanced.

        Sources: docs: compute/docs/gpus; DataBiosphere/dsub#301 (n4).
        """
        hyperdisk = self.family in {"a4", "a4x", "g4", "n4"} or self.name == "a3-ultragpu-8g"
        return "hyperdisk-balanced" if hyperdisk else "pd-balanced"


_A100, _A80, _H100, _L4 = "nvidia-tesla-a100", "nvidia-a100-80gb", "nvidia-h100-80gb", "nvidia-l4"
_RTX = "nvidia-rtx-pro-6000"

_TABLE = (
    Machine("a2-highgpu-1g", 12, 85, _A100, 1),
    Machine("a2-highgpu-2g", 24, 170, _A100, 2),
    Machine("a2-highgpu-4g", 48, 340, _A100, 4),
    Machine("a2-highgpu-8g", 96, 680, _A100, 8),
    Machine("a2-megagpu-16g", 96, 1360, _A100, 16),
    Machine("a2-ultragpu-1g", 12, 170, _A80, 1),
    Machine("a2-ultragpu-2g", 24, 340, _A80, 2),
    Machine("a2-ultragpu-4g", 48, 680, _A80, 4),
    Machine("a2-ultragpu-8g", 96, 1360, _A80, 8),
    Machine("a3-highgpu-1g", 26, 234, _H100, 1),
    Machine("a3-highgpu-2g", 52, 468, _H100, 2),
    Machine("a3-highgpu-4g", 104, 936, _H100, 4),
    Machine("a3-highgpu-8g", 208, 1872, _H100, 8),
    Machine("a3-edgegpu-8g", 208, 1872, _H100, 8),
    Machine("a3-megagpu-8g", 208, 1872, "nvidia-h100-mega-80gb", 8),
    Machine("a3-ultragpu-8g", 224, 2952, "nvidia-h200-141gb", 8),
    Machine("a4-highgpu-8g", 224, 3968, "nvidia-b200", 8),
    Machine("a4x-highgpu-4g", 140, 884, "nvidia-gb200", 4, arm=True),
    Machine("a4x-maxgpu-4g-metal", 144, 960, "nvidia-gb300", 4, arm=True),
    Machine("g2-standard-4", 4, 16, _L4, 1),
    Machine("g2-standard-8", 8, 32, _L4, 1),
    Machine("g2-standard-12", 12, 48, _L4, 1),
    Machine("g2-standard-16", 16, 64, _L4, 1),
    Machine("g2-standard-24", 24, 96, _L4, 2),
    Machine("g2-standard-32", 32, 128, _L4, 1),
    Machine("g2-standard-48", 48, 192, _L4, 4),
    Machine("g2-standard-96", 96, 384, _L4, 8),
    Machine("g4-standard-6", 6, 22, _RTX, 1, fractional=True),
    Machine("g4-standard-12", 12, 45, _RTX, 1, fractional=True),
    Machine("g4-standard-24", 24, 90, _RTX, 1, fractional=True),
    Machine("g4-standard-48", 48, 180, _RTX, 1),
    Machine("g4-standard-96", 96, 360, _RTX, 2),
    Machine("g4-standard-192", 192, 720, _RTX, 4),
    Machine("g4-standard-384", 384, 1440, _RTX, 8),
    Machine(DEFAULT_MACHINE, 2, 4),
    Machine("e2-small", 2, 2),
)
_WITHOUT_SSD = tuple(
    Machine(f"{machine.name}-nolssd", machine.vcpus, machine.memory_gib, machine.accelerator, machine.gpus)
    for machine in _TABLE
    if machine.name.startswith(("a2-ultragpu", "a3-highgpu"))
)
_MACHINES = {machine.name: machine for machine in (*_TABLE, *_WITHOUT_SSD)}

_GENERAL = re.compile(r"(e2|n1|n2|n2d|n4|c2|c3|t2d)-(standard|highmem|highcpu)-(\d+)")
_CUSTOM = re.compile(r"(n1-)?custom-(\d+)-(\d+)")
_GIB_PER_VCPU = {
    ("n1", "standard"): 3.75, ("n1", "highmem"): 6.5, ("n1", "highcpu"): 0.9,
}  # fmt: skip
_USUAL_GIB = {"standard": 4.0, "highmem": 8.0, "highcpu": 1.0}
_SIZES = frozenset({1, 2, 4, 8, 16, 22, 30, 32, 44, 48, 64, 80, 88, 96, 128, 176})


def all_machines() -> tuple[Machine, ...]:
    """Return all machine types except the general-purpose ones, which are parsed from their names."""
    return tuple(_MACHINES.values())


def find_machine(name: str) -> Machine | None:
    """Find a machine type, parsing general-purpose ones from their names; None if it does not exist."""
    if name in _MACHINES:
        return _MACHINES[name]
    custom = _CUSTOM.fullmatch(name)
    if custom:
        return Machine(name if custom[1] else f"n1-{name}", int(custom[2]), int(custom[3]) / 1024)
    found = _GENERAL.fullmatch(name)
    if found is None or int(found[3]) not in _SIZES:
        return None
    vcpus = int(found[3])
    return Machine(name, vcpus, vcpus * _GIB_PER_VCPU.get((found[1], found[2]), _USUAL_GIB[found[2]]))
