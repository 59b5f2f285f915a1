"""One pod manifest, unchanged, runs on the same pool of all three clouds."""

from __future__ import annotations

import shlex
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from httpx2 import Timeout
from lightkube import Client, KubeConfig
from lightkube.resources.core_v1 import Node, Pod

from gpukube.engine.plan.prepare import prepare
from gpukube.provider import load_provider
from gpukube.spec.loading.load import load_specs
from gpukube.spec.source.files import Source
from gpukube.workload.lint.check import lint
from gpukube.workload.offers import make_offers
from gpukube.workload.quantity import parse_quantity
from gpukube_sandbox.environment import kubeconfig
from sandbox_tests.waiting import PATIENCE_S, wait_for
from tests.cli.harness import EXAMPLES, Gpukube

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube_sandbox.daemon import SandboxInfo

SPEC = EXAMPLES / "three-clouds.yaml"
MANIFEST = EXAMPLES / "pods" / "one-slice.yaml"
CONTEXTS = {
    "train-aks": "train",
    "train-eks": "arn:aws:eks:us-east-1:111122223333:cluster/train",
    "train-gke": "gke_ml-prod_us-central1_train",
}
LINTED: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "misspelt": (
        {"containers": [{"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/mig1g.5gb": 1}}}]},
        "gpu-name-unknown",
        "nvidia.com/mig1g.5gb is a name that no device plugin advertises",
        "Insufficient nvidia.com/mig1g.5gb",
    ),
    "labelled": (
        {
            "nodeSelector": {"nvidia.com/gpu": "true"},
            "containers": [{"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": 1}}}],
        },
        "selector-resource-name",
        "nvidia.com/gpu is required as a label of the node",
        "didn't match Pod's node affinity/selector",
    ),
}
"""Pods that lint finds wrong: their spec, the rule, what it says, and what the scheduler says."""


@pytest.fixture
def created(gpukube: Gpukube) -> Gpukube:
    """Make the pools of three-clouds."""
    done = gpukube("pool", "create", "-f", SPEC)
    assert done.code == 0, done.err
    return gpukube


@contextmanager
def cluster_of(info: SandboxInfo, context: str) -> Iterator[Client]:
    """Connect to one of the emulated clusters by its context."""
    document = kubeconfig(info)["kubeconfig"]
    assert isinstance(document, dict)
    config = KubeConfig.from_dict({**document, "current-context": context})
    client = Client(config, timeout=Timeout(PATIENCE_S), trust_env=False)
    try:
        yield client
    finally:
        client.close()


@pytest.mark.turns(3)
@pytest.mark.parametrize("cluster", CONTEXTS)
def test_pod_when_the_manifest_is_the_same_then_every_cloud_places_it_on_the_pool(
    created: Gpukube, cluster: str
) -> None:
    """So it does with the first pod of each pool, by the command that the creation ends with."""
    pods = {"a100slices": yaml.safe_load(MANIFEST.read_text()), **first_pods(created, cluster)}
    assert [*pods] == ["a100slices", "first-a100slices", "first-t4slices"]
    with cluster_of(created.info, CONTEXTS[cluster]) as client:
        for name, body in pods.items():
            pod = Pod.from_dict(body)
            assert isinstance(pod, Pod)
            client.create(pod, namespace="default")
            assert_runs(client, body["metadata"]["name"], name.removeprefix("first-"))
        assert_as_told(client, cluster)
        for name, (spec, rule, seen, event) in LINTED.items():
            assert_waits_as_linted(client, name, spec, (rule, seen, event))


def first_pods(created: Gpukube, cluster: str) -> dict[str, dict[str, Any]]:
    """Run the commands for one cluster that the creation told."""
    found = {}
    for line in created.log[0].err.splitlines():
        words, _, rest = line.removeprefix("first pod: gpukube ").partition(" | ")
        if line.startswith("first pod: ") and cluster in words:
            assert rest == "kubectl apply -f -"
            shown = created(*shlex.split(words), sandbox=False)
            assert shown.code == 0, shown.err
            body = yaml.safe_load(shown.out)
            found[f"first-{body['metadata']['name']}"] = body
    return found


def assert_runs(client: Client, name: str, pool: str) -> None:
    def runs() -> bool:
        status = client.get(Pod, name, namespace="default").status
        return status is not None and status.phase in ("Running", "Succeeded")

    wait_for(runs)
    placed = client.get(Pod, name, namespace="default").spec
    assert placed is not None
    nodes = {node.metadata.name: node for node in client.list(Node, labels={"gpukube.io/pool": pool}) if node.metadata}
    assert placed.nodeName in nodes


def assert_as_told(client: Client, cluster: str) -> None:
    """Compare nodes, which the emulated clouds make by words of their own, with what is told of them beforehand."""
    nodes = {(node.metadata.labels or {}).get("gpukube.io/pool"): node for node in client.list(Node) if node.metadata}
    for offer in make_offers(prepare(load_specs([str(SPEC)], environ={})).desired[cluster], load_provider):
        node, told = nodes[offer.desired.target.pool], offer.real
        assert node.metadata is not None
        assert told.labels.items() - (node.metadata.labels or {}).items() == set(), offer.name
        free = (node.status and node.status.allocatable) or {}
        assert (told.cpu or 0) <= parse_quantity(free["cpu"]) * 1000
        assert (told.memory or 0) <= parse_quantity(free["memory"])
        assert (told.pods or 0) <= int(free["pods"])
        assert told.devices == {name: int(free[name]) for name in told.devices}


def assert_waits_as_linted(client: Client, name: str, spec: dict[str, Any], expected: tuple[str, str, str]) -> None:
    """Check that the scheduler refuses a pod for what lint finds in it."""
    rule, seen, event = expected
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    found = lint([Source("pod.yaml", yaml.safe_dump(body))]).findings
    assert (rule, seen) in {(one.code, one.seen) for one in found}
    pod = Pod.from_dict(body)
    assert isinstance(pod, Pod)
    client.create(pod, namespace="default")

    def told() -> bool:
        status = client.get(Pod, name, namespace="default").status
        conditions = (status and status.conditions) or []
        return any(event in (one.message or "") for one in conditions if one.type == "PodScheduled")

    wait_for(told)
    status = client.get(Pod, name, namespace="default").status
    assert status is not None
    assert status.phase == "Pending"
