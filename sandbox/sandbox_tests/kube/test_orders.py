"""An order of pools, given to each cloud's autoscaler, while the first has no machines and when it has them again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from google.cloud import container_v1 as wire

from gpukube_sandbox.aks.pools import Pool as AksPool
from gpukube_sandbox.aks.pools import finish_defaults, with_defaults
from gpukube_sandbox.eks.clusters import ClusterOptions as EksOptions
from gpukube_sandbox.eks.making import EksRequest
from gpukube_sandbox.gke.making import GkeRequest
from gpukube_sandbox.gke.pools import Pool as GkePool
from gpukube_sandbox.kube.autoscaler.classes import CLASS_LABEL
from gpukube_sandbox.kube.autoscaler.priorities import CONFIG_MAP
from gpukube_sandbox.kube.store.kinds import COMPUTE_CLASS, CORE
from gpukube_sandbox.kube.store.objects import spec
from gpukube_sandbox.stock import parse_entry
from gpukube_sandbox.world import ClusterRequest, World
from sandbox_tests.kube.test_autoscaler import SPEED, gke_pool, told, until, work

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpukube_sandbox.kube.cluster import KubeCluster
    from gpukube_sandbox.kube.store.objects import JsonObject

RANKS = ("first", "second")


def prefer(kube: KubeCluster, pattern: str) -> None:
    """Put the order of pools by names of their groups."""
    lists = {1000: [pattern.format("first")], 990: [pattern.format("second")], 1: [".*"]}
    text = "".join(f"{number}: ['{patterns[0]}']\n" for number, patterns in lists.items())
    place = {"name": CONFIG_MAP, "namespace": "kube-system"}
    kube.store.create(CORE["configmaps"], {"metadata": place, "data": {"priorities": text}})


async def eks(world: World) -> tuple[KubeCluster, str]:
    gpu: dict[str, object] = {"amiType": "AL2023_x86_64_NVIDIA"}
    types = {"first": "g4dn.xlarge", "second": "g5.xlarge"}
    scaling = {"minSize": 0, "maxSize": 5, "desiredSize": 0}
    groups = [
        {**gpu, "nodegroupName": name, "instanceTypes": [types[name]], "scalingConfig": scaling} for name in RANKS
    ]
    system: dict[str, object] = {"nodegroupName": "system"}
    options = EksOptions(node_groups=[system, *groups], foreign_plugin=True, autoscaler="priority,least-waste")
    cluster, _ = await world.ensure_eks_cluster(EksRequest("123456789012", "us-east-1", "e", options=options))
    prefer(cluster.kube, "^eks-{}-[0-9a-f]{{8}}-[0-9a-f-]{{27}}$")
    return cluster.kube, "g4dn.xlarge"


async def aks(world: World) -> tuple[KubeCluster, str]:
    cluster, _ = await world.ensure_cluster(ClusterRequest("s", "g", "a"))
    cluster.auto_scaler = {"expander": "priority"}
    sizes = {"first": "Standard_NC4as_T4_v3", "second": "Standard_NC8as_T4_v3"}
    managed = {"nvidia": {"managementMode": "Managed", "migStrategy": "None"}}
    for name, size in sizes.items():
        sent = {"count": 0, "minCount": 0, "maxCount": 5, "enableAutoScaling": True, "vmSize": size}
        properties = finish_defaults(with_defaults({**sent, "gpuProfile": managed}, cluster.facts))
        cluster.pools[name] = AksPool(name, properties, state="Succeeded")
    prefer(cluster.kube, "^aks-{}-[0-9]+-vmss$")
    return cluster.kube, sizes["first"]


async def gke(world: World) -> tuple[KubeCluster, str]:
    cluster, _ = await world.ensure_gke_cluster(GkeRequest("p", "us-central1", "k"))
    pattern = gke_pool(world).wire
    del cluster.pools["gpu"]
    for name, machine in (("first", "n1-standard-4"), ("second", "n1-standard-8")):
        pool = wire.NodePool(pattern)
        pool.name, pool.config.machine_type = name, machine
        pool.config.labels[CLASS_LABEL] = "family"
        pool.config.taints.append(
            wire.NodeTaint(key=CLASS_LABEL, value="family", effect=wire.NodeTaint.Effect.NO_SCHEDULE)
        )
        cluster.pools[name] = GkePool(pool)
    body = {"priorities": [{"nodepools": [name]} for name in RANKS], "whenUnsatisfiable": "DoNotScaleUp"}
    cluster.kube.store.create(COMPUTE_CLASS, {"metadata": {"name": "family"}, "spec": body})
    return cluster.kube, "n1-standard-4"


async def node_of(kube: KubeCluster, name: str, pod: JsonObject) -> str:
    """Return the node that a new pod gets."""
    kube.store.create(CORE["pods"], {"metadata": {"name": name}, "spec": pod})

    def node() -> str:
        return str(spec(kube.store.get(CORE["pods"], "default", name)).get("nodeName", ""))

    await until(kube, node)
    return node()


@pytest.mark.turns(3)
@pytest.mark.parametrize(
    ("provider", "cloud", "reason"),
    [("eks", eks, "ScaleUpFailed"), ("aks", aks, "ScaleUpTimedOut"), ("gke", gke, "FailedScaleUp")],
)
def test_order_when_the_first_pool_has_no_machines_then_the_second_grows_and_later_the_first(
    provider: str, cloud: Callable[[World], Any], reason: str
) -> None:
    async def story() -> None:
        world = World(SPEED, b"authority")
        try:
            kube, machine = await cloud(world)
            world.stock.put(parse_entry({"provider": provider, "type": machine, "free": 0}))
            pod = work("x", nodeSelector={CLASS_LABEL: "family"} if cloud is gke else {})["spec"]
            second = await node_of(kube, "x", pod)
            assert told(kube, reason)
            world.stock.clear()
            await world.clock.sleep(1900)  # the longest pause
            first = await node_of(kube, "y", pod)
            shapes = {node: kube.store.get(CORE["nodes"], "", node)["metadata"]["labels"] for node in (first, second)}
            kinds = [marks["node.kubernetes.io/instance-type"] for marks in (shapes[first], shapes[second])]
            assert kinds[0] == machine
            assert kinds[1] != machine
            assert kube.failures == []
        finally:
            await world.reset()

    asyncio.run(story())
