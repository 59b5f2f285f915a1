"""Instance type names that cannot work on EKS.

Sources: EC2 instance type pages (p2 K80, g2 K520, g3 M60); docs: ec2/instancetypes.
"""

from __future__ import annotations

from typing import Final

from gpukube.gpu.cloud_machines import NO_GPU, CloudMachines, Unsourced

MACHINES: Final = CloudMachines(
    refused=(
        (r"g4ad\..+", "it has AMD GPUs; gpukube supports NVIDIA GPUs"),
        (r"(p2|g2|g3s?)\..+", "an old EC2 generation (K80, K520 or M60 GPUs) that is not in the catalog"),
    ),
    without_gpu=(
        (r"trn\d\w*\..+", "it has AWS Trainium chips, no NVIDIA GPU"),
        (r"inf\d\w*\..+", "it has AWS Inferentia chips, no NVIDIA GPU"),
        (r"dl\d\w*\..+", "its accelerators are not from NVIDIA"),
        (r"(a1|[cmrt]\d|x[128]|u-?\w|i[2-8]|is4|im4|d[23]|h1|z1|hpc|mac)[\w-]*\..+", NO_GPU),
    ),
    unsourced=(
        Unsourced(
            r"p6e-gb300\.\w+", "p6e-gb300.36xlarge", "GB300-278GB", "aws/eks-charts: stable/aws-efa-k8s-device-plugin"
        ),
        Unsourced(r"p6e-gb200\.72xlarge", "p6e-gb200.72xlarge", "GB200-186GB", "docs: pcs/capacity-blocks-nvidia-imex"),
    ),
    variants=((r".*\.metal", "is bare metal"),),
)
