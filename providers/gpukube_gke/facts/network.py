"""GPUDirect as pods use it: GKE's additional networks and the installers of their NCCL plugins. Data and one function.

Sources: GoogleCloudPlatform/container-engine-accelerators gpudirect-tcpx, gpudirect-tcpxo, gpudirect-rdma (labels,
affinity and tolerations of the installers); docs: kubernetes-engine/how-to/gpu-bandwidth-gpudirect-tcpx,
ai-hypercomputer/docs/create/gke-ai-hypercompute.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.fabric import Fabric, FabricPart
from gpukube.core.jsontree import text

if TYPE_CHECKING:
    from gpukube.core.values import Target

_MANIFESTS: Final = "https://raw.githubusercontent.com/GoogleCloudPlatform/container-engine-accelerators/master"


def _installer(name: str, *manifests: str) -> FabricPart:
    applied = " ".join(f"--filename {_MANIFESTS}/{path}" for path in manifests)
    return FabricPart(title=f"the {name}", apps=(name,), install=f"kubectl apply {applied}")


_INJECTOR: Final = "nri_device_injector/nri-device-injector.yaml"
TCPX: Final = _installer("nccl-tcpx-installer", "gpudirect-tcpx/nccl-tcpx-installer.yaml", _INJECTOR)
TCPXO: Final = _installer("nccl-tcpxo-installer", "gpudirect-tcpxo/nccl-tcpxo-installer.yaml", _INJECTOR)
RDMA: Final = _installer("nccl-rdma-installer", "gpudirect-rdma/nccl-rdma-installer.yaml")
RDMA_A4X: Final = _installer("nccl-rdma-installer", "gpudirect-rdma/nccl-rdma-installer-a4x.yaml")
DRANET: Final = FabricPart(
    title="GKE's networking-dra-driver",
    apps=("networking-dra-driver",),
    install="upgrade the cluster to 1.34.1-gke.1829001 or newer, which includes it",
    driver="dra.net",
)
PARTS: Final = (TCPX, TCPXO, RDMA, DRANET)
_FAMILIES: Final[tuple[tuple[str, str, int, FabricPart], ...]] = (
    ("a3-highgpu-8g", "GPUDirect-TCPX", 4, TCPX),
    ("a3-megagpu-", "GPUDirect-TCPXO", 8, TCPXO),
    ("a3-ultragpu-", "GPUDirect-RDMA", 8, RDMA),
    ("a4-", "GPUDirect-RDMA", 8, RDMA),
    ("a4x-highgpu-", "GPUDirect-RDMA", 4, RDMA_A4X),
)
"""Beginning of a machine type, its network, interfaces for GPUs, and the installer of its NCCL plugin."""


def fabric_of(target: Target) -> Fabric | None:
    """Return the fast network of a pool's nodes; None if it has none.

    The networks of pods have the names of the cluster's Network objects. With the accelerator network profile, GKE's
    DRA driver allocates the interfaces instead.
    """
    row = next((row for row in _FAMILIES if target.machine.name.startswith(row[0])), None)
    if not target.high_speed or row is None:
        return None
    _, title, interfaces, installer = row
    by_claims = bool(text(target.native, "networkConfig", "acceleratorNetworkProfile"))
    return Fabric(
        title=title,
        resource="networking.gke.io.networks/*",
        count=interfaces,
        parts=((installer,), (DRANET,)) if by_claims else ((installer,),),
        short="an additional network of the pool has no Network object: kubectl get networks.networking.gke.io",
        setup="claim the interfaces with a ResourceClaimTemplate of a DeviceClass of the cluster"
        if by_claims
        else "annotate pods with networking.gke.io/interfaces, and request one networking.gke.io.networks/NAME per "
        "network: kubectl get networks.networking.gke.io",
    )
