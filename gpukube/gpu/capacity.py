"""Predicts how many devices a node advertises, and under which name: GPUs x MIG instances x replicas.

In scope: the prediction that plan prints and verify checks. Out of scope: reading live nodes.

Names and numbers follow NVIDIA/k8s-device-plugin v0.20.0 (internal/rm, README).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.gpu.claims import GPU_CLASS, mig_devices
from gpukube.gpu.mig import resource_name
from gpukube.gpu.sharing import cut_instances

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.gpu.machines import Machine
    from gpukube.gpu.sharing import Sharing

GPU_RESOURCE: Final = "nvidia.com/gpu"
SHARED_SUFFIX: Final = ".shared"


def unshared_resources(sharing: Sharing) -> tuple[str, ...]:
    """Return the resource names before replicas: nvidia.com/gpu, or with mixed nvidia.com/mig-<profile> per profile."""
    if sharing.mig and sharing.mig.strategy == "mixed":
        return tuple(sorted(map(resource_name, sharing.mig.profiles)))
    return (GPU_RESOURCE,)


def shared_name(resource: str, sharing: Sharing) -> str:
    """Return a resource name as pods request it: with the suffix ".shared" if replicas rename it."""
    renamed = sharing.slicing is not None and sharing.slicing.rename
    return resource + (SHARED_SUFFIX if renamed else "")


def node_capacity(machine: Machine, sharing: Sharing) -> dict[str, int]:
    """Count the devices that one node advertises, per resource name.

    8 x A100-40GB: whole {"nvidia.com/gpu": 8}; 1g.5gb single {"nvidia.com/gpu": 56}; 1g.5gb mixed
    {"nvidia.com/mig-1g.5gb": 56}; 1g.5gb single with 2 renamed replicas {"nvidia.com/gpu.shared": 112}; the layout
    3g.20gb + 2 x 2g.10gb {"nvidia.com/mig-2g.10gb": 16, "nvidia.com/mig-3g.20gb": 8}. A node with a share of a GPU
    advertises one.

    Raises:
        CatalogError: The model does not support MIG, or not this profile.
    """
    times = sharing.slicing.replicas if sharing.slicing else 1
    return {
        shared_name(name, sharing): machine.devices * count * times
        for name, count in _devices_per_gpu(machine, sharing).items()
    }


def claimable_devices(machine: Machine, sharing: Sharing) -> dict[str, int]:
    """Count the devices of one node that NVIDIA's DRA driver publishes: whole GPUs, or MIG devices by profile.

    8 x A100-40GB: whole {"gpu.nvidia.com": 8}; 1g.5gb {"mig.nvidia.com/1g.5gb": 56}, with either strategy.

    Raises:
        CatalogError: The model does not support MIG, or not this profile.
    """
    if sharing.mig is None:
        return {GPU_CLASS: machine.devices}
    instances = cut_instances(machine.model, sharing.mig)
    return {mig_devices(profile.name): machine.devices * count for profile, count in instances.items()}


def _devices_per_gpu(machine: Machine, sharing: Sharing) -> dict[str, int]:
    if sharing.mig is None:
        return {GPU_RESOURCE: 1}
    instances = cut_instances(machine.model, sharing.mig)
    if sharing.mig.strategy == "single":
        return {GPU_RESOURCE: sum(instances.values())}
    return {resource_name(profile): count for profile, count in instances.items()}


def pool_capacity(per_node: Mapping[str, int], nodes_min: int, nodes_max: int) -> dict[str, tuple[int, int]]:
    """Multiply a node's devices by the minimum and maximum number of nodes of a pool.

    {"nvidia.com/gpu": 56} with 0 to 3 nodes gives {"nvidia.com/gpu": (0, 168)}.
    """
    return {name: (devices * nodes_min, devices * nodes_max) for name, devices in per_node.items()}
