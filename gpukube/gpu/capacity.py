"""How many devices a node shows, and under which name: GPUs x MIG instances x replicas.

Lives here: the prediction that plan prints and verify proves. Must not live here: reading live nodes.

Names and numbers follow NVIDIA/k8s-device-plugin v0.20.0 (internal/rm, README).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.gpu.mig import instances_per_gpu, resource_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.gpu.machines import Machine
    from gpukube.gpu.sharing import Sharing

__all__ = ["GPU_RESOURCE", "node_capacity", "pool_capacity", "shown_resource", "unshared_resource"]

GPU_RESOURCE: Final = "nvidia.com/gpu"
SHARED_SUFFIX: Final = ".shared"


def unshared_resource(sharing: Sharing) -> str:
    """Name the resource before replicas: nvidia.com/gpu, or nvidia.com/mig-<profile> under mixed."""
    if sharing.mig and sharing.mig.strategy == "mixed":
        return resource_name(sharing.mig.profile)
    return GPU_RESOURCE


def shown_resource(sharing: Sharing) -> str:
    """Name the resource pods ask for: as unshared_resource, with ".shared" when renamed."""
    renamed = sharing.slicing is not None and sharing.slicing.rename
    return unshared_resource(sharing) + (SHARED_SUFFIX if renamed else "")


def node_capacity(machine: Machine, sharing: Sharing) -> dict[str, int]:
    """Count the devices one node shows, per resource name.

    8 x A100-40GB: whole {"nvidia.com/gpu": 8}; 1g.5gb single {"nvidia.com/gpu": 56}; 1g.5gb mixed
    {"nvidia.com/mig-1g.5gb": 56}; 1g.5gb single with 2 renamed replicas {"nvidia.com/gpu.shared": 112}.
    A node with a share of a GPU shows one.

    Raises:
        CatalogueError: The model cannot do MIG or does not know the profile.
    """
    devices = machine.devices
    if sharing.mig:
        devices *= instances_per_gpu(machine.model, sharing.mig.profile)
    if sharing.slicing:
        devices *= sharing.slicing.replicas
    return {shown_resource(sharing): devices}


def pool_capacity(per_node: Mapping[str, int], nodes_min: int, nodes_max: int) -> dict[str, tuple[int, int]]:
    """Multiply a node's devices by the fewest and the most nodes of a pool.

    {"nvidia.com/gpu": 56} with 0 to 3 nodes gives {"nvidia.com/gpu": (0, 168)}.
    """
    return {name: (devices * nodes_min, devices * nodes_max) for name, devices in per_node.items()}
