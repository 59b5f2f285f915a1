"""What GKE installs in its clusters, for checks of nodes and DaemonSets. Data only.

Sources: docs: kubernetes-engine/concepts/node-pools;
GoogleCloudPlatform/container-engine-accelerators (k8s-app labels).
"""

from __future__ import annotations

from typing import Final

from gpukube.core.in_cluster import InClusterFacts, KubeSubject, PluginDaemonSet
from gpukube_gke.facts.network import PARTS

_INSTALLERS: Final = (
    "https://raw.githubusercontent.com/GoogleCloudPlatform/container-engine-accelerators/master/nvidia-driver-installer"
)
"""Google's own installers (docs: kubernetes-engine/how-to/gpus)."""
_SYSTEMS: Final = {"": "cos", "UBUNTU_CONTAINERD": "ubuntu"}
"""Node image -> directory of its installer."""
IN_CLUSTER: Final = InClusterFacts(
    fabric_parts=PARTS,
    pool_label="cloud.google.com/gke-nodepool",
    gpu_labels={"cloud.google.com/gke-accelerator": ""},
    label_domains=("cloud.google.com/",),
    plugin=PluginDaemonSet(
        kind="gke-plugin",
        app="nvidia-gpu-device-plugin",
        keep="let GKE's plugin advertise: write devicePlugin.owner: cloud",
        remove='disable it: add the label gke-no-default-nvidia-gpu-device-plugin: "true" to these pools',
    ),
    driver_app="nvidia-driver-installer",
    driver_manifests={image: f"{_INSTALLERS}/{system}/daemonset-preloaded.yaml" for image, system in _SYSTEMS.items()},
    subject=KubeSubject(
        note="replace IDENTITY with the e-mail of the user or service account",
    ),
)
