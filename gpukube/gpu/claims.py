"""Names of Dynamic Resource Allocation (DRA) for NVIDIA GPUs: the driver, its classes, and how devices are counted.

In scope: constants and names. Out of scope: ResourceSlices (cluster.kube.slices).

Source: kubernetes-sigs/dra-driver-nvidia-gpu v0.4.1, deployments/helm templates/deviceclass-*.yaml and
cmd/gpu-kubelet-plugin/deviceinfo.go.
"""

from __future__ import annotations

from typing import Final

DRIVER: Final = "gpu.nvidia.com"
"""Name of the driver, and domain of its attributes."""
GPU_CLASS: Final = "gpu.nvidia.com"
"""DeviceClass of whole GPUs."""
MIG_CLASS: Final = "mig.nvidia.com"
"""DeviceClass of MIG devices."""
OLDEST_KUBERNETES: Final = (1, 34)
"""First release with resource.k8s.io/v1 (kubernetes/api resource/v1)."""
ADVISED_KUBERNETES: Final = (1, 34, 2)
"""Oldest version in NVIDIA's prerequisites (NVIDIA/cloud-native-docs gpu-operator/dra-intro-install); earlier ones have
the bug kubernetes/kubernetes#133920."""


def mig_devices(profile: str) -> str:
    """Return the name under which gpukube counts the MIG devices of a profile, "mig.nvidia.com/1g.5gb".

    Devices have no resource names; a class and a profile tell them apart.
    """
    return f"{MIG_CLASS}/{profile}"


def is_claimable(name: str) -> bool:
    """Return whether a name counts devices of the DRA driver, which pods claim, and not an extended resource."""
    return name == GPU_CLASS or name.startswith(f"{MIG_CLASS}/")
