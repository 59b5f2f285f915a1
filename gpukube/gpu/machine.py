"""One instance type as a value.

In scope: `Machine`. Out of scope: which there are, and finding one (machines).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isclose
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from gpukube.gpu.models import Arch, GpuModel

COUNT_TOLERANCE: Final = 0.001

Status = Literal["current", "legacy", "preview", "retired", "unknown"]


@dataclass(frozen=True, slots=True)
class Machine:
    """One instance type of one cloud.

    Attributes:
        provider: Name in the spec, "aks".
        name: The cloud's own spelling; "n1-*" is a GPU attached to any n1 machine of GCE.
        model: Its GPU.
        gpus: GPUs of one node; below 1 for a share of a GPU.
        gpu_memory_gib: Memory of each GPU, of the share for a fractional one.
        vcpus: None when unknown, as every other optional number.
        memory_gib: Main memory.
        arch: CPU architecture.
        mig_capable: The node's owner can cut the GPU on this cloud; None when unconfirmed.
        accelerator: GKE's accelerator type, "" elsewhere.
        local_ssd_gib: Disks that come with the machine.
        price_usd_h: On demand, Linux, one node, in price_region at the catalog's date.
        spot_usd_h: Spot price likewise.
        price_region: "" when no price is known.
        price_date: Day of the prices, YYYY-MM-DD; "" when none is known.
        status: retired is refused; legacy, preview and unknown are warned about.
        notes: For people, "" when there is nothing to say.
        successor: What to use in place of a retired type, "" when not known.
    """

    provider: str
    name: str
    model: GpuModel
    gpus: float
    gpu_memory_gib: float
    vcpus: int | None
    memory_gib: float | None
    arch: Arch
    mig_capable: bool | None
    accelerator: str
    local_ssd_gib: float | None
    price_usd_h: float | None
    spot_usd_h: float | None
    price_region: str
    status: Status
    notes: str = ""
    successor: str = ""
    price_date: str = ""

    @property
    def devices(self) -> int:
        """Whole GPUs a node shows as nvidia.com/gpu; a share of a GPU shows as one."""
        return max(1, round(self.gpus))

    def has_gpus(self, count: float) -> bool:
        """Return whether the node holds this many GPUs; shares such as 1/6 are rounded in the clouds' own tables."""
        return isclose(self.gpus, count, abs_tol=COUNT_TOLERANCE)

    @property
    def is_fractional(self) -> bool:
        """Whether the node holds a share of a GPU."""
        return self.gpus < 1
