"""What `workload render` writes, `fit` foretells and `lint` finds, and what the emulated cluster makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml
from lightkube.resources.core_v1 import Pod

from gpukube_sandbox import daemon
from sandbox_tests.waiting import wait_for
from tests.builders import SUBSCRIPTION

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.harness import Cluster, Gpukube, Result

SPEC = f"""\
apiVersion: gpukube.io/v1alpha1
kind: GPUNodePools
metadata: {{name: ml}}
clusters:
  train-aks: {{provider: aks, subscription: {SUBSCRIPTION}, resourceGroup: ml, name: train}}
pools:
  - {{name: fixed, clusters: [train-aks], gpu: {{model: T4, count: 1}}, nodes: {{count: 1}}}}
  - {{name: grows, clusters: [train-aks], gpu: {{model: T4, count: 1}}, nodes: {{autoscaling: {{min: 0, max: 2}}}}}}
"""
POOL = "kubernetes.azure.com/agentpool"


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    file = tmp_path / "pools.yaml"
    file.write_text(SPEC)
    return file


@pytest.fixture
def made(gpukube: Gpukube, spec: Path) -> Gpukube:
    """Make both pools: one node, and none."""
    gpukube.made("-f", spec)
    return gpukube


def write(directory: Path, *objects: dict[str, Any]) -> Path:
    file = directory / "work.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    return file


def pod(name: str, gpus: int = 1, resource: str = "nvidia.com/gpu", **more: object) -> dict[str, Any]:
    container = {"name": "main", "image": "i", "resources": {"limits": {resource: gpus}}}
    made_of = {"containers": [container], **more}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": made_of}


def phase(cluster: Cluster, name: str) -> str:
    status = cluster.client.get(Pod, name, namespace="default").status
    return (status.phase if status else "") or ""


def create(cluster: Cluster, manifest: dict[str, Any]) -> str:
    """Create a pod, as kubectl or an operator does."""
    made_of = Pod.from_dict({**manifest, "metadata": {"namespace": "default", **manifest["metadata"]}})
    assert isinstance(made_of, Pod)
    cluster.client.create(made_of, namespace="default")
    return str(manifest["metadata"]["name"])


def live(gpukube: Gpukube, spec: Path, file: Path) -> Result:
    return gpukube("workload", "fit", file, "-f", spec, "--live", "-o", "json")


def states(result: Result) -> list[tuple[int, int, int]]:
    """Return the pods now, after a scale-up and never, of each template with devices."""
    parts = result.json()["workloads"]
    return [(one["now"], one["afterScaleUp"], one["never"]) for one in parts if one["requests"]["devices"]]


def test_fit_when_pods_run_then_their_room_is_taken_and_a_rendered_pod_gets_its_device(
    made: Gpukube, spec: Path, cluster: Cluster, tmp_path: Path
) -> None:
    rendered = made("workload", "render", "pod", "-f", spec, "--pool", "fixed", "--", "sleep", "1000000")
    manifest = yaml.safe_load(rendered.out)
    assert states(live(made, spec, write(tmp_path, manifest))) == [(1, 0, 0)]
    name = create(cluster, manifest)
    wait_for(lambda: phase(cluster, name) == "Running")
    placed = cluster.client.get(Pod, name, namespace="default").spec
    assert placed is not None
    assert placed.nodeName in {node.metadata.name for node in cluster.nodes("fixed") if node.metadata}
    second = {**manifest, "metadata": {**manifest["metadata"], "name": "second"}}
    found = live(made, spec, write(tmp_path, second))
    assert (found.code, states(found)) == (1, [(0, 0, 1)])
    (reason, *_) = found.json()["workloads"][0]["reasons"]
    assert reason == {"pool": "train-aks/fixed", "why": ["its node is full, its count is 1"]}
    assert states(live(made, spec, write(tmp_path, manifest))) == [(1, 0, 0)], "its own pod is not counted twice"


def test_fit_when_a_ray_group_grows_then_the_autoscaler_does_what_it_foretold(
    made: Gpukube, spec: Path, cluster: Cluster, tmp_path: Path
) -> None:
    """A worker group goes from none to two and back; its pods are made as KubeRay makes them."""
    ray = yaml.safe_load(made("workload", "render", "raycluster", "-f", spec, "--pool", "grows").out)
    (group,) = ray["spec"]["workerGroupSpecs"]
    assert (group["minReplicas"], group["maxReplicas"]) == (0, 2)
    file = write(tmp_path, ray)
    assert states(live(made, spec, file)) == [(0, 2, 0)]
    assert not cluster.nodes("grows")
    marks = {
        "ray.io/cluster": ray["metadata"]["name"],
        "ray.io/group": group["groupName"],
        "ray.io/node-type": "worker",
    }
    workers = [f"worker-{number}" for number in range(2)]
    for name in workers:
        template = group["template"]
        labels = {**template.get("metadata", {}).get("labels", {}), **marks}
        create(cluster, {"metadata": {"name": name, "labels": labels}, "spec": template["spec"]})

    def told() -> list[object]:
        return [cluster.client.get(Pod, name, namespace="default").to_dict().get("status") for name in workers]

    wait_for(lambda: [phase(cluster, name) for name in workers] == ["Running"] * 2, told)
    assert len(cluster.nodes("grows")) == 2
    assert states(live(made, spec, file)) == [(2, 0, 0)]
    daemon.configure(made.info, speed=500.0)  # at a higher speed the emulated autoscaler keeps idle nodes
    for name in workers:
        cluster.client.delete(Pod, name, namespace="default", grace_period=0)
    wait_for(lambda: not cluster.nodes("grows"))
    assert states(live(made, spec, file)) == [(0, 2, 0)]


def test_fit_when_it_never_fits_then_lint_and_the_scheduler_say_why(
    made: Gpukube, spec: Path, cluster: Cluster, tmp_path: Path
) -> None:
    slices = pod(
        "slices", resource="nvidia.com/mig-1g.5gb", tolerations=[{"operator": "Exists"}], nodeSelector={POOL: "fixed"}
    )
    file = write(tmp_path, slices)
    found = live(made, spec, file)
    assert (found.code, states(found)) == (1, [(0, 0, 1)])
    (part,) = found.json()["workloads"]
    assert part["reasons"][0]["why"] == ["the node has no nvidia.com/mig-1g.5gb"]
    assert part["edit"] == {"where": "Pod/slices", "text": "request nvidia.com/gpu instead of nvidia.com/mig-1g.5gb"}
    linted = made("workload", "lint", file, "-f", spec)
    assert linted.code == 4
    assert "nvidia.com/mig-1g.5gb" in linted.err
    create(cluster, slices)

    def said() -> str:
        status = cluster.client.get(Pod, "slices", namespace="default").status
        told = [
            item.message or "" for item in (status.conditions if status else None) or [] if item.type == "PodScheduled"
        ]
        return told[0] if told else ""

    message = wait_for(said)
    assert "Insufficient nvidia.com/mig-1g.5gb" in message
    assert phase(cluster, "slices") == "Pending"


def test_fit_when_a_pool_is_not_made_yet_then_it_takes_nothing(gpukube: Gpukube, spec: Path, tmp_path: Path) -> None:
    found = live(gpukube, spec, write(tmp_path, pod("one")))
    assert found.code == 1
    (part,) = found.json()["workloads"]
    assert part["reasons"] == [
        {"pool": f"train-aks/{name}", "why": ["the pool does not exist yet: `gpukube pool create` creates it"]}
        for name in ("fixed", "grows")
    ]


def test_fit_when_the_pods_may_not_be_read_then_the_exit_code_of_that_and_no_answer(
    gpukube: Gpukube, spec: Path, tmp_path: Path
) -> None:
    words = ("--service", "kube", "--method", "get", "--path", "api/v1/pods", "--times", "0", "--status", "403")
    assert gpukube("sandbox", "fault", "add", "status", *words, sandbox=False).code == 0
    found = live(gpukube, spec, write(tmp_path, pod("one")))
    assert (found.code, found.out) == (5, "")
    assert "train-aks" in found.err
    assert "listing pods" in found.err
