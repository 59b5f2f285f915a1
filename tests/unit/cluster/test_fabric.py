"""The fast network in a cluster: what serves a pool is recognized, and what is missing has its command."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.release.plugin_values import chart_values
from gpukube.cluster.release.shared_values import ReleaseContext
from gpukube.cluster.state.fabric import check_fabrics, is_mounting_all, nodes_place, part_states
from gpukube.cluster.state.snapshot import Snapshot
from tests.unit.cluster.builders import GPU_TAINT, VISION_TAINT, container, daemonset, desire
from tests.unit.cluster.fabrics import (
    GPU_TOLERATED,
    aws_dranet,
    efa_manifest,
    efa_plugin,
    everywhere,
    fabric_of,
    nccl_installer,
    on_aks,
    on_eks,
    on_gke,
    rdma_plugin,
)

if TYPE_CHECKING:
    from gpukube.cluster.kube.views import WorkloadView
    from gpukube.core.values import Desired
    from gpukube.errors import Finding

EKS, AKS, GKE = on_eks(), on_aks(), on_gke()
ULTRA = on_gke("a3-ultragpu-8g")
TAINTED = on_eks(taints=(GPU_TAINT, VISION_TAINT))
TCPXO = nccl_installer("nccl-tcpxo-installer", "nvidia-h100-mega-80gb")
RDMA = nccl_installer("nccl-rdma-installer", "nvidia-h200-141gb")
GKES_DRIVER = everywhere(daemonset("networking-dra-driver", "gke-managed-networking-dra-driver"))


def checked(pool: Desired, *daemonsets: WorkloadView) -> list[Finding]:
    return check_fabrics(Snapshot(daemonsets=daemonsets), [pool])


SERVED: dict[str, tuple[Desired, *tuple[WorkloadView, ...]]] = {
    "EFA plugin that tolerates the taint": (EKS, efa_plugin(GPU_TOLERATED)),
    "aws-dranet": (EKS, aws_dranet()),
    "Network Operator, whose labels come with the nodes": (AKS, rdma_plugin()),
    "TCPXO installer": (GKE, TCPXO),
    "gIB installer and GKE's DRA driver": (ULTRA, RDMA, GKES_DRIVER),
}


@pytest.mark.parametrize("case", SERVED)
def test_check_fabrics_when_a_part_runs_on_the_nodes_then_nothing_is_found(case: str) -> None:
    pool, *items = SERVED[case]
    assert checked(pool, *items) == []


MISSING = {
    "nothing on EKS": (
        EKS,
        (),
        "the cluster has no EFA device plugin or aws-dranet",
        (
            "helm upgrade --install aws-efa-k8s-device-plugin aws-efa-k8s-device-plugin --repo "
            "https://aws.github.io/eks-charts --version v0.5.30 --namespace kube-system --reset-then-reuse-values "
            """--set-json 'tolerations=[{"key":"nvidia.com/gpu","operator":"Exists","effect":"NoSchedule"}]'"""
        ),
    ),
    "a plugin with the chart's own tolerations": (
        EKS,
        (efa_plugin(),),
        "taint nvidia.com/gpu=present:NoSchedule is not tolerated",
        "helm upgrade --install efa aws-efa-k8s-device-plugin",
    ),
    "a plugin whose list of types is older than the machine": (
        on_eks("p6-b200.48xlarge"),
        (efa_plugin(GPU_TOLERATED),),
        "node affinity needs node.kubernetes.io/instance-type In [p4d.24xlarge,",
        "helm upgrade --install efa aws-efa-k8s-device-plugin",
    ),
    "eksctl's manifest, which has no release": (
        EKS,
        (efa_manifest(),),
        "DaemonSet kube-system/aws-efa-k8s-device-plugin-daemonset does not run on these nodes",
        (
            "kubectl patch daemonset aws-efa-k8s-device-plugin-daemonset --namespace kube-system --type json --patch "
            """'[{"op":"add","path":"/spec/template/spec/tolerations/-","value":{"key":"nvidia.com/gpu","""
        ),
    ),
    "eksctl's manifest with its old list": (
        on_eks("p6-b200.48xlarge"),
        (efa_manifest(),),
        "node affinity needs",
        "kubectl delete daemonset aws-efa-k8s-device-plugin-daemonset --namespace kube-system && helm upgrade",
    ),
    "nothing on AKS": (
        AKS,
        (),
        "the cluster has no RDMA device plugin of NVIDIA's Network Operator or DRANET",
        "helm upgrade --install network-operator network-operator --repo https://helm.ngc.nvidia.com/nvidia",
    ),
    "the operator's plugin and a taint of the pool": (
        on_aks(taints=(GPU_TAINT, VISION_TAINT)),
        (rdma_plugin(),),
        "taint dedicated=vision:NoSchedule is not tolerated",
        """nic-cluster-policy --type merge --patch '{"spec":{"tolerations":[{"key":"nvidia.com/gpu","operator":""",
    ),
    "another installer than the machine's": (
        GKE,
        (RDMA,),
        "the cluster has no nccl-tcpxo-installer",
        (
            "kubectl apply --filename https://raw.githubusercontent.com/GoogleCloudPlatform/container-engine-accelerators/"
            "master/gpudirect-tcpxo/nccl-tcpxo-installer.yaml"
        ),
    ),
    "an installer that is older than the machine": (
        on_gke("a4-highgpu-8g"),
        (RDMA, GKES_DRIVER),
        "node affinity needs cloud.google.com/gke-accelerator In [nvidia-h200-141gb]",
        "gpudirect-rdma/nccl-rdma-installer.yaml",
    ),
}


@pytest.mark.parametrize("case", MISSING)
def test_check_fabrics_when_no_part_runs_on_the_nodes_then_a_warning_with_the_command(case: str) -> None:
    pool, there, seen, fix = MISSING[case]
    (found,) = checked(pool, *there)
    assert (found.code, found.severity, found.where) == ("fabric-missing", "warning", pool.target.where)
    assert seen in found.seen
    assert fix in found.fix


def test_check_fabrics_when_a_live_plugin_tolerates_other_taints_then_the_command_keeps_them() -> None:
    other = {"key": "team", "operator": "Equal", "value": "nlp", "effect": "NoSchedule"}
    (found,) = checked(TAINTED, efa_plugin(other))
    written = json.loads(found.fix.partition("tolerations=")[2].removesuffix("'"))
    assert written == [
        other,
        GPU_TOLERATED,
        {"key": "dedicated", "operator": "Equal", "value": "vision", "effect": "NoSchedule"},
    ]


def test_check_fabrics_when_plugin_and_driver_both_run_there_then_a_warning_to_remove_one() -> None:
    (found,) = checked(EKS, efa_plugin(GPU_TOLERATED), aws_dranet())
    assert (found.code, found.severity) == ("fabric-twice", "warning")
    assert "both run on these nodes" in found.seen
    assert found.fix == "remove one of them: helm uninstall dranet --namespace kube-system"


def test_check_fabrics_when_the_driver_runs_on_other_nodes_then_nothing_is_found() -> None:
    elsewhere = replace(aws_dranet(), placement=efa_plugin().placement)
    assert checked(EKS, efa_plugin(GPU_TOLERATED), elsewhere) == []


def test_check_fabrics_when_a_pool_has_no_fast_network_then_nothing_is_found() -> None:
    assert check_fabrics(Snapshot(), [desire()]) == []


def test_part_states_when_an_affinity_lists_hundreds_of_types_then_the_text_stays_short() -> None:
    many = efa_plugin(GPU_TOLERATED, types=tuple(f"m{number}.metal" for number in range(300)))
    (found,) = checked(EKS, many)
    assert "m2.metal,...]" in found.seen.replace("m3.metal,m4.metal,m5.metal,", "")
    assert len(found.seen) < 300


def plugin(image: str, **changes: object) -> WorkloadView:
    made = daemonset("nvidia-device-plugin-daemonset", containers=(container(image, "nvidia-device-plugin"),))
    return everywhere(replace(made, **changes))  # type: ignore[arg-type]  # test data


MOUNTS = {
    "nvcr.io/nvidia/k8s-device-plugin:v0.19.0": True,
    "nvcr.io/nvidia/k8s-device-plugin:v0.19.2-ubi9": True,
    "nvcr.io/nvidia/k8s-device-plugin:v0.19.3": False,
    "nvcr.io/nvidia/k8s-device-plugin:v0.18.2": False,
    "nvcr.io/nvidia/k8s-device-plugin:v0.20.0": False,
}


@pytest.mark.parametrize("image", MOUNTS)
def test_is_mounting_all_when_the_default_of_a_version_mounts_all_devices_then_true(image: str) -> None:
    assert is_mounting_all(plugin(image)) is MOUNTS[image]


@pytest.mark.parametrize("case", ["environment", "argument"])
def test_is_mounting_all_when_it_is_turned_off_then_false(case: str) -> None:
    image = "nvcr.io/nvidia/k8s-device-plugin:v0.19.1"
    one = container(image, "nvidia-device-plugin", *(["--mofed-enabled=false"] if case == "argument" else []))
    one = replace(one, env={"MOFED_ENABLED": "false"} if case == "environment" else {})
    assert not is_mounting_all(plugin(image, containers=(one,)))


@pytest.mark.parametrize(
    ("version", "pool", "value"),
    [("0.19.1", EKS, False), ("0.19.3", EKS, None), ("0.20.0", EKS, None), ("0.19.1", desire(), None)],
)
def test_chart_values_when_the_version_mounts_all_devices_then_it_is_turned_off(
    version: str, pool: Desired, value: object
) -> None:
    assert chart_values([pool], ReleaseContext(version=version)).get("mofedEnabled") is value


def test_part_states_when_several_are_stuck_then_the_closest_is_named() -> None:
    far = efa_plugin(types=("m5n.metal",), release="far")
    (state,) = part_states(fabric_of(EKS), nodes_place(EKS), [far, efa_plugin()])
    assert state.stuck is not None
    assert state.stuck[1].name == "efa-aws-efa-k8s-device-plugin"
