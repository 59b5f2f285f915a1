"""What AKS's nodes offer pods: allocatable resources, and labels at creation.

In scope: the numbers that Azure documents. Out of scope: whether pods fit (gpukube.workload).

Sources: docs: aks/node-resource-reservations (AKS 1.29 and later), aks/concepts-network-ip-address-planning,
aks/use-labels, aks/spot-node-pool.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.node_facts import MIB, NodeFacts, Reserved, Room, common_labels, in_steps, room_left
from gpukube_aks.facts.in_cluster import IN_CLUSTER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Desired, Target

_KERNEL: Final = 0.075
"""Share of a machine's memory that Karpenter for Azure considers lost (Azure/karpenter-provider-azure,
vm-memory-overhead-percent); measurements show 2 to 4 %."""
_EVICTION: Final = 100 * MIB
_CPU_STEPS: Final = ((1, 60), (1, 40), (2, 20), (float("inf"), 10))
"""Reserved millicores per core: the documented 60, 100, 140, 180, 260, 420, and 740 for 1 to 64 cores; 10 for each
further core is an extrapolation."""
_FEWEST_PODS: Final = 30
_MAX_PODS: Final = 250
"""Maximum pods per node if the spec sets none. The cluster's network decides: 30 with Azure CNI in the node's subnet,
110 with kubenet, 250 with the overlay or a pod subnet."""
_SYSTEM_PODS: Final = Room(cpu=600, memory=1152 * MIB, pods=12)
"""Allowance for system pods. Every node runs kube-proxy (100m), azure-cns (40m, 250Mi), azure-ip-masq-agent (100m,
50Mi), cloud-node-manager (50m, 50Mi), and the disk and file drivers (30m, 60Mi each); some also run monitoring agents,
network policies, node feature discovery, the device plugin, and exporters."""


def _room(target: Target) -> Room | None:
    memory_mib = (target.machine.memory_gib or 0) * 1024
    keeps = min(20 * (target.max_pods or _MAX_PODS) + 50, memory_mib / 4)
    reserved = Reserved(
        cpu=int(in_steps(target.machine.vcpus or 0, _CPU_STEPS)),
        memory=int(keeps) * MIB + _EVICTION,
        kernel=_KERNEL,
        pods=_SYSTEM_PODS,
    )
    return room_left(target.machine, target.max_pods or _FEWEST_PODS, reserved)


def _labels(desired: Desired) -> Mapping[str, str]:
    """Return the labels of the pool, from which AKS fills its autoscaler's template, and those of the kubelet.

    Source:
        kubernetes/autoscaler cloudprovider/azure/azure_template.go (buildGenericLabels, processVMSSTemplate); the
        autoscaler that AKS hosts is not public; the service passes it the labels of the pool.
    """
    target = desired.target
    spot = target.capacity.type == "spot"
    return {
        **common_labels(target.machine),
        **desired.labels,
        **_selector(desired),
        "agentpool": target.name,
        "kubernetes.azure.com/mode": "user",
        "kubernetes.azure.com/role": "agent",
        **IN_CLUSTER.gpu_labels,
        "kubernetes.azure.com/priority": "spot" if spot else "regular",
        **({"kubernetes.azure.com/scalesetpriority": "spot"} if spot else {}),
    }


def _selector(desired: Desired) -> dict[str, str]:
    return {IN_CLUSTER.pool_label: desired.target.name}


NODES: Final = NodeFacts(room=_room, labels=_labels, selector=_selector)
