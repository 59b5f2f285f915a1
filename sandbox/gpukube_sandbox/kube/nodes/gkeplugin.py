"""GKE's own device plugin: what it advertises on a node.

In scope: computing `nvidia.com/gpu` from devices and GKE's config on the node. Out of scope: NVIDIA's plugin
(`plugin`).

Source: GoogleCloudPlatform/container-engine-accelerators cmd/nvidia_gpu, pkg/gpu/nvidia/mig, pkg/gpu/nvidia/gpusharing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube_sandbox.kube.nodes.plugin import GPU, Advertised, devices_of
from gpukube_sandbox.kube.nodes.pluginconfig import Crash

if TYPE_CHECKING:
    from gpukube_sandbox.kube.nodes.shapes import GpuShape

PARTITIONS: dict[str, int] = {
    "1g.5gb": 7, "2g.10gb": 3, "3g.20gb": 2, "7g.40gb": 1,
    "1g.10gb": 7, "1g.20gb": 4, "2g.20gb": 3, "3g.40gb": 2, "7g.80gb": 1,
    "1g.18gb": 7, "1g.35gb": 4, "2g.35gb": 3, "3g.71gb": 2, "4g.71gb": 1, "7g.141gb": 1,
    "1g.23gb": 7, "1g.45gb": 4, "2g.45gb": 3, "3g.90gb": 2, "4g.90gb": 1, "7g.180gb": 1,
    "1g.47gb": 4, "2g.47gb": 3, "3g.93gb": 2, "4g.93gb": 1, "7g.186gb": 1,
    "1g.24gb": 4, "1g.24gb-me": 4, "1g.24gb+me": 1, "1g.24gb+gfx": 4, "1g.24gb+me.all": 1,
    "2g.48gb": 2, "2g.48gb+gfx": 2, "2g.48gb-me": 2, "2g.48gb+me.all": 1, "4g.96gb": 1, "4g.96gb+gfx": 1,
}  # fmt: skip
"""Partition size -> instances that every GPU must have. It lacks 4g.20gb and 4g.40gb, which the partitioner creates
(pkg/gpu/nvidia/mig/mig.go)."""


def advertise_gke(shape: GpuShape | None) -> Advertised:
    """Return what the plugin registers: always `nvidia.com/gpu`, GPUs x partitions x clients.

    Args:
        shape: The node's GPUs, if any.

    Raises:
        Crash: The plugin exits; the kubelet restarts it with a back-off.
    """
    if shape is None or not shape.driver:
        return Advertised({}, log=("nvidia driver is not installed, waiting for /dev/nvidiactl",))
    devices = shape.count
    if shape.partition:
        devices = _count_partitions(shape)
    limited = shape.sharing == "time-sharing" or (shape.sharing == "mps" and devices > 1)
    resources = {GPU: devices * (shape.clients or 1)}
    return Advertised(resources, frozenset(resources) if limited else frozenset(), ("device-plugin: started",))


def _count_partitions(shape: GpuShape) -> int:
    if shape.partition not in PARTITIONS:
        raise Crash(f"failed to start GPU device manager: {shape.partition} is not a valid GPU partition size")
    desired = (shape.partition,) * PARTITIONS[shape.partition]
    for index, layout in enumerate(devices_of(shape)):
        if layout != desired:
            found = len(layout or ())
            raise Crash(
                f"failed to start GPU device manager: not all GPUs are partitioned as expected: GPU {index} has "
                f"{found} of {len(desired)} partitions {shape.partition}"
            )
    return len(desired) * shape.count
