"""Parts of the NVIDIA stack are known by whoever made them, and GPU nodes by whatever shows them."""

from __future__ import annotations

import pytest

from gpukube.cluster.kube.views import workload_view
from gpukube.doctor.gpu_stack import is_gpu_node, part_of
from tests.unit.doctor.patients import CPU_NODE, GPU_NODE, daemonset, relabelled

PARTS = {
    "chart": (daemonset("nvdp-nvidia-device-plugin", "nvidia-device-plugin"), "plugin"),
    "chart's GFD": (daemonset("nvdp-gpu-feature-discovery", "/usr/bin/gpu-feature-discovery"), "gfd"),
    "operator's plugin, by its name": (daemonset("nvidia-device-plugin-daemonset", "bash"), "plugin"),
    "operator's MPS, by its name": (daemonset("nvidia-device-plugin-mps-control-daemon", "bash"), "mps"),
    "GKE's plugin": (
        daemonset("gpus-small-cos", "serve", "kube-system", {"k8s-app": "nvidia-gpu-device-plugin"}),
        "plugin",
    ),
    "image alone": (daemonset("gpus", "sh", image="registry.example/nvidia/k8s-device-plugin:v1"), "plugin"),
    "NFD": (daemonset("nfd-worker", "nfd-worker"), "nfd-worker"),
    "operator's validator": (
        daemonset("nvidia-operator-validator", "sh", labels={"app": "nvidia-operator-validator"}),
        "validator",
    ),
    "another vendor's plugin": (daemonset("rdma-device-plugin", "k8s-rdma", image="rdma:1"), None),
    "a workload": (daemonset("fluent-bit", "fluent-bit", image="fluent-bit:3"), None),
}


@pytest.mark.parametrize("name", PARTS)
def test_part_when_a_workload_is_seen_then_it_is_known(name: str) -> None:
    body, part = PARTS[name]
    assert part_of(workload_view(body, "DaemonSet")) == part


SIGNS = {
    "devices": (GPU_NODE, True),
    "none": (CPU_NODE, False),
    "GKE's label": (relabelled(CPU_NODE, **{"cloud.google.com/gke-accelerator": "nvidia-l4"}), True),
    "AKS's label": (relabelled(CPU_NODE, **{"kubernetes.azure.com/accelerator": "nvidia"}), True),
    "AKS's label of another vendor": (relabelled(CPU_NODE, **{"kubernetes.azure.com/accelerator": "amd"}), False),
    "NFD's label": (relabelled(CPU_NODE, **{"feature.node.kubernetes.io/pci-0302_10de.present": "true"}), True),
    "instance type": (relabelled(CPU_NODE, **{"node.kubernetes.io/instance-type": "p4d.24xlarge"}), True),
    "our mark": (relabelled(CPU_NODE, **{"gpukube.io/owner": "ml"}), True),
}


@pytest.mark.parametrize("name", SIGNS)
def test_gpu_node_when_there_is_a_sign_then_it_is_known(name: str) -> None:
    node, has_gpus = SIGNS[name]
    assert is_gpu_node(node, {"p4d.24xlarge"}) is has_gpus
