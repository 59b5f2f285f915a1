"""Objects that AKS clusters contain before gpukube is used on them.

In scope: those objects. Out of scope: how the cluster handles them (`kube`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube_sandbox.kube.systempods import SystemPods

if TYPE_CHECKING:
    from gpukube_sandbox.kube.cluster import KubeCluster
    from gpukube_sandbox.kube.store.objects import JsonObject

_MCR = "mcr.microsoft.com"
_DNS = {"cpu": "100m", "memory": "70Mi"}
_CNS = {"cpu": "40m", "memory": "250Mi"}
SYSTEM = (
    SystemPods("azure-cns", f"{_MCR}/containernetworking/azure-cns:sandbox", _CNS, label=("k8s-app", "azure-cns")),
    SystemPods("kube-proxy", f"{_MCR}/oss/kube-proxy:sandbox", {"cpu": "100m"}, label=("component", "kube-proxy")),
    SystemPods("coredns", f"{_MCR}/oss/coredns:sandbox", _DNS, replicas=2, label=("k8s-app", "kube-dns")),
)
"""The network and DNS pods among the dozen system workloads of AKS.

Source:
    kubernetes/kubernetes cluster/addons/dns/coredns/coredns.yaml.base and cluster/addons/kube-proxy; Azure's own
    requests are from public listings of kube-system.
"""
_NAMESPACE = "gpu-resources"
_LABELS = {"name": "nvidia-device-plugin-ds"}
_IMAGE = "mcr.microsoft.com/oss/v2/nvidia/k8s-device-plugin:v0.18.0"


async def apply_static_plugin(kube: KubeCluster) -> None:
    """Apply the device-plugin DaemonSet of the AKS how-to, as `kubectl apply` would (docs: aks/use-nvidia-gpu)."""
    await kube.api.create("namespaces", {"metadata": {"name": _NAMESPACE}})
    await kube.api.create("daemonsets", _static_plugin())


def _static_plugin() -> JsonObject:
    container = {
        "name": "nvidia-device-plugin-ctr",
        "image": _IMAGE,
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [{"name": "device-plugin", "mountPath": "/var/lib/kubelet/device-plugins"}],
    }
    pod = {
        "tolerations": [{"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}],
        "containers": [container],
        "volumes": [{"name": "device-plugin", "hostPath": {"path": "/var/lib/kubelet/device-plugins"}}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "nvidia-device-plugin-daemonset", "namespace": _NAMESPACE},
        "spec": {
            "selector": {"matchLabels": _LABELS},
            "updateStrategy": {"type": "RollingUpdate"},
            "template": {"metadata": {"labels": _LABELS}, "spec": pod},
        },
    }
