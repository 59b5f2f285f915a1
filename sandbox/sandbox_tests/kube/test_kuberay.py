"""KubeRay's operator, imitated: definitions, pods, scaling, jobs and services, on a clock turned by hand."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from gpukube_sandbox.kube.kuberay.clusters import spec_faults
from gpukube_sandbox.kube.kuberay.definitions import definitions
from gpukube_sandbox.kube.kuberay.manifests import accelerators, desired_pods, head_pod
from gpukube_sandbox.kube.store.kinds import CORE, RAY
from gpukube_sandbox.kube.store.objects import labels, name_of, spec, status
from gpukube_sandbox.kube.store.patches import merge_patch
from gpukube_sandbox.kube.store.problems import ApiProblem
from gpukube_sandbox.kube.store.validation.custom import unknown_fields
from sandbox_tests.kube.test_life import Bench, life

if TYPE_CHECKING:
    from gpukube_sandbox.kube.store.objects import JsonObject

KINDS = {kind.plural: kind for kind in RAY}
OPERATOR = {"name": "kuberay-operator", "image": "quay.io/kuberay/operator:v1.7.0", "command": ["/manager"]}
SPEC: JsonObject = yaml.safe_load("""
rayVersion: 2.58.0
headGroupSpec:
  rayStartParams: {num-cpus: "0"}
  template:
    spec:
      containers:
      - {name: ray-head, image: "rayproject/ray:2.58.0", ports: [{name: serve, containerPort: 8000}],
         resources: {limits: {cpu: 2, memory: 4Gi}}}
workerGroupSpecs:
- groupName: gpu
  replicas: 0
  maxReplicas: 3
  template:
    spec:
      containers:
      - {name: ray-worker, image: "rayproject/ray:2.58.0-gpu", resources: {limits: {cpu: 1, memory: 2Gi}}}
""")
AUTOSCALED = merge_patch(SPEC, {"enableInTreeAutoscaling": True, "autoscalerOptions": {"version": "v2"}})


def make(bench: Bench, plural: str, body: JsonObject, name: str = "train") -> JsonObject:
    made = {"metadata": {"name": name, "namespace": "default"}, "spec": deepcopy(body)}
    return bench.cluster.store.create(KINDS[plural], made)


def look(bench: Bench, plural: str = "rayclusters", name: str = "train") -> JsonObject:
    return bench.cluster.store.get(KINDS[plural], "default", name)


def alter(bench: Bench, plural: str, body: JsonObject, name: str = "train") -> None:
    bench.cluster.store.update(KINDS[plural], merge_patch(look(bench, plural, name), {"spec": body}))


def scale(bench: Bench, replicas: int, *leaving: str) -> None:
    """Patch a cluster as Ray's autoscaler does: the number, and who goes."""
    groups = deepcopy(spec(look(bench))["workerGroupSpecs"])
    groups[0] |= {"replicas": replicas, "scaleStrategy": {"workersToDelete": list(leaving)}}
    alter(bench, "rayclusters", {"workerGroupSpecs": groups})


def ray_pods(bench: Bench, kind: str = "worker") -> list[JsonObject]:
    return [pod for pod in bench.all_of("pods") if labels(pod).get("ray.io/node-type") == kind]


async def installed(bench: Bench, *arguments: str) -> None:
    """Bring nodes, the definitions and the operator's pod."""
    for definition in definitions():
        bench.cluster.store.create(CORE["customresourcedefinitions"], deepcopy(definition))
    for name in ("n1", "n2", "n3", "n4"):
        await bench.node(None, name=name)
    bench.put("pods", {"metadata": {"name": "op"}, "spec": {"containers": [{**OPERATOR, "args": list(arguments)}]}})
    await bench.wait(60)


def events(bench: Bench) -> list[str]:
    return [event["reason"] for event in bench.all_of("events") if event["involvedObject"]["kind"].startswith("Ray")]


# definitions

REFUSED: dict[str, tuple[JsonObject, str]] = {
    "no head": ({"headGroupSpec": None}, "spec.headGroupSpec: Required value"),
    "a number for a start parameter": (
        {"headGroupSpec": {"rayStartParams": {"num-gpus": 2}}},
        'spec.headGroupSpec.rayStartParams.num-gpus in body must be of type string: "integer"',
    ),
    "an image that is a number": (
        {"headGroupSpec": {"template": {"spec": {"containers": [{"name": "c", "image": 5}]}}}},
        "spec.headGroupSpec.template.spec.containers[0].image in body must be of type string",
    ),
    "another autoscaler": ({"autoscalerOptions": {"version": "v3"}}, 'Unsupported value: "v3"'),
    "replicas of letters": ({"workerGroupSpecs": [{"replicas": "two"}]}, "must be of type integer"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_definition_when_a_cluster_does_not_fit_then_422(case: str) -> None:
    change, words = REFUSED[case]
    bench = Bench()
    for definition in definitions():
        bench.cluster.store.create(CORE["customresourcedefinitions"], deepcopy(definition))
    with pytest.raises(ApiProblem) as caught:
        make(bench, "rayclusters", merge_patch(SPEC, change))
    assert (caught.value.code, words in caught.value.message) == (422, True), caught.value.message


def test_definition_when_fields_are_left_out_or_unknown_then_defaults_and_pruned() -> None:
    bench = Bench()
    for definition in definitions():
        bench.cluster.store.create(CORE["customresourcedefinitions"], deepcopy(definition))
    made = make(bench, "rayclusters", merge_patch(SPEC, {"headGroupSpecs": {}}))
    (group,) = spec(made)["workerGroupSpecs"]
    assert (group["minReplicas"], group["numOfHosts"], "headGroupSpecs" in spec(made)) == (0, 1, False)
    schema = definitions()[0]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert list(unknown_fields({"spec": {"headGroupSpecs": {}}}, schema)) == ["spec.headGroupSpecs"]


FAULTS: dict[str, tuple[JsonObject, str]] = {
    "bounds": ({"minReplicas": 4}, "worker group gpu has minReplicas 4 greater than maxReplicas 3"),
    "a negative bound": ({"minReplicas": -1}, "worker group gpu has negative minReplicas -1"),
    "resources twice": (
        {"resources": {"GPU": "1"}, "rayStartParams": {"num-gpus": "1"}},
        "resource fields should not be set in both rayStartParams and Resources for gpu group; please use only one",
    ),
    "labels as a parameter": ({"rayStartParams": {"labels": "a=b"}}, "is not supported for gpu group"),
    "a restart with autoscaler v2": (
        {"template": {"spec": {"restartPolicy": "Always"}}},
        "restartPolicy for worker group gpu should be Never or unset when using autoscaler V2",
    ),
}


@pytest.mark.parametrize("case", FAULTS)
def test_cluster_when_the_operator_does_not_take_it_then_its_words(case: str) -> None:
    change, words = FAULTS[case]
    (group,) = AUTOSCALED["workerGroupSpecs"]
    found = list(spec_faults({**AUTOSCALED, "workerGroupSpecs": [merge_patch(group, change)]}))
    assert any(words in text for text in found), found
    assert not list(spec_faults(AUTOSCALED))


# manifests


@pytest.mark.parametrize(
    ("limits", "count"),
    [
        ({"nvidia.com/gpu": 2}, 2),
        ({"nvidia.com/mig-1g.5gb": 3}, 3),
        ({"nvidia.com/gpu.shared": 4}, 0),
        ({"amd.com/gpu": 1, "nvidia.com/gpu": 2}, 1),
        ({"amd.com/gpu": 0, "nvidia.com/gpu": 2}, 2),
        ({"cpu": 8}, 0),
    ],
)
def test_accelerators_when_a_container_has_limits_then_as_ray_counts_them(limits: dict[str, int], count: int) -> None:
    assert accelerators(limits) == count


@pytest.mark.parametrize(
    ("group", "count"),
    [
        ({"replicas": 2, "maxReplicas": 3}, 2),
        ({"replicas": 5, "maxReplicas": 3}, 3),
        ({"replicas": 0, "minReplicas": 1, "maxReplicas": 3}, 1),
        ({"replicas": 2, "maxReplicas": 3, "numOfHosts": 4}, 8),
        ({"replicas": 2, "maxReplicas": 3, "suspend": True}, 0),
    ],
)
def test_desired_when_replicas_are_out_of_bounds_then_within(group: dict[str, Any], count: int) -> None:
    assert desired_pods(group) == count


def test_head_when_ray_scales_itself_then_a_sidecar_and_a_command_that_stays() -> None:
    cluster = {"kind": "RayCluster", "metadata": {"name": "train", "namespace": "ml", "uid": "u"}, "spec": AUTOSCALED}
    pod = head_pod(cluster)
    ray, sidecar = spec(pod)["containers"]
    assert pod["metadata"]["name"] == "train-head"
    assert "ray start --head" in ray["args"][0]
    assert {"--block", "--num-cpus=0", "--memory=4294967296", "--no-monitor"} <= set(ray["args"][0].split())
    assert (sidecar["name"], spec(pod)["serviceAccountName"], spec(pod)["restartPolicy"]) == (
        "autoscaler",
        "train",
        "Never",
    )
    assert spec(pod)["volumes"] == [{"name": "shared-mem", "emptyDir": {"medium": "Memory", "sizeLimit": "4Gi"}}]


# clusters


def test_cluster_when_its_group_is_scaled_then_workers_come_and_the_named_ones_go() -> None:
    async def story(bench: Bench) -> None:
        await installed(bench)
        make(bench, "rayclusters", AUTOSCALED)
        await bench.wait(60)
        assert [name_of(pod) for pod in ray_pods(bench, "head")] == ["train-head"]
        assert (status(look(bench))["state"], ray_pods(bench)) == ("ready", [])
        assert bench.get("services", "train-head-svc")
        assert bench.get("roles", "train")

        scale(bench, 2)
        await bench.wait(60)
        first, second = ray_pods(bench)
        numbers = status(look(bench))
        assert (numbers["desiredWorkerReplicas"], numbers["availableWorkerReplicas"]) == (2, 2)
        assert (numbers["desiredCPU"], numbers["desiredMemory"], numbers["desiredGPU"]) == ("4", "8Gi", "0")

        scale(bench, 1)  # Ray's autoscaler chooses: without its choice nobody goes
        await bench.wait(60)
        assert len(ray_pods(bench)) == 2
        scale(bench, 1, name_of(first))
        await bench.wait(60)
        assert [name_of(pod) for pod in ray_pods(bench)] == [name_of(second)]
        assert {"CreatedHeadPod", "CreatedWorkerPod", "DeletedWorkerPod"} <= set(events(bench))

    life(story)


def test_cluster_when_it_does_not_scale_itself_then_any_worker_goes_and_lost_ones_come_back() -> None:
    async def story(bench: Bench) -> None:
        await installed(bench)
        make(bench, "rayclusters", SPEC)
        await bench.wait(30)
        scale(bench, 3)
        await bench.wait(60)
        lost = name_of(ray_pods(bench)[0])
        bench.cluster.store.delete(CORE["pods"], "default", lost)
        await bench.wait(90)
        names = [name_of(pod) for pod in ray_pods(bench)]
        assert (len(names), lost in names) == (3, False)
        scale(bench, 0)
        await bench.wait(60)
        assert ray_pods(bench) == []
        alter(bench, "rayclusters", {"suspend": True})
        await bench.wait(60)
        assert (ray_pods(bench, "head"), status(look(bench))["state"]) == ([], "suspended")

    life(story)


def test_cluster_when_it_is_wrong_or_elsewhere_then_an_event_or_nothing() -> None:
    async def story(bench: Bench) -> None:
        await installed(bench, "--watch-namespace", "default,ml")
        make(bench, "rayclusters", merge_patch(SPEC, {"autoscalerOptions": {"idleTimeoutSeconds": -1}}))
        other = {"metadata": {"name": "other", "namespace": "kube-system"}, "spec": deepcopy(SPEC)}
        bench.cluster.store.create(KINDS["rayclusters"], other)
        await bench.wait(60)
        assert (events(bench), ray_pods(bench, "head")) == (["InvalidRayClusterSpec"], [])

    life(story)


def test_cluster_when_the_operator_is_gone_then_nothing_happens() -> None:
    async def story(bench: Bench) -> None:
        await installed(bench)
        bench.cluster.store.delete(CORE["pods"], "default", "op")
        await bench.wait(60)
        make(bench, "rayclusters", SPEC)
        await bench.wait(60)
        assert ray_pods(bench, "head") == []

    life(story)


# jobs and services


def test_job_when_its_cluster_is_ready_then_it_is_submitted_succeeds_and_shuts_down() -> None:
    async def story(bench: Bench) -> None:
        await installed(bench)
        body = {"entrypoint": "python train.py", "shutdownAfterJobFinishes": True, "rayClusterSpec": SPEC}
        make(bench, "rayjobs", body)
        await bench.wait(120)
        told = status(look(bench, "rayjobs"))
        assert (told["jobStatus"], told["jobDeploymentStatus"]) == ("SUCCEEDED", "Complete")
        assert "python train.py" in spec(bench.get("jobs", "train"))["template"]["spec"]["containers"][0]["command"][-1]
        assert {"CreatedRayCluster", "CreatedRayJobSubmitter", "DeletedRayCluster"} <= set(events(bench))
        assert bench.cluster.store.all_of(KINDS["rayclusters"]) == []
        assert ray_pods(bench, "head") == []

    life(story)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"entrypoint": "a"}, "one of RayClusterSpec or ClusterSelector must be set"),
        ({"rayClusterSpec": SPEC, "ttlSecondsAfterFinished": 5}, "is not allowed to have TTLSecondsAfterFinished"),
    ],
)
def test_job_when_the_operator_does_not_take_it_then_validation_failed(body: JsonObject, words: str) -> None:
    async def story(bench: Bench) -> None:
        await installed(bench)
        make(bench, "rayjobs", body)
        await bench.wait(20)
        told = status(look(bench, "rayjobs"))
        assert (told["jobDeploymentStatus"], words in told["message"]) == ("ValidationFailed", True)

    life(story)


def test_service_when_its_cluster_changes_then_a_second_one_serves_before_the_first_goes() -> None:
    async def story(bench: Bench) -> None:
        await installed(bench)
        apps = "applications: [{name: text, import_path: 'text:app'}]"
        make(bench, "rayservices", {"serveConfigV2": apps, "rayClusterConfig": SPEC})
        await bench.wait(90)
        told = status(look(bench, "rayservices"))
        first = told["activeServiceStatus"]["rayClusterName"]
        assert (told["serviceStatus"], told["numServeEndpoints"]) == ("Running", 1)
        assert told["activeServiceStatus"]["applicationStatuses"] == {"text": {"status": "RUNNING"}}
        assert spec(bench.get("services", "train-serve-svc"))["selector"] == {
            "ray.io/cluster": first,
            "ray.io/serve": "true",
        }

        alter(
            bench,
            "rayservices",
            {"rayClusterConfig": {"workerGroupSpecs": [{**SPEC["workerGroupSpecs"][0], "replicas": 2}]}},
        )
        await bench.wait(60)
        assert status(look(bench, "rayservices"))["activeServiceStatus"]["rayClusterName"] == first, "scaling is none"

        alter(bench, "rayservices", {"rayClusterConfig": {"rayVersion": "2.59.0"}})
        await bench.wait(30)
        assert len(ray_pods(bench, "head")) == 2
        await bench.wait(120)
        told = status(look(bench, "rayservices"))
        assert told["activeServiceStatus"]["rayClusterName"] != first
        assert (len(ray_pods(bench, "head")), told["serviceStatus"]) == (1, "Running")
        conditions = {one["type"]: (one["status"], one["reason"]) for one in told["conditions"]}
        assert conditions == {
            "Ready": ("True", "NonZeroServeEndpoints"),
            "UpgradeInProgress": ("False", "NoPendingCluster"),
        }

    life(story)
