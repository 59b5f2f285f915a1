"""What the API server refuses or changes in pods that ask for devices."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gpukube_sandbox.clock import ManualClock
from gpukube_sandbox.eks.making import EksRequest
from gpukube_sandbox.gke.making import GkeRequest
from gpukube_sandbox.kube.store import kinds
from gpukube_sandbox.kube.store.problems import ApiProblem
from gpukube_sandbox.kube.store.store import Store
from gpukube_sandbox.world import ClusterRequest, World

GPU = "nvidia.com/gpu"
SPOT = "containers[0].resources"


def pod(**resources: dict[str, object]) -> dict[str, Any]:
    return {"metadata": {"name": "x"}, "spec": {"containers": [{"name": "main", "image": "i", "resources": resources}]}}


@pytest.mark.parametrize(
    ("resources", "message"),
    [
        pytest.param({"limits": {GPU: "1"}}, "", id="limit-only"),
        pytest.param({"limits": {GPU: "3000m"}, "requests": {GPU: 3}}, "", id="equal-in-number"),
        pytest.param({"limits": {GPU: 0}}, "", id="none"),
        pytest.param({"limits": {"cpu": "500m"}}, "", id="part-of-a-core"),
        pytest.param(
            {"limits": {GPU: "0.5"}},
            f'[spec.{SPOT}.limits[{GPU}]: Invalid value: "500m": must be an integer, '
            f'spec.{SPOT}.requests[{GPU}]: Invalid value: "500m": must be an integer]',
            id="fraction",
        ),
        pytest.param(
            {"limits": {GPU: "3"}, "requests": {GPU: "1"}},
            f'spec.{SPOT}.requests: Invalid value: "1": must be equal to {GPU} limit of 3',
            id="request-is-not-the-limit",
        ),
        pytest.param(
            {"requests": {"nvidia.com/mig-1g.5gb": 1}},
            f"spec.{SPOT}.limits: Required value: Limit must be set for non overcommitable resources",
            id="no-limit",
        ),
        pytest.param(
            {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}},
            f'spec.{SPOT}.requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
            id="above-the-limit",
        ),
        pytest.param({"limits": {"gpu": 1}}, "must be a standard resource type or fully qualified", id="unqualified"),
        pytest.param(
            {"limits": {"requests.nvidia.com/gpu": 1}},
            "doesn't follow extended resource name standard",
            id="quota-name",
        ),
    ],
)
def test_pod_when_resources_are_wrong_then_refused_as_the_api_server_does(
    resources: dict[str, dict[str, object]], message: str
) -> None:
    store = Store(ManualClock())
    if not message:
        store.create(kinds.CORE["pods"], pod(**resources))
        return
    with pytest.raises(ApiProblem) as refused:
        store.create(kinds.CORE["pods"], pod(**resources))
    assert refused.value.code == 422
    assert message in refused.value.message
    assert refused.value.message.startswith('Pod "x" is invalid: ')
    assert refused.value.details["causes"]


def test_job_when_its_template_asks_for_half_a_gpu_then_the_path_leads_there() -> None:
    run = {**pod(limits={GPU: "500m"})["spec"], "restartPolicy": "Never"}
    job = {"metadata": {"name": "half"}, "spec": {"template": {"spec": run}}}
    with pytest.raises(ApiProblem, match=r'Job.batch "half" is invalid: spec.template.spec.containers\[0\]'):
        Store(ManualClock()).create(kinds.CORE["jobs"], job)


def test_pod_when_it_asks_for_devices_then_every_cloud_tolerates_taints_of_their_names() -> None:
    async def tolerated() -> list[list[str]]:
        world = World(1000.0, b"authority")
        aks, _ = await world.ensure_cluster(ClusterRequest("s", "g", "a"))
        eks, _ = await world.ensure_eks_cluster(EksRequest("123456789012", "us-east-1", "e"))
        gke, _ = await world.ensure_gke_cluster(GkeRequest("p", "us-central1", "k"))
        asked = pod(limits={GPU: 1, "nvidia.com/mig-1g.5gb": 2, "cpu": 1, "hugepages-2Mi": "2Mi"})
        made = [cluster.kube.store.create(kinds.CORE["pods"], asked) for cluster in (aks, eks, gke)]
        await world.reset()
        return [[f"{item['key']} {item['effect']}" for item in one["spec"]["tolerations"]] for one in made]

    for keys in asyncio.run(tolerated()):
        assert keys[2:] == ["nvidia.com/gpu NoSchedule", "nvidia.com/mig-1g.5gb NoSchedule"]
