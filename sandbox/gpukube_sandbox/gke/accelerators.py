"""GPUs by Google's names, and their MIG partitions.

In scope: the sandbox's own accelerator table. Out of scope: machine types (`machines`), gpukube's catalog; the two are
maintained separately so that a mistake in one shows.

Sources: GKE cluster-autoscaler machinetypes; GoogleCloudPlatform/container-engine-accelerators partition_gpu and
pkg/gpu/nvidia/mig; docs: kubernetes-engine/how-to/gpus-multi.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Accelerator:
    """An accelerator type.

    Attributes:
        model: Key of the emulated hardware.
        quota: Metric of its regional quota; with the prefix PREEMPTIBLE_ for Spot nodes. Invented if no message is
            known.
        partitions: Partition size in the node pool API -> instances per GPU.
        reboots: Whether a node reboots once before its partitions exist (only the A100).
        attached: GPUs per node of an N1 machine -> maximum vCPUs; empty if the machine type includes the GPU.
    """

    model: str
    quota: str
    partitions: dict[str, int] = field(default_factory=dict)
    reboots: bool = False
    attached: dict[int, int] = field(default_factory=dict)


_H100 = {"1g.10gb": 7, "1g.20gb": 4, "2g.20gb": 3, "3g.40gb": 2, "4g.40gb": 1, "7g.80gb": 1}
_RTX = {
    "1g.24gb": 4, "1g.24gb-me": 4, "1g.24gb+me": 1, "1g.24gb+gfx": 4, "1g.24gb+me.all": 1,
    "2g.48gb": 2, "2g.48gb+gfx": 2, "2g.48gb-me": 2, "2g.48gb+me.all": 1, "4g.96gb": 1, "4g.96gb+gfx": 1,
}  # fmt: skip

ACCELERATORS: dict[str, Accelerator] = {
    "nvidia-tesla-t4": Accelerator("T4-16GB", "NVIDIA_T4_GPUS", attached={1: 48, 2: 48, 4: 96}),
    "nvidia-tesla-v100": Accelerator("V100-16GB", "NVIDIA_V100_GPUS", attached={1: 12, 2: 24, 4: 48, 8: 96}),
    "nvidia-tesla-p100": Accelerator("P100-16GB", "NVIDIA_P100_GPUS", attached={1: 16, 2: 32, 4: 64}),
    "nvidia-tesla-p4": Accelerator("P4-8GB", "NVIDIA_P4_GPUS", attached={1: 24, 2: 48, 4: 96}),
    "nvidia-l4": Accelerator("L4-24GB", "NVIDIA_L4_GPUS"),
    "nvidia-tesla-a100": Accelerator(
        "A100-40GB",
        "NVIDIA_A100_GPUS",
        {"1g.5gb": 7, "2g.10gb": 3, "3g.20gb": 2, "4g.20gb": 1, "7g.40gb": 1},
        reboots=True,
    ),
    "nvidia-a100-80gb": Accelerator(
        "A100-80GB",
        "NVIDIA_A100_80GB_GPUS",
        {"1g.10gb": 7, "2g.20gb": 3, "3g.40gb": 2, "4g.40gb": 1, "7g.80gb": 1},
        reboots=True,
    ),
    "nvidia-h100-80gb": Accelerator("H100-80GB", "NVIDIA_H100_GPUS", _H100),
    "nvidia-h100-mega-80gb": Accelerator("H100-80GB", "NVIDIA_H100_MEGA_GPUS", _H100),
    "nvidia-h200-141gb": Accelerator(
        "H200-141GB",
        "NVIDIA_H200_GPUS",
        {"1g.18gb": 7, "1g.35gb": 4, "2g.35gb": 3, "3g.71gb": 2, "4g.71gb": 1, "7g.141gb": 1},
    ),
    "nvidia-b200": Accelerator(
        "B200-180GB",
        "NVIDIA_B200_GPUS",
        {"1g.23gb": 7, "1g.45gb": 4, "2g.45gb": 3, "3g.90gb": 2, "4g.90gb": 1, "7g.180gb": 1},
    ),
    "nvidia-gb200": Accelerator(
        "GB200-186GB",
        "NVIDIA_GB200_GPUS",
        {"1g.23gb": 7, "1g.47gb": 4, "2g.47gb": 3, "3g.93gb": 2, "4g.93gb": 1, "7g.186gb": 1},
    ),
    "nvidia-gb300": Accelerator("GB300-278GB", "NVIDIA_GB300_GPUS"),
    "nvidia-rtx-pro-6000": Accelerator("RTXPRO6000-96GB", "NVIDIA_RTX_PRO_6000_GPUS", _RTX),
}
"""`accelerator_type` -> its data.

The partitioner supports the 4g sizes; GKE's device plugin does not support 4g.20gb and 4g.40gb and does not start with
them (container-engine-accelerators pkg/gpu/nvidia/mig/mig.go).
"""
