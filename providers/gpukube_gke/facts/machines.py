"""Instance type names that cannot work on GKE.

Sources: docs: compute/docs/machine-resource, kubernetes-engine/docs/concepts/plan-tpus,
kubernetes-engine/how-to/nvidia-mps-gpus; GoogleCloudPlatform/container-engine-accelerators.
"""

from __future__ import annotations

from typing import Final

from gpukube.gpu.cloud_machines import NO_GPU, CloudMachines

MACHINES: Final = CloudMachines(
    without_gpu=(
        (r"(ct\d\w*|tpu\d\w*)-.+", "it has Google TPUs, not NVIDIA GPUs"),
        (r"(e2|[cn]2d?|n4[ad]?|c3d?|c4[ad]?|t2[ad]|m[1-4]|h[34]d?|x4|z3)-.+", NO_GPU),
    ),
    variants=(
        (r".*-nolssd", "comes without local SSDs"),
        (r"a3-edgegpu-.*", "is for edge zones"),
        (r".*-metal", "is bare metal"),
    ),
    own_sharing=True,
)
