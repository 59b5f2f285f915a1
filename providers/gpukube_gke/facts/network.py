"""GPUDirect as pods use it: GKE's additional networks and the installers of their NCCL plugins. Data and one function.

Sources: GoogleCloudPlatform/container-engine-accelerators gpudirect-tcpx, gpudirect-tcpxo, gpudirect-rdma (labels,
affinity and tolerations of the installers); docs: kubernetes-engine/how-to/gpu-bandwidth-gpudirect-tcpx,
ai-hypercomputer/docs/create/gke-ai-hypercompute.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.fabric import Fabric, FabricPart
from gpukube.core.jsontree import text
from gpukube_gke.facts.fabric import fabric_of as network_of
from gpukube_gke.facts.fabric import uses_profile

if TYPE_CHECKING:
    from collections.abc import Mapping

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
RDMA_A4X_MAX: Final = _installer("nccl-rdma-installer", "gpudirect-rdma/nccl-rdma-installer-a4x-max.yaml")
DRANET: Final = FabricPart(
    title="GKE's networking-dra-driver",
    apps=("networking-dra-driver",),
    install="upgrade the cluster to 1.34.1-gke.1829001 or newer, which includes it",
    driver="dra.net",
)
PARTS: Final = (TCPX, TCPXO, RDMA, DRANET)
_INSTALLERS: Final[Mapping[str, FabricPart]] = {
    "a3-highgpu": TCPX,
    "a3-megagpu": TCPXO,
    "a3-ultragpu": RDMA,
    "a4-highgpu": RDMA,
    "a4x-highgpu": RDMA_A4X,
    "a4x-maxgpu": RDMA_A4X_MAX,
}
"""Machine family -> the installer of its NCCL plugin."""


def fabric_of(target: Target) -> Fabric | None:
    """Return the fast network of a pool's nodes; None if it has none.

    The networks of pods have the names of the cluster's Network objects. With the accelerator network profile, GKE's
    DRA driver allocates the interfaces instead.
    """
    found = network_of(target.machine.name)
    if not target.high_speed or found is None:
        return None
    installer = _INSTALLERS["-".join(target.machine.name.split("-")[:2])]
    by_claims = uses_profile(target) or bool(text(target.native, "networkConfig", "acceleratorNetworkProfile"))
    return Fabric(
        title=found.kind,
        resource="networking.gke.io.networks/*",
        count=found.interfaces,
        parts=((installer,), (DRANET,)) if by_claims else ((installer,),),
        short="an additional network of the pool has no Network object: kubectl get networks.networking.gke.io",
        setup="claim the interfaces with a ResourceClaimTemplate of a DeviceClass of the cluster"
        if by_claims
        else "annotate pods with networking.gke.io/interfaces, and request one networking.gke.io.networks/NAME per "
        "network: kubectl get networks.networking.gke.io",
    )
