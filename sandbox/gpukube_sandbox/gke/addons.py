"""Objects in a cluster before gpukube is used on it: GKE's own device plugin, and manifests that users applied.

In scope: those objects. Out of scope: how the cluster handles them (`kube`).

Sources: listings of kube-system in public cluster dumps (names of the six DaemonSets, their pods' label); NVIDIA/aicr
docs/integrator/gke-gpu-setup.md (the label that turns them off); GoogleCloudPlatform/container-engine-accelerators
cmd/nvidia_gpu/device-plugin.yaml (affinity, tolerations).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube_sandbox.gke.nodes import OPT_OUT
from gpukube_sandbox.kube.systempods import SystemPods

if TYPE_CHECKING:
    from gpukube_sandbox.kube.cluster import KubeCluster
    from gpukube_sandbox.kube.store.objects import JsonObject

_GCR = "gke.gcr.io"
_DNS = {"cpu": "260m", "memory": "110Mi"}
_LOGS = {"cpu": "100m", "memory": "200Mi"}
SYSTEM = (
    SystemPods("fluentbit-gke", f"{_GCR}/fluent-bit:sandbox", _LOGS, label=("k8s-app", "fluentbit-gke")),
    SystemPods("kube-proxy", f"{_GCR}/kube-proxy-amd64:sandbox", {"cpu": "100m"}, label=("component", "kube-proxy")),
    SystemPods("kube-dns", f"{_GCR}/k8s-dns-kube-dns:sandbox", _DNS, replicas=2, label=("k8s-app", "kube-dns")),
)
"""The DNS, logging, and network pods among the dozen system workloads of GKE. There, kube-proxy is a static pod of the
node instead of a DaemonSet's, and kube-dns has three containers.

Source:
    kubernetes/kubernetes cluster/addons/dns/kube-dns/kube-dns.yaml.base (100m, 150m and 10m; 70Mi, 20Mi and 20Mi),
    cluster/gce/manifests/kube-proxy.manifest; fluentbit-gke's requests are from public listings of kube-system.
"""
_NAMESPACE = "kube-system"
_LEVEL = "cloud.google.com/gke-cpu-scaling-level"
_SIZES: dict[str, tuple[tuple[str, str], ...]] = {
    "small": (("Lt", "17"),),
    "medium": (("Gt", "16"), ("Lt", "101")),
    "large": (("Gt", "100"),),
}
"""vCPUs of a node -> its variant. Seen: n1-standard-32 medium, a3-highgpu-8g large; the limits are unconfirmed."""
_PLUGIN_PATH = "/var/lib/kubelet/device-plugins"


async def apply_managed_plugin(kube: KubeCluster) -> None:
    """Apply the six DaemonSets of GKE's plugin; without GPU nodes they create no pods."""
    for size in _SIZES:
        for system in ("cos", "ubuntu"):
            await kube.api.create("daemonsets", _managed(size, system))


def _managed(size: str, system: str) -> JsonObject:
    labels = {"k8s-app": "nvidia-gpu-device-plugin"}
    expressions = [
        {"key": "cloud.google.com/gke-accelerator", "operator": "Exists"},
        {"key": OPT_OUT, "operator": "NotIn", "values": ["true"]},
        {"key": "cloud.google.com/gke-os-distribution", "operator": "In", "values": [system]},
        *({"key": _LEVEL, "operator": operator, "values": [value]} for operator, value in _SIZES[size]),
    ]
    affinity = {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    }
    container = {
        "name": "nvidia-gpu-device-plugin",
        "image": "gke.gcr.io/nvidia-gpu-device-plugin:sandbox",
        "command": ["/usr/bin/nvidia-gpu-device-plugin", "-logtostderr", "--enable-health-monitoring"],
        "securityContext": {"privileged": True},
        "volumeMounts": [{"name": "device-plugin", "mountPath": _PLUGIN_PATH}],
    }
    pod = {
        "priorityClassName": "system-node-critical",
        "affinity": {"nodeAffinity": affinity},
        "tolerations": [{"operator": "Exists"}],
        "containers": [container],
        "volumes": [{"name": "device-plugin", "hostPath": {"path": _PLUGIN_PATH}}],
    }
    name = f"nvidia-gpu-device-plugin-{size}-{system}"
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": _NAMESPACE, "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels | {"name": name}},
            "updateStrategy": {"type": "RollingUpdate"},
            "template": {"metadata": {"labels": labels | {"name": name}}, "spec": pod},
        },
    }


async def apply_static_plugin(kube: KubeCluster) -> None:
    """Apply NVIDIA's static device-plugin manifest with a toleration of the GPU taint, as `kubectl apply` would."""
    labels = {"name": "nvidia-device-plugin-ds"}
    container = {
        "name": "nvidia-device-plugin-ctr",
        "image": "nvcr.io/nvidia/k8s-device-plugin:v0.17.1",
        "volumeMounts": [{"name": "device-plugin", "mountPath": _PLUGIN_PATH}],
    }
    pod = {
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "containers": [container],
        "volumes": [{"name": "device-plugin", "hostPath": {"path": _PLUGIN_PATH}}],
    }
    await kube.api.create(
        "daemonsets",
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": "nvidia-device-plugin-daemonset", "namespace": _NAMESPACE},
            "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}},
        },
    )
