"""One instance type as a value.

In scope: `Machine`. Out of scope: the list of machines, and finding one (machines).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isclose
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from gpukube.gpu.models import Arch, GpuModel

COUNT_TOLERANCE: Final = 0.001

Status = Literal["current", "legacy", "preview", "retired", "unknown", "no-image"]


@dataclass(frozen=True, slots=True)
class Machine:
    """One instance type of one cloud.

    Attributes:
        provider: Name in the spec, "aks".
        name: The cloud's own spelling; "n1-*" is a GPU attached to any n1 machine of GCE.
        model: Its GPU.
        gpus: GPUs per node; below 1 for a share of a GPU.
        gpu_memory_gib: Memory of each GPU, or of the share if fractional.
        vcpus: None if unknown, like every other optional number.
        memory_gib: Main memory.
        arch: CPU architecture.
        mig_capable: Whether MIG can be enabled on this cloud; None if unconfirmed.
        accelerator: GKE's accelerator type, "" elsewhere.
        local_ssd_gib: Total size of the local disks included in the machine.
        price_usd_h: On-demand price, Linux, one node, in price_region on the catalog's date.
        spot_usd_h: Spot price, same terms.
        price_region: "" if no price is known.
        price_date: Date of the prices, YYYY-MM-DD; "" if none is known.
        efa_cards: EKS's network cards with EFA, of a type that only a refresh knows; the provider has those of others.
        status: retired is an error; legacy, preview, and unknown are warnings; no-image needs a node image of your own,
            because no image of the cloud has its driver.
        notes: Human-readable notes; may be "".
        successor: Replacement for a retired type, "" if unknown.
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
    efa_cards: tuple[int, ...] = ()

    @property
    def devices(self) -> int:
        """Devices that a node advertises as nvidia.com/gpu; a share of a GPU counts as one."""
        return max(1, round(self.gpus))

    def has_gpus(self, count: float) -> bool:
        """Return whether the node has this many GPUs; shares such as 1/6 are rounded as in the clouds' own tables."""
        return isclose(self.gpus, count, abs_tol=COUNT_TOLERANCE)

    @property
    def is_fractional(self) -> bool:
        """Whether the node has only a share of a GPU."""
        return self.gpus < 1
