"""A worker group of a rendered RayCluster goes from none to two and back, and with it the pool's nodes.

Stand-ins for Ray's autoscaler and KubeRay's operator: the former sets `replicas`, the latter makes as many pods of the
template, each with an init container before it (ray-project/kuberay controllers/ray/common/pod.go).
"""

from __future__ import annotations

import asyncio
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from gpukube.workload.render.intent import Intent
from gpukube.workload.render.manifests import render
from gpukube_sandbox.kube.store.kinds import CORE
from gpukube_sandbox.kube.store.objects import name_of, spec, status
from gpukube_sandbox.world import World
from sandbox_tests.kube.test_autoscaler import GPU, SPEED, aks, told, until
from tests.unit.workload.specs import offers

if TYPE_CHECKING:
    from pathlib import Path

    from gpukube_sandbox.kube.cluster import KubeCluster
    from gpukube_sandbox.kube.store.objects import JsonObject

POOL = "{name: gpu, clusters: [train-aks], instanceType: Standard_NC4as_T4_v3, nodes: {autoscaling: {min: 0, max: 5}}}"


def reconcile(kube: KubeCluster, group: dict[str, Any]) -> None:
    """Make, or delete, pods of a group until it has as many as it should, as the operator does."""
    pods = [name_of(pod) for pod in kube.store.all_of(CORE["pods"]) if name_of(pod).startswith("worker-")]
    for index in range(len(pods), group["replicas"]):
        template: JsonObject = deepcopy(group["template"])
        (container,) = template["spec"]["containers"]
        amounts = {"cpu": "200m", "memory": "256Mi"}
        waiting = {"name": "wait-gcs-ready", "image": container["image"], "command": ["true"]}
        template["spec"]["initContainers"] = [{**waiting, "resources": {"requests": amounts, "limits": amounts}}]
        kube.store.create(CORE["pods"], {"metadata": {"name": f"worker-{index}"}, "spec": template["spec"]})
    for name in pods[group["replicas"] :]:
        kube.store.delete(CORE["pods"], "default", name)


def test_group_when_ray_scales_it_then_nodes_come_and_go_with_its_workers(tmp_path: Path) -> None:
    made = render(Intent(kind="raycluster"), offers(tmp_path, POOL)["train-aks/gpu"])
    (group,) = made.documents[0]["spec"]["workerGroupSpecs"]  # type: ignore[index]  # a RayCluster
    assert (group["replicas"], group["maxReplicas"]) == (0, 5)

    async def story() -> None:
        world = World(SPEED, b"authority")
        kube = await aks(world)

        def workers() -> list[JsonObject]:
            pods = [pod for pod in kube.store.all_of(CORE["pods"]) if name_of(pod).startswith("worker-")]
            return [pod for pod in pods if status(pod).get("phase") == "Running"]

        def gpu_nodes() -> list[JsonObject]:
            return [node for node in kube.store.all_of(CORE["nodes"]) if GPU in status(node)["allocatable"]]

        try:
            reconcile(kube, {**group, "replicas": 2})
            await until(kube, lambda: len(workers()) == 2)
            assert told(kube, "TriggeredScaleUp")
            assert {spec(pod)["nodeName"] for pod in workers()} == {name_of(node) for node in gpu_nodes()}
            assert len(gpu_nodes()) == 2, "one GPU each, so a node each"
            reconcile(kube, group)
            await until(kube, lambda: not gpu_nodes())
            assert kube.failures == []
        finally:
            await world.reset()

    asyncio.run(story())
