"""InfiniBand as pods use it: the resources, and what provides them. Data and one function.

Sources: Azure/aks-rdma-infiniband (docs, configs/nicclusterpolicy); Mellanox/network-operator manifests (labels,
selectors, tolerations of the DaemonSets).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.fabric import Fabric, FabricPart
from gpukube_aks.facts.fabric import has_infiniband, infiniband_nics

if TYPE_CHECKING:
    from gpukube.core.values import Target

_OWN: Final = "rdma/ib"
_SHARED: Final = "rdma/shared_ib"
_SLOTS: Final = 63
"""Pods that may share the interfaces of a node (configs/nicclusterpolicy/rdma-shared-device-plugin)."""
_POLICY: Final = "https://github.com/Azure/aks-rdma-infiniband/configs/nicclusterpolicy/sriov-device-plugin"
RDMA_PLUGIN: Final = FabricPart(
    title="the RDMA device plugin of NVIDIA's Network Operator",
    images=("sriov-network-device-plugin", "k8s-rdma-shared-dev-plugin"),
    install="helm upgrade --install network-operator network-operator --repo https://helm.ngc.nvidia.com/nvidia "
    "--version v26.4.0 --namespace network-operator --create-namespace --reset-then-reuse-values "
    "--set-json 'node-feature-discovery.worker.tolerations={tolerations}' && kubectl label namespace network-operator "
    f"pod-security.kubernetes.io/enforce=privileged --overwrite && kubectl apply --kustomize {_POLICY} && kubectl "
    'patch nicclusterpolicy nic-cluster-policy --type merge --patch \'{"spec":{"tolerations":{tolerations}}}\'',
    advertises=True,
)
"""Two plugins, one per way to use the interfaces; the Network Operator's policy chooses one, and names the resource."""
DRANET: Final = FabricPart(
    title="DRANET",
    apps=("dranet",),
    install="kubectl apply --filename https://raw.githubusercontent.com/kubernetes-sigs/dranet/main/install.yaml",
    driver="dra.net",
)
"""Installed by users, or by AKS with networkProfile.dranet (managed); its pods tolerate all NoSchedule taints."""
PARTS: Final = (RDMA_PLUGIN, DRANET)


def fabric_of(target: Target) -> Fabric | None:
    """Return the fast network of a pool's nodes; None if it has none."""
    size = target.machine.name
    if not target.high_speed or not has_infiniband(size):
        return None
    interfaces = max(infiniband_nics(size), 1)
    return Fabric(
        title="InfiniBand",
        resource="rdma/*",
        count=interfaces,
        request=_OWN,
        about_request=f"with the Network Operator's shared plugin, write {_SHARED}: 1",
        names={_OWN: interfaces, _SHARED: _SLOTS},
        parts=(PARTS,),
        short="the driver of the Network Operator (ofedDriver) is not ready on the node, or its policy selects other "
        "interfaces",
        locks_memory=True,
    )
