"""What a cloud's nodes are like for pods, before there is one: a provider gives one `NodeFacts` as its member `nodes`.

Pure. In scope: its shape, and the arithmetic that all clouds share. Out of scope: any cloud's numbers, and what
pods make of it (gpukube.workload).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gpukube.core.values import Desired, Target
    from gpukube.gpu.machines import Machine

MIB: Final = 1024**2
GIB: Final = 1024**3


@dataclass(frozen=True, slots=True)
class Room:
    """What a node has for pods of users: its allocatable, less what the cloud's own DaemonSets request.

    Attributes:
        cpu: Millicores.
        memory: Bytes.
        pods: How many more pods it takes.
    """

    cpu: int
    memory: int
    pods: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """What a cloud's nodes are like for pods.

    Attributes:
        room: What a node of a pool has for pods; None where the catalog does not know the machine's processors or
            memory. An estimate on the safe side: it is never more than a real node has.
        labels: Labels that each node has at its creation, those of the pool included, and that the cloud's autoscaler
            knows while the pool is empty. Zone and host name are not among them: they differ from node to node.
        selector: The labels that choose the nodes of this pool and of no other, safe while the pool is empty.
        on_request: What makes nodes come, where a pending pod alone does not: "a ProvisioningRequest"; "" elsewhere.
        provisioning: There the class and more of what a ProvisioningRequestConfig of Kueue has; {} elsewhere.

    What the autoscaler expects of an empty pool's devices is in the provider's `diagnosis`.
    """

    room: Callable[[Target], Room | None]
    labels: Callable[[Desired], Mapping[str, str]]
    selector: Callable[[Desired], Mapping[str, str]]
    on_request: Callable[[Desired], str] = lambda _: ""
    provisioning: Callable[[Desired], Mapping[str, object]] = lambda _: {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserved:
    """What pods of users cannot have of a node.

    Attributes:
        cpu: Millicores that the kubelet keeps.
        memory: Bytes that the kubelet keeps, the eviction threshold included.
        kernel: Part of the machine's nominal memory that the node does not show as its capacity.
        pods: What the cloud's own DaemonSets, and NVIDIA's, request.
    """

    cpu: int
    memory: int
    kernel: float
    pods: Room


def room_left(machine: Machine, most_pods: int, reserved: Reserved) -> Room | None:
    """Return what is left for pods of users; None where the catalog does not know processors or memory."""
    if machine.vcpus is None or machine.memory_gib is None:
        return None
    memory = int(machine.memory_gib * GIB * (1 - reserved.kernel)) - reserved.memory - reserved.pods.memory
    return Room(
        cpu=max(0, machine.vcpus * 1000 - reserved.cpu - reserved.pods.cpu),
        memory=max(0, memory),
        pods=max(0, most_pods - reserved.pods.pods),
    )


def in_steps(amount: float, steps: Sequence[tuple[float, float]]) -> float:
    """Add up shares of an amount that differ by steps: 25 % of the first 4 GiB, 20 % of the next 4, ...

    Args:
        amount: Of which shares are taken.
        steps: Size of each step and its share, in order.
    """
    total, rest = 0.0, amount
    for size, share in steps:
        total += min(rest, size) * share
        rest -= min(rest, size)
    return total


CPU_STEPS: Final = ((1000, 0.06), (1000, 0.01), (2000, 0.005), (float("inf"), 0.0025))
"""Millicores that EKS and GKE reserve alike (docs: kubernetes-engine/concepts/plan-node-sizes; awslabs/amazon-eks-ami
nodeadm/internal/kubelet/config.go)."""


def common_labels(machine: Machine, region: str = "") -> dict[str, str]:
    """Return the labels that every node has, with older names that kubelets still write; the region's where known.

    Source:
        docs: kubernetes.io/docs/reference/labels-annotations-taints. Autoscalers put them on their template nodes too
        (kubernetes/autoscaler cloudprovider/{aws,azure,gce}: buildGenericLabels).
    """
    return {
        "kubernetes.io/arch": machine.arch,
        "beta.kubernetes.io/arch": machine.arch,
        "kubernetes.io/os": "linux",
        "beta.kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": machine.name,
        "beta.kubernetes.io/instance-type": machine.name,
        **({"topology.kubernetes.io/region": region} if region else {}),
    }
