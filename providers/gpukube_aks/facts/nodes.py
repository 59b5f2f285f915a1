"""What AKS's nodes are like for pods: the room on them, and their labels at creation.

In scope: the numbers that Azure documents. Out of scope: what pods make of them (gpukube.workload).

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
"""Karpenter for Azure takes this much of a machine's memory for lost (Azure/karpenter-provider-azure,
vm-memory-overhead-percent); measured it is 2 to 4 %."""
_EVICTION: Final = 100 * MIB
_CPU_STEPS: Final = ((1, 60), (1, 40), (2, 20), (float("inf"), 10))
"""Millicores for each core: the documented 60, 100, 140, 180, 260, 420 and 740 for 1 to 64 cores; 10 for each further
one is an extrapolation."""
_FEWEST_PODS: Final = 30
_MOST_PODS: Final = 250
"""Pods of a node where the spec does not say: the cluster's network decides, 30 with Azure CNI in the node's subnet,
110 with kubenet, 250 with the overlay and a subnet for pods."""
_SYSTEM_PODS: Final = Room(cpu=600, memory=1152 * MIB, pods=12)
"""An allowance: kube-proxy 100m, azure-cns 40m and 250Mi, azure-ip-masq-agent 100m and 50Mi, cloud-node-manager 50m and
50Mi, the disk and file drivers 30m and 60Mi each are on every node; monitoring agents, network policies, node feature
discovery, device plugin and exporters may be."""


def _room(target: Target) -> Room | None:
    memory_mib = (target.machine.memory_gib or 0) * 1024
    keeps = min(20 * (target.max_pods or _MOST_PODS) + 50, memory_mib / 4)
    reserved = Reserved(
        cpu=int(in_steps(target.machine.vcpus or 0, _CPU_STEPS)),
        memory=int(keeps) * MIB + _EVICTION,
        kernel=_KERNEL,
        pods=_SYSTEM_PODS,
    )
    return room_left(target.machine, target.max_pods or _FEWEST_PODS, reserved)


def _labels(desired: Desired) -> Mapping[str, str]:
    """Those of the pool, by which AKS fills in its autoscaler's template, and the kubelet's.

    Source:
        kubernetes/autoscaler cloudprovider/azure/azure_template.go (buildGenericLabels, processVMSSTemplate); the
        autoscaler that AKS hosts is not public, and gets the labels of the pool from the service.
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
