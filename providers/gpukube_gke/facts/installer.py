"""What node pools without GKE's own driver and plugin need in the cluster, as values of the GPU Operator's chart.

In scope: Google's driver installer as DaemonSets, and the quota for the operator's pods. Out of scope: which pools need
them (`provider`).

Sources: GoogleCloudPlatform/container-engine-accelerators, nvidia-driver-installer, daemonset-preloaded.yaml of cos and
of ubuntu (images, paths, environment: the images are on the nodes already); NVIDIA/cloud-native-docs,
gpu-operator/google-gke (directory, toolkit, quota).

The installers run only on nodes of gpukube's operator where GKE does not install the driver. They omit Google's init
container that partitions GPUs, because the operator's MIG manager does so. A release always contains both installers,
so that a pool with the other image does not change it; an installer without matching nodes has no pods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.owners import ADVERTISER_LABEL

if TYPE_CHECKING:
    from collections.abc import Mapping

DRIVER_DIR: Final = "/home/kubernetes/bin/nvidia"
"""Driver directory on the nodes: writable, and kept across reboots."""
_CONTAINER_DIR: Final = "/usr/local/nvidia"
_PAUSE: Final = "gke.gcr.io/pause:3.8"
_CRITICAL: Final = "system-node-critical"

_QUOTA: Final = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "gpukube-critical-pods"},
    "spec": {
        "hard": {"pods": "1G"},
        "scopeSelector": {
            "matchExpressions": [
                {
                    "operator": "In",
                    "scopeName": "PriorityClass",
                    "values": [_CRITICAL, "system-cluster-critical"],
                }
            ]
        },
    },
}
"""Quota that allows, not limits: outside kube-system GKE admits pods of these classes only if a quota names them."""


def _installer(system: str, pod: Mapping[str, object], container: Mapping[str, object]) -> dict[str, object]:
    name = f"gpukube-driver-installer-{system}"
    labels = {"k8s-app": "nvidia-driver-installer", "name": name}
    desired = [
        {"key": ADVERTISER_LABEL, "operator": "In", "values": ["operator"]},
        {"key": "cloud.google.com/gke-accelerator", "operator": "Exists"},
        {"key": "cloud.google.com/gke-gpu-driver-version", "operator": "DoesNotExist"},
        {"key": "cloud.google.com/gke-os-distribution", "operator": "In", "values": [system]},
    ]
    affinity = {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": desired}]}
    }
    installer = {
        "name": "nvidia-driver-installer",
        "imagePullPolicy": "Never",
        "resources": {"requests": {"cpu": "150m"}},
        "securityContext": {"privileged": True},
        **container,
    }
    spec = {
        "priorityClassName": _CRITICAL,
        "affinity": {"nodeAffinity": affinity},
        "tolerations": [{"operator": "Exists"}],
        **pod,
        "initContainers": [installer],
        "containers": [{"name": "pause", "image": _PAUSE}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "labels": {"k8s-app": "nvidia-driver-installer"}},
        "spec": {
            "selector": {"matchLabels": labels},
            "updateStrategy": {"type": "RollingUpdate"},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def _host(name: str, path: str) -> dict[str, object]:
    return {"name": name, "hostPath": {"path": path}}


def _mount(name: str, path: str) -> dict[str, str]:
    return {"name": name, "mountPath": path}


_COS: Final = _installer(
    "cos",
    {
        "hostNetwork": True,
        "hostPID": True,
        "volumes": [
            _host("dev", "/dev"),
            _host("vulkan-icd", f"{DRIVER_DIR}/vulkan/icd.d"),
            _host("install-dir", DRIVER_DIR),
            _host("root", "/"),
            _host("cos-tools", "/var/lib/cos-tools"),
        ],
    },
    {
        "image": "cos-nvidia-installer:fixed",
        "command": ["bash", "-c", "grep -q '^nvidia ' /proc/modules || /cos-gpu-installer install"],
        "env": [
            {"name": "NVIDIA_INSTALL_DIR_HOST", "value": DRIVER_DIR},
            {"name": "NVIDIA_INSTALL_DIR_CONTAINER", "value": _CONTAINER_DIR},
            {"name": "VULKAN_ICD_DIR_HOST", "value": f"{DRIVER_DIR}/vulkan/icd.d"},
            {"name": "VULKAN_ICD_DIR_CONTAINER", "value": "/etc/vulkan/icd.d"},
            {"name": "ROOT_MOUNT_DIR", "value": "/root"},
            {"name": "COS_TOOLS_DIR_HOST", "value": "/var/lib/cos-tools"},
            {"name": "COS_TOOLS_DIR_CONTAINER", "value": "/build/cos-tools"},
        ],
        "volumeMounts": [
            _mount("install-dir", _CONTAINER_DIR),
            _mount("vulkan-icd", "/etc/vulkan/icd.d"),
            _mount("dev", "/dev"),
            _mount("root", "/root"),
            _mount("cos-tools", "/build/cos-tools"),
        ],
    },
)
_UBUNTU: Final = _installer(
    "ubuntu",
    {"volumes": [_host("dev", "/dev"), _host("boot", "/boot"), _host("root", "/")]},
    {
        "image": "gke-nvidia-installer:fixed",
        "volumeMounts": [_mount("boot", "/boot"), _mount("dev", "/dev"), _mount("root", "/root")],
    },
)

QUOTA_VALUES: Final[Mapping[str, object]] = {"extraObjects": [_QUOTA]}
"""Chart values if the operator installs the driver."""
OWN_DRIVER_VALUES: Final[Mapping[str, object]] = {
    "hostPaths.driverInstallDir": DRIVER_DIR,
    "toolkit.enabled": True,
    "toolkit.installDir": DRIVER_DIR,
    "toolkit.env": [{"name": "RUNTIME_CONFIG_SOURCE", "value": "file"}],
    "extraObjects": [_QUOTA, _COS, _UBUNTU],
}
"""Chart values if Google's installer does: GKE's nodes have no container toolkit, and a read-only root file system."""
DRA_VALUES: Final[Mapping[str, object]] = {
    "nvidiaDriverRoot": DRIVER_DIR,
    "kubeletPlugin.priorityClassName": "",
}
"""Values of the DRA driver's chart. Without the chart's critical priority class its pods need no ResourceQuota, which
the chart cannot create (NVIDIA/cloud-native-docs dra-intro-install, GKE; modelplane-io/modelplane#202). They request no
resources, so they fit on a full node all the same."""
