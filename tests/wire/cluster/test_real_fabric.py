"""The fast network on a real control plane: nodes patched as plugins do, counted as `pool verify` counts them."""

from __future__ import annotations

import asyncio
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.kube.api_types import NODES, RELEASE_TYPES
from gpukube.cluster.kube.client import connect_kube
from gpukube.cluster.proof.verify import prove_pool
from gpukube.cluster.state.snapshot import look
from gpukube.core.values import KubeAccess, Nodes
from gpukube.engine.change.proving import summarise
from gpukube_sandbox.kube.controlplane import find_assets
from sandbox_tests.waiting import PATIENCE_S, wait_for
from tests.unit.cluster.builders import advertised_by_cloud
from tests.unit.cluster.fabrics import CRITICAL, EFA, GPU_TOLERATED, fabric_of, instance_types, on_aks, on_eks, on_gke
from tests.wire.cluster.test_real_charts import control_plane

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpukube.cluster.kube.client import LightKube
    from gpukube.cluster.proof.outcome import PoolProof
    from gpukube.core.jsontree import Tree
    from gpukube.core.values import Desired
    from gpukube_sandbox.kube.cluster import KubeCluster

pytestmark = [
    pytest.mark.kube,
    pytest.mark.skipif(find_assets() is None, reason="KUBEBUILDER_ASSETS names no directory with a control plane"),
]
DAEMONSETS = RELEASE_TYPES["DaemonSet"]
NAMES = ("node-1", "node-2")
TWO = Nodes(2, 2, 2, autoscaled=False)
PAGES = {"hugepages-2Mi": "10256Mi"}
UNTOLERATED = "taint nvidia.com/gpu=present:NoSchedule is not tolerated"
GPUS = {"nvidia.com/gpu": "8"}
NETWORKS = {f"networking.gke.io.networks/gpu-nic-{number}": "1" for number in range(8)}


class Plane:
    """A real control plane and the nodes in it."""

    def __init__(self, cluster: KubeCluster, loop: asyncio.AbstractEventLoop, kube: LightKube) -> None:
        self.cluster, self.loop, self.kube = cluster, loop, kube

    def join(self, pool: Desired, labels: Mapping[str, str]) -> None:
        """Create two nodes that no kubelet, emulated or not, reports on; nothing else removes their first taints."""
        taints = [{"key": t.key, "value": t.value, "effect": t.effect} for t in pool.effective_taints]
        for name in NAMES:
            metadata = {"name": name, "labels": {**pool.labels, **labels}}
            made = self.kube.create_object(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": metadata})
            self.patch(name, {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]})
            live = self.kube.find_object(NODES, name) or made
            assert self.kube.change_object(NODES, live, [{"op": "add", "path": "/spec/taints", "value": taints}])

    def patch(self, name: str, status: Mapping[str, object]) -> None:
        async def send() -> None:
            node = await self.cluster.api.get("nodes", name)
            assert node is not None
            await self.cluster.api.patch_status("nodes", node, dict(status))

        asyncio.run_coroutine_threadsafe(send(), self.loop).result(PATIENCE_S)

    def advertise(self, name: str, amounts: Mapping[str, str]) -> None:
        """Set capacity and allocatable of a node, as its kubelet does for what plugins register."""
        self.patch(name, {"capacity": dict(amounts), "allocatable": dict(amounts)})

    def tolerate(self, name: str, toleration: Mapping[str, str]) -> None:
        """Add a toleration to a DaemonSet, which its controller changes at the same time."""
        operation = {"op": "add", "path": "/spec/template/spec/tolerations/-", "value": dict(toleration)}

        def is_changed() -> bool:
            live = self.kube.find_object(DAEMONSETS, name, "kube-system")
            return live is not None and self.kube.change_object(DAEMONSETS, live, [operation])

        wait_for(is_changed)

    def prove(self, pool: Desired) -> PoolProof:
        return prove_pool(pool, look(self.kube))


@pytest.fixture
def plane() -> Iterator[Plane]:
    with (
        control_plane() as (cluster, loop),
        closing(connect_kube(KubeAccess(cluster.kubeconfig("")), PATIENCE_S)) as kube,
    ):
        yield Plane(cluster, loop, kube)


def efa_plugin() -> Tree:
    """Make the DaemonSet of aws/eks-charts stable/aws-efa-k8s-device-plugin."""
    labels = {"name": "aws-efa-k8s-device-plugin"}
    image = "602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/aws-efa-k8s-device-plugin:v0.5.20"
    pods = {
        "tolerations": [CRITICAL],
        "affinity": instance_types("p5.48xlarge"),
        "containers": [{"name": "aws-efa-k8s-device-plugin", "image": image}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {
            "name": "aws-efa-k8s-device-plugin",
            "namespace": "kube-system",
            "labels": {"app.kubernetes.io/instance": "aws-efa-k8s-device-plugin"},
        },
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pods}},
    }


def test_prove_when_the_efa_plugin_comes_step_by_step_then_each_step_is_told(plane: Plane) -> None:
    pool = advertised_by_cloud(on_eks(nodes=TWO, hugepages={"2Mi": 5128}))
    plane.join(pool, {"node.kubernetes.io/instance-type": "p5.48xlarge"})
    for name in NAMES:
        plane.advertise(name, {**GPUS, **PAGES})
    said = [summarise(plane.prove(pool))]
    plane.kube.create_object(DAEMONSETS, efa_plugin())
    said.append(summarise(plane.prove(pool)))
    plane.tolerate("aws-efa-k8s-device-plugin", GPU_TOLERATED)
    plane.advertise("node-1", {EFA: "32"})
    said.append(summarise(plane.prove(pool)))
    plane.advertise("node-2", {EFA: "32"})
    said.append(summarise(plane.prove(pool)))
    plane.advertise("node-2", {"hugepages-2Mi": "0"})
    said.append(summarise(plane.prove(pool)))
    short = "nvidia.com/gpu: 16 verified on 2 nodes; not ready: vpc.amazonaws.com/efa 0 of 64"
    missing = f"{short}; EFA is not available to pods: "
    assert said == [
        f"{missing}the cluster has no EFA device plugin or aws-dranet",
        f"{missing}DaemonSet kube-system/aws-efa-k8s-device-plugin does not run on these nodes: {UNTOLERATED}",
        "node-2: vpc.amazonaws.com/efa is 0, not 32",
        "nvidia.com/gpu: 16, vpc.amazonaws.com/efa: 64 verified on 2 nodes",
        "node-2: hugepages-2Mi is 0Mi, not 10256Mi",
    ]


COUNTED = {
    "aks": (
        on_aks(nodes=TWO),
        {"feature.node.kubernetes.io/pci-15b3.present": "true", "network.nvidia.com/operator.mofed.wait": "false"},
        {"rdma/ib": "8"},
        "nvidia.com/gpu: 16, rdma/ib: 16 verified on 2 nodes",
    ),
    "gke": (
        replace(on_gke(nodes=TWO), fabric=replace(fabric_of(on_gke()), parts=())),
        {"cloud.google.com/gke-accelerator": "nvidia-h100-mega-80gb"},
        NETWORKS,
        "nvidia.com/gpu: 16, networking.gke.io.networks/*: 16 verified on 2 nodes",
    ),
}


@pytest.mark.parametrize("cloud", COUNTED)
def test_prove_when_names_come_from_the_cluster_then_they_are_counted_like_gpus(plane: Plane, cloud: str) -> None:
    made, labels, amounts, said = COUNTED[cloud]
    pool = advertised_by_cloud(made)
    plane.join(pool, labels)
    for name in NAMES:
        plane.advertise(name, {**GPUS, **amounts})
    proof = plane.prove(pool)
    assert (proof.status, summarise(proof)) == ("proven", said)
