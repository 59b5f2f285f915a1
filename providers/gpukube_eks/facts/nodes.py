"""EKS nodes as pods see them: allocatable resources, and labels at creation.

In scope: the numbers that AWS documents. Out of scope: fitting pods to them (gpukube.workload).

Sources: awslabs/amazon-eks-ami nodeadm/internal/kubelet/config.go, eni_max_pods.go and instance-info.jsonl (the
kubelet's reserves and maximum pods); awsdocs/amazon-eks-user-guide#663 (maximum pods in a managed node group).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.node_facts import CPU_STEPS, MIB, NodeFacts, Reserved, Room, common_labels, in_steps, room_left
from gpukube_eks.facts.in_cluster import IN_CLUSTER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Desired, Target

_KERNEL: Final = 0.075
"""Share of an instance's memory that Karpenter assumes lost until a node reports the real value
(karpenter.sh/docs/reference/settings, VM_MEMORY_OVERHEAD_PERCENT); measured values are 2 to 5 %."""
_EVICTION: Final = 100 * MIB
_SYSTEM_PODS: Final = Room(cpu=250, memory=256 * MIB, pods=9)
"""Allowance for system pods: aws-node 50m and kube-proxy 100m run on every node (aws/amazon-vpc-cni-k8s
charts/aws-vpc-cni, add-on kube-proxy); optional are aws-ebs-csi-driver 30m and 120Mi, node monitoring 10m and 30Mi, pod
identity, node feature discovery 5m and 64Mi, device plugin, GPU feature discovery, and DCGM exporter."""
_FEW_PODS: Final = 110
_MANY_PODS: Final = 250
_MANY_VCPUS: Final = 30
_UNLISTED_PODS: Final = 29
_BY_ADDRESSES: Final[Mapping[int, str]] = {
    20: "g6f.large",
    29: "g4dn.xlarge g4dn.2xlarge g4dn.4xlarge",
    58: "g4dn.8xlarge g4dn.16xlarge g5.xlarge g5.2xlarge g5g.xlarge g5g.2xlarge g6.xlarge g6.2xlarge g6e.xlarge "
    "g6e.2xlarge g6f.xlarge g6f.2xlarge",
    100: "p5.48xlarge p5e.48xlarge",
    118: "p5.4xlarge",
    198: "p5en.48xlarge p6-b200.48xlarge p6-b300.48xlarge",
    234: "g4dn.12xlarge g5.4xlarge g5.8xlarge g5.16xlarge g5g.4xlarge g5g.8xlarge g6.4xlarge g6.8xlarge g6.12xlarge "
    "g6e.4xlarge g6e.8xlarge g6f.4xlarge gr6.4xlarge gr6.8xlarge gr6f.4xlarge",
    254: "g7.2xlarge g7e.2xlarge",
    292: "g6e.12xlarge",
    345: "g5.48xlarge",
    492: "g6e.24xlarge g6e.48xlarge",
    506: "g7.4xlarge g7e.4xlarge g7e.8xlarge",
    632: "g7.8xlarge g7e.12xlarge g7e.24xlarge g7e.48xlarge",
    737: "g4dn.metal g5.12xlarge g5.24xlarge g5g.16xlarge g5g.metal g6.16xlarge g6.24xlarge g6.48xlarge g6e.16xlarge "
    "p3dn.24xlarge p4d.24xlarge p4de.24xlarge",
    758: "g7.12xlarge g7.48xlarge",
    1514: "g7.24xlarge",
}
"""Maximum pods by the addresses of an instance's network interfaces: interfaces x (addresses - 1) + 2."""
_PODS: Final = {name: pods for pods, names in _BY_ADDRESSES.items() for name in names.split()}


def _room(target: Target) -> Room | None:
    """Return the room for pods; the kubelet reserves memory for at least the pods that the addresses allow."""
    machine = target.machine
    by_addresses = _PODS.get(machine.name, _UNLISTED_PODS)
    keeps_for = max(_PODS.get(machine.name, max(_BY_ADDRESSES)), target.max_pods or 0)
    reserved = Reserved(
        cpu=-int(-in_steps((machine.vcpus or 0) * 1000, CPU_STEPS)),
        memory=(255 + 11 * keeps_for) * MIB + _EVICTION,
        kernel=_KERNEL,
        pods=_SYSTEM_PODS,
    )
    most = _FEW_PODS if (machine.vcpus or 0) < _MANY_VCPUS else _MANY_PODS
    return room_left(machine, min(target.max_pods or by_addresses, most), reserved)


def _labels(desired: Desired) -> Mapping[str, str]:
    """Return the labels of new nodes: the kubelet's, and the group's, which the autoscaler gets from DescribeNodegroup.

    Source:
        kubernetes/autoscaler cloudprovider/aws/aws_wrapper.go getManagedNodegroupInfo; docs: eks/managed-node-groups.
    """
    target = desired.target
    bought = {"spot": "SPOT", "on-demand": "ON_DEMAND"}.get(target.capacity.type)
    return {
        **common_labels(target.machine, target.cluster.identity.get("region", "")),
        **desired.labels,
        **_selector(desired),
        **({"eks.amazonaws.com/capacityType": bought} if bought else {}),
    }


def _selector(desired: Desired) -> dict[str, str]:
    return {IN_CLUSTER.pool_label: desired.target.name}


NODES: Final = NodeFacts(room=_room, labels=_labels, selector=_selector)
