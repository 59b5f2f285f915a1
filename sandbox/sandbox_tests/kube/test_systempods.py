"""What runs in kube-system of each cloud before anybody comes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from gpukube_sandbox.eks.making import EksRequest
from gpukube_sandbox.gke.making import GkeRequest
from gpukube_sandbox.kube.scheduler.snapshot import take_snapshot
from gpukube_sandbox.kube.store.kinds import CORE
from gpukube_sandbox.kube.store.objects import labels, name_of, status
from gpukube_sandbox.world import ClusterRequest, World
from sandbox_tests.kube.test_autoscaler import SPEED, until

if TYPE_CHECKING:
    from gpukube_sandbox.kube.cluster import KubeCluster

EXPECTED = {
    "eks": (["aws-node", "kube-dns", "kube-dns", "kube-proxy"], 350),
    "aks": (["azure-cns", "kube-dns", "kube-dns", "kube-proxy"], 340),
    "gke": (["fluentbit-gke", "kube-dns", "kube-dns", "kube-proxy"], 720),
}
"""Labels of the pods on the only node, and the millicores that they take."""


async def made(world: World, cloud: str) -> KubeCluster:
    """Make a cluster as it comes."""
    if cloud == "eks":
        return (await world.ensure_eks_cluster(EksRequest("123456789012", "us-east-1", "c")))[0].kube
    if cloud == "gke":
        return (await world.ensure_gke_cluster(GkeRequest("p", "us-central1-a", "c")))[0].kube
    return (await world.ensure_cluster(ClusterRequest("s", "g", "c")))[0].kube


@pytest.mark.parametrize("cloud", EXPECTED)
def test_cluster_when_it_is_new_then_its_own_pods_run_and_take_their_room(cloud: str) -> None:
    async def story() -> tuple[list[str], int]:
        world = World(SPEED, b"authority")
        kube = await made(world, cloud)

        def running() -> bool:
            found = kube.store.all_of(CORE["pods"])
            return len(found) == 4 and all(status(pod).get("phase") == "Running" for pod in found)

        await until(kube, running)
        nodes, pods = kube.store.all_of(CORE["nodes"]), kube.store.all_of(CORE["pods"])
        room = take_snapshot(nodes, pods, ()).nodes[name_of(nodes[0])]
        assert kube.failures == []
        await world.reset()
        marks = [labels(pod).get("k8s-app") or labels(pod)["component"] for pod in pods]
        return sorted(marks), int(room.used["cpu"])

    assert asyncio.run(story()) == EXPECTED[cloud]
