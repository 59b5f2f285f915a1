"""How GKE partitions GPUs: the partition sizes of each accelerator type.

In scope: that table and lookups in it. Out of scope: MIG geometry in general (`gpukube.gpu.mig`).

All GPUs of a pool are partitioned the same way, and the instances are advertised as nvidia.com/gpu. Both GKE's
partitioner and its device plugin support the listed sizes. The plugin does not support 4g.20gb and 4g.40gb and does not
start with them (GoogleCloudPlatform/container-engine-accelerators, partition_gpu and pkg/gpu/nvidia/mig), and the
cluster autoscaler does not support the other 4g sizes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_H100 = {"1g.10gb": 7, "1g.20gb": 4, "2g.20gb": 3, "3g.40gb": 2, "7g.80gb": 1}

PARTITIONS: Mapping[str, Mapping[str, int]] = {
    "nvidia-tesla-a100": {"1g.5gb": 7, "2g.10gb": 3, "3g.20gb": 2, "7g.40gb": 1},
    "nvidia-a100-80gb": {"1g.10gb": 7, "2g.20gb": 3, "3g.40gb": 2, "7g.80gb": 1},
    "nvidia-h100-80gb": _H100,
    "nvidia-h100-mega-80gb": _H100,
    "nvidia-h200-141gb": {"1g.18gb": 7, "1g.35gb": 4, "2g.35gb": 3, "3g.71gb": 2, "7g.141gb": 1},
    "nvidia-b200": {"1g.23gb": 7, "1g.45gb": 4, "2g.45gb": 3, "3g.90gb": 2, "7g.180gb": 1},
    "nvidia-gb200": {"1g.23gb": 7, "1g.47gb": 4, "2g.47gb": 3, "3g.93gb": 2, "7g.186gb": 1},
    "nvidia-rtx-pro-6000": {
        "1g.24gb": 4,
        "1g.24gb-me": 4,
        "1g.24gb+me": 1,
        "1g.24gb+gfx": 4,
        "1g.24gb+me.all": 1,
        "2g.48gb": 2,
        "2g.48gb+gfx": 2,
        "2g.48gb-me": 2,
        "2g.48gb+me.all": 1,
        "4g.96gb": 1,
        "4g.96gb+gfx": 1,
    },
}
"""accelerator_type -> gpu_partition_size -> instances per GPU."""
