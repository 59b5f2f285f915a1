"""Identifies installations of NVIDIA's DRA driver, and whether they publish GPUs.

In scope: DaemonSets of both charts (up to 25.12, and since 0.4) and of the GPU Operator's GPUCluster. Out of scope:
what they publish (kube.slices), who owns one (advertisers).

Source: kubernetes-sigs/dra-driver-nvidia-gpu v25.8.1 and v0.4.1 templates/kubeletplugin.yaml, NVIDIA/gpu-operator
v26.7.0 manifests/state-dra-driver/0500_daemonset.yaml. A chart without GPUs (resources.gpus.enabled=false) serves
ComputeDomains only: its DaemonSet has no container "gpus".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gpukube.cluster.kube.views import WorkloadView

CHARTS: Final = ("dra-driver-nvidia-gpu", "nvidia-dra-driver-gpu")
"""Names of the chart, newest first."""
GPUS: Final = "gpus"
"""Container that publishes GPUs."""
_OPERATED: Final = "nvidia-dra-driver-kubelet-plugin"
"""Label "app" of the DaemonSet that a GPUCluster creates."""
_IMAGES: Final = ("dra-driver-nvidia-gpu", "k8s-dra-driver-gpu")
"""Names of the image: nameOverride changes the labels, not the image."""


def chart_of(daemonset: WorkloadView) -> tuple[str, str]:
    """Return name and version of the DRA driver's chart that installed a DaemonSet; ("", "") if none did."""
    label = daemonset.labels.get("helm.sh/chart", "")
    name = next((name for name in CHARTS if label.startswith(f"{name}-")), "")
    return name, label.removeprefix(f"{name}-") if name else ""


def is_dra_driver(daemonset: WorkloadView) -> bool:
    """Return whether a DaemonSet is NVIDIA's DRA driver, with GPUs or only with ComputeDomains."""
    named = any(name in image for image in daemonset.images for name in _IMAGES)
    return named or bool(chart_of(daemonset)[0]) or is_operated(daemonset)


def is_operated(daemonset: WorkloadView) -> bool:
    """Return whether a GPU Operator created a DaemonSet for its GPUCluster."""
    return {**daemonset.labels, **daemonset.pod_labels}.get("app") == _OPERATED


def publishes_gpus(daemonset: WorkloadView) -> bool:
    """Return whether a DaemonSet is NVIDIA's DRA driver and publishes GPUs."""
    return is_dra_driver(daemonset) and any(container.name == GPUS for container in daemonset.containers)
