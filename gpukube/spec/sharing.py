"""The fields under `sharing`: how one GPU serves several containers.

In scope: names, ranges, and descriptions. Out of scope: valid combinations (rules.py, gpukube.gpu.sharing), what one
cloud allows (the providers' rules.py).
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from gpukube.spec.base import SpecModel, Text, Texts


class Mig(SpecModel):
    """Partitioning of every GPU in the pool into hardware-isolated instances: by profile, or by layout."""

    profile: Text | None = Field(
        default=None,
        examples=["1g.5gb"],
        description="As many instances of one profile as fit, by NVIDIA's name: 1g.5gb, 3g.40gb.",
    )
    layout: Texts = Field(
        default=(),
        examples=[["3g.20gb", "2g.10gb", "1g.5gb"]],
        description="The instances of each GPU, only with the GPU Operator; different profiles need strategy mixed.",
    )
    strategy: Literal["single", "mixed"] = Field(
        default="single",
        description="single advertises nvidia.com/gpu, mixed advertises nvidia.com/mig-<profile>. Always sent.",
    )


class TimeSlicing(SpecModel):
    """Several containers take turns on one device; memory is not isolated."""

    # NVIDIA/k8s-device-plugin, api/config/v1: "number of replicas must be >= 2".
    replicas: int = Field(
        ge=2, examples=[4], description="Shares per device (per MIG instance if mig is set too), at least 2."
    )
    fail_requests_greater_than_one: bool = Field(
        default=False, description="Reject pods that request more than one share: two shares are not twice the compute."
    )
    rename_by_default: bool = Field(
        default=False, description="Advertise nvidia.com/gpu.shared instead of nvidia.com/gpu."
    )


class Mps(SpecModel):
    """Several containers run on one device at the same time through CUDA MPS."""

    # NVIDIA/k8s-device-plugin v0.20.0: at least 2; at most 48 clients from compute capability 7.5 on.
    replicas: int = Field(
        ge=2, le=48, examples=[4], description="Shares per device, 2 to 48 (at most 16 on V100 and older)."
    )
    rename_by_default: bool = Field(
        default=False, description="Advertise nvidia.com/gpu.shared instead of nvidia.com/gpu."
    )


class Sharing(SpecModel):
    """How one GPU serves several containers. timeSlicing can be combined with mig; mps only on GKE."""

    mig: Mig | None = Field(default=None, description="Partition the GPUs into hardware-isolated instances.")
    time_slicing: TimeSlicing | None = Field(default=None, description="Let containers take turns.")
    mps: Mps | None = Field(default=None, description="Let containers run at the same time through CUDA MPS.")
