"""Instance type names that cannot work on AKS.

Sources: docs: aks/use-nvidia-gpu (AMD); Azure retired VM sizes as listed by dstackai/gpuhunt 3584151.
"""

from __future__ import annotations

from typing import Final

from gpukube.gpu.cloud_machines import NO_GPU, CloudMachines

_AMD: Final = "it has AMD GPUs; gpukube supports NVIDIA GPUs"
_RETIRED: Final = "Azure retired this size"

MACHINES: Final = CloudMachines(
    refused=(
        (r"Standard_ND96is\w*_MI300X_v5", _AMD),
        (r"Standard_NV\d+\w*_V710_v5", _AMD),
        (r"Standard_NG\d+\w*_V620\w*", _AMD),
        (r"Standard_NV\d+as_v4", _AMD),
        (r"Standard_NP\d+s", "it has FPGAs, not GPUs"),
        (r"Standard_NC(6|12|24r?)", _RETIRED),
        (r"Standard_NC\d+r?s_v2", _RETIRED),
        (r"Standard_ND(6|12|24r?)s", _RETIRED),
        (r"Standard_NV(6|12|24)", _RETIRED),
        (r"Standard_NV\d+s_v2", _RETIRED),
        (r"Standard_NV\d+s_v3", "its M60 GPU is not in the catalog"),
    ),
    without_gpu=((r"Standard_([A-FHLM]|G[1-5]|GS)[A-Z]*\d\w*", NO_GPU),),
    variants=(
        (r"Standard_NCC.*", "is a confidential virtual machine"),
        (r"Standard_ND96is_.*", "has no InfiniBand"),
        (r"Standard_ND\d+isrG5_.*", "is the G5 variant"),
    ),
    ignores_case=True,
)
"""Names of sizes with accelerators start with N."""
