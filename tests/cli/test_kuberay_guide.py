"""KubeRay's guide to GPUs, followed to its end: docs/workloads.md, with the operator and an autoscaled pool.

Ray itself does not run: the test patches the group as Ray's autoscaler would for two actors, and when they are gone.
"""

from __future__ import annotations

import os
import shlex
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from lightkube.codecs import load_all_yaml
from lightkube.core.exceptions import ApiError
from lightkube.generic_resource import create_namespaced_resource
from lightkube.resources.apiextensions_v1 import CustomResourceDefinition
from lightkube.resources.core_v1 import Node, Pod
from lightkube.types import PatchType

from gpukube.cluster.helm.chart import ChartSource
from gpukube.cluster.helm.embedded import HelmSdk
from gpukube.cluster.helm.engine import HelmJob
from gpukube_sandbox import daemon
from gpukube_sandbox.kube.autoscaler.scaler import FASTEST
from gpukube_sandbox.kube.kuberay.definitions import definitions
from sandbox_tests.waiting import wait_for
from tests.cli.harness import EXAMPLES, Gpukube
from tests.cli.test_same_pod import CONTEXTS, cluster_of
from tests.docs.test_workloads_page import STEPS

if TYPE_CHECKING:
    from pathlib import Path

    from lightkube import Client

    from gpukube_sandbox.daemon import SandboxInfo

RayCluster = create_namespaced_resource("ray.io", "v1", "RayCluster", "rayclusters")
RayService = create_namespaced_resource("ray.io", "v1", "RayService", "rayservices")
NAME, GPU = "stable-diffusion", "nvidia.com/gpu"


def install_operator(info: SandboxInfo, client: Client, tmp_path: Path) -> None:
    """Do as `helm install kuberay-operator --repo $GPUKUBE_SANDBOX_CHARTS` does, by a client that is not gpukube."""
    helm = HelmSdk(os.environ)
    chart = helm.pull(ChartSource(info.charts_url, "1.7.0", "kuberay-operator"), tmp_path)
    nowhere, name = tmp_path / "no-kubeconfig", "kuberay-operator"
    tried = helm.upgrade(HelmJob(nowhere, name, "default", chart, {}, installed=False, dry_run=True, offline=True))
    for definition in definitions():
        made = CustomResourceDefinition.from_dict(definition)
        assert isinstance(made, CustomResourceDefinition)
        client.create(made)
    for part in load_all_yaml(tried.manifest):
        client.create(part)


def rendered(gpukube: Gpukube, cluster: str) -> dict[str, Any]:
    """Render the service as the page does, for another cluster."""
    (line,) = [line for line, _ in STEPS if " render rayservice " in line]
    words = [cluster if word == "train-eks" else word for word in shlex.split(line)[1:]]
    words[words.index("-f") + 1] = str(EXAMPLES / "kuberay.yaml")
    words[words.index("--runtime-env") + 1] = str(EXAMPLES / "ray" / "stable-diffusion-env.yaml")
    shown = gpukube(*words, sandbox=False)
    assert shown.code == 0, shown.err
    document: dict[str, Any] = yaml.safe_load(shown.out)
    return document


def scale(client: Client, replicas: int, leaving: list[str]) -> None:
    """Patch the group as Ray's autoscaler does."""
    name = client.get(RayService, NAME, namespace="default")["status"]["activeServiceStatus"]["rayClusterName"]
    live = client.get(RayCluster, name, namespace="default")
    groups = deepcopy(live["spec"]["workerGroupSpecs"])
    groups[0] |= {"replicas": replicas, "scaleStrategy": {"workersToDelete": leaving}}
    change = {"spec": {"workerGroupSpecs": groups}}
    client.patch(RayCluster, name, change, namespace="default", patch_type=PatchType.MERGE)


def running(client: Client) -> list[tuple[str, str]]:
    """Name the workers that run, and their nodes."""
    pods = client.list(Pod, namespace="default", labels={"ray.io/node-type": "worker"})
    return [
        (pod.metadata.name or "", pod.spec.nodeName or "")
        for pod in pods
        if pod.metadata and pod.spec and pod.status and pod.status.phase == "Running"
    ]


def gpu_nodes(client: Client) -> set[str]:
    """Name the nodes of the pool."""
    return {node.metadata.name or "" for node in client.list(Node, labels={"gpukube.io/pool": "ray"}) if node.metadata}


@pytest.mark.turns(2)
@pytest.mark.parametrize("cluster", ["train-aks", "train-gke"])
def test_guide_when_followed_then_the_service_runs_and_two_gpu_nodes_come_and_go(
    gpukube: Gpukube, cluster: str, tmp_path: Path
) -> None:
    info = gpukube.info
    made = gpukube("pool", "create", "-f", EXAMPLES / "kuberay.yaml", "--cluster", cluster)
    assert made.code == 0, made.err
    with cluster_of(info, CONTEXTS[cluster]) as client:
        install_operator(info, client, tmp_path)
        client.create(RayService(**rendered(gpukube, cluster)), namespace="default")

        def status() -> dict[str, Any]:
            found: dict[str, Any] = client.get(RayService, NAME, namespace="default").get("status") or {}
            return found

        wait_for(lambda: status().get("serviceStatus") == "Running", status)
        assert (status()["numServeEndpoints"], running(client), gpu_nodes(client)) == (1, [], set())

        scale(client, 2, [])
        wait_for(lambda: len(running(client)) == 2, lambda: (running(client), gpu_nodes(client)))
        workers = running(client)
        assert {node for _, node in workers} == gpu_nodes(client), "one GPU each, so a node each"
        assert status()["numServeEndpoints"] == 3

        daemon.configure(info, speed=FASTEST - 1)  # faster than that idle nodes stay
        scale(client, 0, [name for name, _ in workers])
        wait_for(lambda: not running(client) and not gpu_nodes(client), lambda: (running(client), gpu_nodes(client)))
        assert status()["serviceStatus"] == "Running"

        client.delete(RayService, NAME, namespace="default")
        wait_for(lambda: not list(client.list(Pod, namespace="default", labels={"ray.io/node-type": "head"})))
        with pytest.raises(ApiError, match="not found"):
            client.get(RayService, NAME, namespace="default")
