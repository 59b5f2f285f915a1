"""What pods find on a cloud's nodes, known before a node exists.

Pure. A provider has one `NodeFacts` as its member `nodes`. In scope: its shape, and the arithmetic that all clouds
share. Out of scope: any cloud's numbers, and fitting pods to them (gpukube.workload).
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
    """A node's room for user pods: its allocatable resources minus the requests of the cloud's own DaemonSets.

    Attributes:
        cpu: Millicores.
        memory: Bytes.
        pods: Number of additional pods.
    """

    cpu: int
    memory: int
    pods: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """What pods find on a cloud's nodes.

    Attributes:
        room: Returns a node's room for pods; None if the catalog does not know the machine's processors or
            memory. A conservative estimate: never more than on a real node.
        labels: Returns the labels that each node has at creation, including those of the pool, and that the cloud's
            autoscaler knows while the pool is empty. Zone and host name are not included: they differ between nodes.
        selector: Returns labels that select exactly the nodes of this pool, also while the pool is empty.
        on_request: What triggers new nodes if a pending pod alone does not: "a ProvisioningRequest"; "" otherwise.
        provisioning: In that case, the class and other fields of Kueue's ProvisioningRequestConfig; {} otherwise.

    The devices that the autoscaler expects of an empty pool are in the provider's `diagnosis`.
    """

    room: Callable[[Target], Room | None]
    labels: Callable[[Desired], Mapping[str, str]]
    selector: Callable[[Desired], Mapping[str, str]]
    on_request: Callable[[Desired], str] = lambda _: ""
    provisioning: Callable[[Desired], Mapping[str, object]] = lambda _: {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserved:
    """What is reserved on a node.

    Attributes:
        cpu: Millicores reserved for the kubelet.
        memory: Bytes reserved for the kubelet, including the eviction threshold.
        kernel: Share of the machine's nominal memory that is not part of the node's capacity.
        pods: Requests of the cloud's own DaemonSets and NVIDIA's.
    """

    cpu: int
    memory: int
    kernel: float
    pods: Room


def room_left(machine: Machine, most_pods: int, reserved: Reserved) -> Room | None:
    """Return the room left for user pods; None if the catalog does not know processors or memory."""
    if machine.vcpus is None or machine.memory_gib is None:
        return None
    memory = int(machine.memory_gib * GIB * (1 - reserved.kernel)) - reserved.memory - reserved.pods.memory
    return Room(
        cpu=max(0, machine.vcpus * 1000 - reserved.cpu - reserved.pods.cpu),
        memory=max(0, memory),
        pods=max(0, most_pods - reserved.pods.pods),
    )


def in_steps(amount: float, steps: Sequence[tuple[float, float]]) -> float:
    """Return the sum of stepwise shares of an amount: 25 % of the first 4 GiB, 20 % of the next 4, ...

    Args:
        amount: The amount.
        steps: Size of each step and its share, in order.
    """
    total, rest = 0.0, amount
    for size, share in steps:
        total += min(rest, size) * share
        rest -= min(rest, size)
    return total


CPU_STEPS: Final = ((1000, 0.06), (1000, 0.01), (2000, 0.005), (float("inf"), 0.0025))
"""Millicores that both EKS and GKE reserve (docs: kubernetes-engine/concepts/plan-node-sizes; awslabs/amazon-eks-ami
nodeadm/internal/kubelet/config.go)."""


def common_labels(machine: Machine, region: str = "") -> dict[str, str]:
    """Return the labels of every node, including deprecated names that kubelets still set, and the region if known.

    Source:
        docs: kubernetes.io/docs/reference/labels-annotations-taints. Autoscalers set them on their template nodes too
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
