"""The GPUs' network of machine types.

In scope: the table and its lookup. Out of scope: the networks themselves, which a cluster's administrator creates.

Sources: docs: compute/docs/accelerator-optimized-machines (physical NICs); docs.nvidia.com/aicr: gke-tcpxo-networking,
gke-a-4-x-max-networking; GoogleCloudPlatform/cluster-toolkit 104708037, examples/gke-a3-highgpu, gke-a3-ultragpu.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from gpukube.core.jsontree import trees

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Target

Kind = Literal["GPUDirect-TCPX", "GPUDirect-TCPXO", "GPUDirect-RDMA"]


@dataclass(frozen=True, slots=True)
class Fabric:
    """The network between the GPUs of several nodes.

    Attributes:
        kind: Its name at Google.
        interfaces: Interfaces for GPUs; besides them, a node has at least the cluster's interface.
    """

    kind: Kind
    interfaces: int

    @property
    def profile(self) -> bool:
        """Whether GKE can make the networks itself (google.container.v1 NodeNetworkConfig)."""
        return self.kind == "GPUDirect-RDMA"


_FABRICS: Final[tuple[tuple[str, Fabric], ...]] = (
    (r"a3-highgpu-8g", Fabric("GPUDirect-TCPX", 4)),
    (r"a3-megagpu-8g", Fabric("GPUDirect-TCPXO", 8)),
    (r"(a3-ultragpu|a4-highgpu)-8g(-nolssd)?", Fabric("GPUDirect-RDMA", 8)),
    (r"a4x-highgpu-4g(-nolssd)?", Fabric("GPUDirect-RDMA", 4)),
    (r"a4x-maxgpu-4g-metal", Fabric("GPUDirect-RDMA", 8)),
)


def fabric_of(machine: str) -> Fabric | None:
    """Return the network of a machine type's GPUs; None if its GPUs use the node's ordinary network."""
    return next((fabric for pattern, fabric in _FABRICS if re.fullmatch(pattern, machine)), None)


def given_networks(pool: Mapping[str, object]) -> int:
    """Return the number of additional networks that a pool names."""
    return len(trees(pool, "networkConfig", "additionalNodeNetworkConfigs"))


def uses_profile(target: Target) -> bool:
    """Return whether GKE itself makes the networks of the GPUs; where it can, unless the spec names all of them."""
    fabric = fabric_of(target.machine.name)
    return bool(target.high_speed and fabric and fabric.profile and given_networks(target.native) < fabric.interfaces)
