"""Pools with a fast network, and what serves them in a cluster, as their projects install it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gpukube.cluster.kube.views import Placement, placement_of
from gpukube.core.resolve import promise_of
from gpukube.core.values import ClusterRef
from gpukube.gpu.catalog import require_machine
from gpukube_aks.facts.network import fabric_of as infiniband
from gpukube_eks.facts.network import fabric_of as efa
from gpukube_gke.facts.network import fabric_of as gpudirect
from tests.unit.cluster.builders import container, daemonset, desire

if TYPE_CHECKING:
    from gpukube.cluster.kube.views import WorkloadView
    from gpukube.core.fabric import Fabric
    from gpukube.core.values import Desired, Target

EFA = "vpc.amazonaws.com/efa"
EKS = ClusterRef("train-eks", "eks", "train", {"account": "123456789012", "region": "us-east-1"})
GKE = ClusterRef("train-gke", "gke", "train", {"project": "ml-platform", "location": "us-central1"})
GPU_TOLERATED = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
CRITICAL = {"key": "CriticalAddonsOnly", "operator": "Exists"}
TYPES = ("p4d.24xlarge", "p5.48xlarge", "p5en.48xlarge")


def on_eks(machine: str = "p5.48xlarge", **changes: object) -> Desired:
    made = _moved(EKS, machine, **changes)
    return replace(made, fabric=efa(made.target))


def on_gke(machine: str = "a3-megagpu-8g", **changes: object) -> Desired:
    made = _moved(GKE, machine, **changes)
    return replace(made, fabric=gpudirect(made.target))


def on_aks(machine: str = "Standard_ND96isr_H100_v5", **changes: object) -> Desired:
    made = desire(machine=machine, high_speed=True, **changes)  # type: ignore[arg-type]  # test data
    return replace(made, fabric=infiniband(made.target))


def _moved(cluster: ClusterRef, machine: str, **changes: object) -> Desired:
    made = desire(high_speed=True, **changes)  # type: ignore[arg-type]  # test data
    target: Target = replace(made.target, cluster=cluster, machine=require_machine(cluster.provider, machine))
    return replace(made, target=target, promise=promise_of(target))


def fabric_of(pool: Desired) -> Fabric:
    assert pool.fabric is not None
    return pool.fabric


def instance_types(*types: str) -> dict[str, object]:
    expression = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": list(types)}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def efa_plugin(*tolerations: object, types: tuple[str, ...] = TYPES, release: str = "efa") -> WorkloadView:
    """Make the DaemonSet of aws/eks-charts stable/aws-efa-k8s-device-plugin, which tolerates little by default."""
    name = f"{release}-aws-efa-k8s-device-plugin"
    return daemonset(
        name,
        labels={"helm.sh/chart": "aws-efa-k8s-device-plugin-v0.5.30", "app.kubernetes.io/instance": release},
        pod_labels={"name": name},
        placement=placement_of({"affinity": instance_types(*types), "tolerations": [CRITICAL, *tolerations]}),
        containers=(container("602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/aws-efa-k8s-device-plugin:v0.5.20"),),
    )


def efa_manifest() -> WorkloadView:
    """Make the DaemonSet that eksctl applies (pkg/addons/assets/efa-device-plugin.yaml): no Helm labels."""
    made = efa_plugin()
    return replace(made, name="aws-efa-k8s-device-plugin-daemonset", labels={}, pod_labels={"name": made.name})


def aws_dranet() -> WorkloadView:
    return daemonset(
        "aws-dranet",
        labels={"app": "aws-dranet", "app.kubernetes.io/instance": "dranet"},
        placement=placement_of({"affinity": instance_types(*TYPES), "tolerations": [CRITICAL, GPU_TOLERATED]}),
        containers=(container("602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/dranet:v1.2.0-eksbuild.2"),),
    )


def rdma_plugin(**changes: object) -> WorkloadView:
    """Make the DaemonSet of Mellanox/network-operator manifests/state-sriov-device-plugin."""
    placed = {
        "nodeSelector": {
            "feature.node.kubernetes.io/pci-15b3.present": "true",
            "network.nvidia.com/operator.mofed.wait": "false",
        },
        "tolerations": [GPU_TOLERATED],
    }
    made = daemonset(
        "network-operator-sriov-device-plugin",
        "network-operator",
        pod_labels={"app": "sriovdp", "name": "network-operator-sriov-device-plugin"},
        placement=placement_of(placed),
        containers=(container("nvcr.io/nvidia/mellanox/sriov-network-device-plugin:network-operator-v25.10.0"),),
    )
    return replace(made, **changes)  # type: ignore[arg-type]  # test data


def nccl_installer(name: str, accelerator: str) -> WorkloadView:
    """Make a DaemonSet of GoogleCloudPlatform/container-engine-accelerators gpudirect-*: it tolerates everything."""
    expression = {"key": "cloud.google.com/gke-accelerator", "operator": "In", "values": [accelerator]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    return daemonset(
        name,
        labels={"k8s-app": name},
        pod_labels={"name": name, "k8s-app": name},
        placement=placement_of({"affinity": affinity, "tolerations": [{"operator": "Exists"}]}),
        containers=(container("gke.gcr.io/pause:3.8"),),
    )


def everywhere(item: WorkloadView) -> WorkloadView:
    return replace(
        item, placement=Placement(tolerations=placement_of({"tolerations": [{"operator": "Exists"}]}).tolerations)
    )
