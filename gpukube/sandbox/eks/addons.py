"""What people have installed on their EKS clusters before gpukube came.

Lives here: those objects. Must not live here: what the cluster makes of them (`kube`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpukube.sandbox.kube.cluster import KubeCluster
    from gpukube.sandbox.kube.store.objects import JsonObject

_LABELS = {"name": "nvidia-device-plugin-ds"}


async def apply_static_plugin(kube: KubeCluster) -> None:
    """Apply the device-plugin DaemonSet that eksctl applies for NVIDIA pools (eksctl-io/eksctl pkg/addons)."""
    await kube.api.create("daemonsets", _static_plugin())


def _static_plugin() -> JsonObject:
    container = {
        "name": "nvidia-device-plugin-ctr",
        "image": "nvcr.io/nvidia/k8s-device-plugin:v0.17.0",
        "env": [{"name": "FAIL_ON_INIT_ERROR", "value": "false"}],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [{"name": "device-plugin", "mountPath": "/var/lib/kubelet/device-plugins"}],
    }
    pod = {
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "priorityClassName": "system-node-critical",
        "containers": [container],
        "volumes": [{"name": "device-plugin", "hostPath": {"path": "/var/lib/kubelet/device-plugins"}}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "nvidia-device-plugin-daemonset", "namespace": "kube-system"},
        "spec": {
            "selector": {"matchLabels": _LABELS},
            "updateStrategy": {"type": "RollingUpdate"},
            "template": {"metadata": {"labels": _LABELS}, "spec": pod},
        },
    }
