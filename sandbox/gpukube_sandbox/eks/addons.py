"""Objects that EKS clusters contain before gpukube is used on them.

In scope: those objects. Out of scope: how the cluster handles them (`kube`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube_sandbox.kube.systempods import SystemPods

if TYPE_CHECKING:
    from gpukube_sandbox.kube.cluster import KubeCluster
    from gpukube_sandbox.kube.store.objects import JsonObject

_ECR = "602401143452.dkr.ecr.us-west-2.amazonaws.com"
_DNS = {"cpu": "100m", "memory": "70Mi"}
SYSTEM = (
    SystemPods("aws-node", f"{_ECR}/amazon-k8s-cni:sandbox", {"cpu": "50m"}, label=("k8s-app", "aws-node")),
    SystemPods("kube-proxy", f"{_ECR}/eks/kube-proxy:sandbox", {"cpu": "100m"}, label=("k8s-app", "kube-proxy")),
    SystemPods("coredns", f"{_ECR}/eks/coredns:sandbox", _DNS, replicas=2, label=("k8s-app", "kube-dns")),
)
"""The networking add-ons of each cluster.

Source:
    aws/amazon-vpc-cni-k8s charts/aws-vpc-cni/values.yaml (25m for each of two containers), kubernetes/kubernetes
    cluster/addons/dns/coredns/coredns.yaml.base and cluster/addons/kube-proxy.
"""
_LABELS = {"name": "nvidia-device-plugin-ds"}


async def apply_static_plugin(kube: KubeCluster) -> None:
    """Apply the device-plugin DaemonSet that eksctl applies for NVIDIA pools (eksctl-io/eksctl pkg/addons)."""
    await kube.api.create("daemonsets", _static_plugin())


async def apply_autoscaler(kube: KubeCluster, cluster: str, expanders: str) -> None:
    """Apply the Cluster Autoscaler's Deployment (kubernetes/autoscaler cloudprovider/aws/examples, autodiscover)."""
    await kube.api.create("deployments", _autoscaler(cluster, expanders))


def _autoscaler(cluster: str, expanders: str) -> JsonObject:
    name = "cluster-autoscaler"
    tags = f"k8s.io/{name}/enabled,k8s.io/{name}/{cluster}"
    container = {
        "name": name,
        "image": f"registry.k8s.io/autoscaling/{name}:v1.34.0",
        "command": [
            f"./{name}",
            "--v=4",
            "--cloud-provider=aws",
            f"--expander={expanders}",
            f"--node-group-auto-discovery=asg:tag={tags}",
        ],
        "resources": {"requests": {"cpu": "100m", "memory": "600Mi"}, "limits": {"cpu": "100m", "memory": "600Mi"}},
    }
    labels = {"app": name}
    pod = {"priorityClassName": "system-cluster-critical", "containers": [container]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "kube-system", "labels": labels},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


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
