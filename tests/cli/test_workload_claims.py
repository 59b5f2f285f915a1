"""Rendered claims on an emulated pool of the DRA driver: they run there, and `fit --live` foretells it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml
from lightkube.generic_resource import create_namespaced_resource
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import Pod

from sandbox_tests.waiting import wait_for
from tests.cli.harness import EXAMPLES, Cluster, Gpukube

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.harness import Result

SPEC = EXAMPLES / "aks-dra.yaml"
TEMPLATE = create_namespaced_resource("resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates")
KINDS: dict[str, Any] = {"ResourceClaimTemplate": TEMPLATE, "Pod": Pod, "Deployment": Deployment}


def render(gpukube: Gpukube, kind: str, *words: str) -> str:
    made = gpukube("workload", "render", kind, "-f", SPEC, *words, "--", "sleep", "1000000")
    assert made.code == 0, made.err
    return str(made.out)


def apply(cluster: Cluster, text: str) -> None:
    for document in yaml.safe_load_all(text):
        document["metadata"]["namespace"] = "default"
        cluster.client.create(KINDS[document["kind"]].from_dict(document), namespace="default")


def phases(cluster: Cluster) -> list[str]:
    listed = cluster.client.list(Pod, namespace="default")
    return [(pod.status.phase if pod.status else "") or "" for pod in listed]


def fit(gpukube: Gpukube, tmp_path: Path, *texts: str) -> Result:
    file = tmp_path / "work.yaml"
    file.write_text("---\n".join(texts))
    return gpukube("workload", "fit", file, "-f", SPEC, "--live", "-o", "json")


def test_rendered_claims_when_applied_then_they_run_and_fit_counts_their_devices(
    gpukube: Gpukube, claims: Cluster, tmp_path: Path
) -> None:
    """The pool has two nodes with one GPU each."""
    one = render(gpukube, "pod", "--name", "one")
    before = fit(gpukube, tmp_path, one)
    assert (before.code, before.json()["nodes"][0]["left"]["devices"]["gpu.nvidia.com"]) == (0, 0)
    apply(claims, one)
    wait_for(lambda: phases(claims) == ["Running"])
    again = fit(gpukube, tmp_path, one)
    assert (again.code, again.json()["workloads"][0]["now"]) == (0, 1), "its own claim is not counted twice"
    two = render(gpukube, "deployment", "--name", "two", "--replicas", "2")
    found = fit(gpukube, tmp_path, two)
    (part,) = found.json()["workloads"]
    assert (found.code, part["now"], part["never"]) == (1, 1, 1)
    apply(claims, two)
    wait_for(lambda: phases(claims).count("Running") == 2)
    assert sorted(phases(claims)) == ["Pending", "Running", "Running"]
    held = fit(gpukube, tmp_path, render(gpukube, "pod", "--name", "three"))
    assert held.json()["workloads"][0]["state"] == "never"


def test_fit_when_nodes_show_their_devices_then_selectors_of_products_are_known(
    gpukube: Gpukube, claims: Cluster, tmp_path: Path
) -> None:
    assert claims.nodes("h100")
    product = "device.attributes['gpu.nvidia.com'].productName"
    for expression, state in ((f"{product} == 'Tesla T4'", "never"), (f"{product}.contains('H100')", "now")):
        chosen = f'count: 1\n          selectors: [{{cel: {{expression: "{expression}"}}}}]'
        text = render(gpukube, "pod", "--name", "one").replace("count: 1", chosen)
        assert fit(gpukube, tmp_path, text).json()["workloads"][0]["state"] == state


def test_example_when_checked_then_right_and_on_its_pool(gpukube: Gpukube) -> None:
    file, spec = EXAMPLES / "pods" / "one-claim.yaml", EXAMPLES / "eks-dra.yaml"
    assert gpukube("workload", "lint", file, "-f", spec, "--strict").code == 0
    found = gpukube("workload", "fit", file, "-f", spec, "-o", "json")
    assert [node["pool"] for node in found.json()["nodes"]] == ["l4"]
