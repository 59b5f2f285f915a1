"""The guides' walk-throughs, from `gpukube pool create` to pods that run: at the highest speed of autoscalers."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import Event, Node, Pod

from gpukube_sandbox.environment import env, kubeconfig
from sandbox_tests.kube.clients import run_client
from sandbox_tests.waiting import wait_for
from tests.cli.harness import EXAMPLES, Cluster, Gpukube

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SLICE = "nvidia.com/mig-1g.5gb"
PLACES = {
    "aks": "subscription: 11111111-2222-3333-4444-555555555555, resourceGroup: ml",
    "eks": 'account: "111122223333", region: us-east-1',
    "gke": "project: ml-prod, location: us-central1-a",
}
SPEC = """
apiVersion: gpukube.io/v1alpha1
kind: GPUNodePools
metadata: {{name: walk}}
clusters:
  here: {{provider: {cloud}, {place}, name: train}}
pools:
  - name: t4
    clusters: [here]
    gpu: {{model: T4, count: 1}}
    nodes: {{autoscaling: {{min: 0, max: 5}}}}
"""


@pytest.fixture
def cluster(gpukube: Gpukube) -> Iterator[Callable[[], Cluster]]:
    """Look into the cluster `train`, once gpukube has met it."""
    opened: list[Cluster] = []

    def look() -> Cluster:
        opened.append(Cluster(gpukube.info))
        return opened[-1]

    yield look
    for each in opened:
        each.close()


def working(name: str, resource: str) -> Pod:
    """Make a pod that works on a device until it is deleted."""
    limits = {"limits": {resource: "1"}}
    container = {"name": "main", "image": "cuda", "command": ["sleep", "infinity"], "resources": limits}
    # A pod that asks for nvidia.com/gpu gets this from the API server; one that asks for a slice does not.
    tolerated = [{"key": "nvidia.com/gpu", "operator": "Exists"}] if resource == SLICE else []
    spec = {"containers": [container], "tolerations": tolerated}
    pod = Pod.from_dict({"metadata": {"name": name, "namespace": "default"}, "spec": spec})
    assert isinstance(pod, Pod)
    return pod


def autoscaler() -> Deployment:
    """The Cluster Autoscaler as its guide for EKS installs it: there, no pool grows without it."""
    found = "asg:tag=k8s.io/cluster-autoscaler/enabled,k8s.io/cluster-autoscaler/train"
    container = {
        "name": "cluster-autoscaler",
        "image": "registry.k8s.io/autoscaling/cluster-autoscaler:v1.34.0",
        "command": ["./cluster-autoscaler", "--cloud-provider=aws", f"--node-group-auto-discovery={found}"],
    }
    marks = {"app": "cluster-autoscaler"}
    template = {"metadata": {"labels": marks}, "spec": {"containers": [container]}}
    place = {"name": "cluster-autoscaler", "namespace": "kube-system"}
    made = Deployment.from_dict({"metadata": place, "spec": {"selector": {"matchLabels": marks}, "template": template}})
    assert isinstance(made, Deployment)
    return made


@pytest.mark.turns(3)
@pytest.mark.parametrize("cloud", PLACES)
def test_pool_when_a_pod_needs_a_node_then_it_grows_from_zero_and_shrinks_again(
    gpukube: Gpukube, cluster: Callable[[], Cluster], tmp_path: Path, cloud: str
) -> None:
    spec = tmp_path / "walk.yaml"
    spec.write_text(SPEC.format(cloud=cloud, place=PLACES[cloud]))
    made = gpukube("pool", "create", "-f", spec)
    assert made.code == 0, made.out + made.err
    inside = cluster()
    if cloud == "eks":
        inside.client.create(autoscaler())
    before = names(inside)

    inside.client.create(working("x", "nvidia.com/gpu"))
    wait_for(lambda: phase(inside, "x") == "Running", lambda: told(inside))
    (node,) = names(inside) - before
    reasons = told(inside)
    order = ["FailedScheduling", "TriggeredScaleUp", "Scheduled", "Started"]
    assert [reason for reason in reasons if reason in order] == order, reasons
    assert "Insufficient nvidia.com/gpu" in reasons["FailedScheduling"]
    assert "0->1 (max: 5)" in reasons["TriggeredScaleUp"]
    assert reasons["Scheduled"] == f"Successfully assigned default/x to {node}"

    inside.client.delete(Pod, "x", namespace="default")
    wait_for(lambda: names(inside) == before, lambda: names(inside))
    diff = gpukube("pool", "plan", "diff", "-f", spec)
    assert diff.code == 0, diff.out + diff.err


def names(inside: Cluster) -> set[str]:
    return {str(node.metadata.name) for node in inside.client.list(Node) if node.metadata}


def phase(inside: Cluster, name: str) -> str:
    status = inside.client.get(Pod, name, namespace="default").status
    return str(status.phase) if status else ""


def told(inside: Cluster) -> dict[str, str]:
    """Read the pod's events, oldest first, as `kubectl describe pod` shows them."""
    found = [each for each in inside.client.list(Event, namespace="default") if each.involvedObject.kind == "Pod"]
    found.sort(key=lambda each: str(each.firstTimestamp or each.eventTime))
    first: dict[str, str] = {}
    for each in found:
        first.setdefault(str(each.reason), str(each.message))
    return first


@pytest.fixture
def two_slices(gpukube: Gpukube, cluster: Callable[[], Cluster]) -> Gpukube:
    """Bring the pool of the AKS guide up, and the guide's two pods with a slice each."""
    made = gpukube("pool", "create", "-f", EXAMPLES / "aks-mig-mixed.yaml")
    assert made.code == 0, made.out + made.err
    inside = cluster()
    for name in ("one", "two"):
        inside.client.create(working(name, SLICE))
    wait_for(lambda: {phase(inside, "one"), phase(inside, "two")} == {"Running"}, lambda: told(inside))
    return gpukube


def _is_own_slice(shown: list[str]) -> bool:
    """Whether each pod sees one device of its own."""
    devices = [[line.strip() for line in text.splitlines() if "MIG 1g.5gb" in line] for text in shown]
    return [len(each) for each in devices] == [1, 1] and devices[0] != devices[1]


@pytest.mark.clients("kubectl")
def test_guide_of_aks_when_kubectl_runs_nvidia_smi_then_each_pod_shows_its_slice(two_slices: Gpukube) -> None:
    given = {**os.environ, **env(two_slices.info)}
    done = [run_client(["kubectl", "exec", name, "--", "nvidia-smi", "-L"], given) for name in ("one", "two")]
    assert [each.returncode for each in done] == [0, 0], [each.stderr for each in done]
    assert _is_own_slice([each.stdout for each in done])


def test_guide_of_aks_when_python_runs_nvidia_smi_then_each_pod_shows_its_slice(
    two_slices: Gpukube, tmp_path: Path
) -> None:
    reason = "needs kubernetes (pip install kubernetes)"
    client, config, stream = (
        pytest.importorskip(f"kubernetes.{part}", reason=reason) for part in ("client", "config", "stream")
    )
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(kubeconfig(two_slices.info)["kubeconfig"]))
    config.load_kube_config(str(path))
    runs = client.CoreV1Api().connect_get_namespaced_pod_exec
    asked = {"command": ["nvidia-smi", "-L"], "stdin": False, "stdout": True, "stderr": True, "tty": False}
    assert _is_own_slice([stream.stream(runs, name, "default", **asked) for name in ("one", "two")])
