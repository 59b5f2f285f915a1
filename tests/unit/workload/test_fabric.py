"""Pods on pools with a fast network: what is rendered for them, and what fit and lint know of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from gpukube.core.jsontree import at, items, text, texts, tree
from gpukube.core.values import Nodes
from gpukube.errors import SpecError
from gpukube.provider import load_provider
from gpukube.spec.source.files import Source
from gpukube.workload.fit.nodes import Node
from gpukube.workload.fit.pods import read_pod
from gpukube.workload.fit.predicates import may_go, why_not
from gpukube.workload.lint.check import lint
from gpukube.workload.offers import make_offers
from gpukube.workload.render.intent import Intent
from gpukube.workload.render.manifests import Rendered, render
from gpukube_eks.pool.fields import RESOURCE_TAG
from tests.unit.cluster.builders import desire
from tests.unit.cluster.fabrics import EFA, on_aks, on_eks, on_gke

if TYPE_CHECKING:
    from gpukube.core.jsontree import Tree
    from gpukube.core.values import Desired
    from gpukube.workload.offers import PoolOffer

FOUR = Nodes(4, 4, 4, autoscaled=False)
MIB = 1 << 20


def offer_of(pool: Desired) -> PoolOffer:
    return make_offers([pool], load_provider)[0]


EKS, AKS, GKE = (offer_of(make(nodes=FOUR)) for make in (on_eks, on_aks, on_gke))
PLAIN = offer_of(desire(machine="Standard_ND96isr_H100_v5", nodes=FOUR))


def made(offer: PoolOffer, kind: str = "job", **options: Any) -> tuple[Rendered, Tree]:  # noqa: ANN401 - any of Intent's
    found = render(Intent(kind=kind, **options), offer)
    document = found.documents[-1]
    spec = next(
        spec
        for path in (("spec", "template", "spec"), ("spec", "workerGroupSpecs", 0, "template", "spec"), ("spec",))
        if (spec := tree(document, *path)).get("containers")
    )
    return found, spec


def limits(spec: Tree) -> dict[str, str]:
    return texts(items(spec, "containers")[0], "resources", "limits")


def requests(spec: Tree) -> dict[str, str]:
    return texts(items(spec, "containers")[0], "resources", "requests")


def test_make_offers_when_a_pool_has_efa_then_its_devices_and_huge_pages_are_offered() -> None:
    assert EKS.real.devices == {"nvidia.com/gpu": 8, EFA: 32}
    assert EKS.real.others == {"hugepages-2Mi": 10256 * MIB}
    room = load_provider("eks").nodes.room(EKS.desired.target)
    assert room is not None
    assert EKS.real.memory == room.memory - 10256 * MIB  # huge pages are not memory for pods


def test_make_offers_when_the_spec_has_huge_pages_then_they_replace_those_of_the_image() -> None:
    pool = offer_of(on_eks(hugepages={"2Mi": 100, "1Gi": 2}))
    assert pool.real.others == {"hugepages-2Mi": 200 * MIB, "hugepages-1Gi": 2048 * MIB}


RENDERED: dict[str, tuple[int, int | None, str, str]] = {
    "a whole node": (8, 2, "32", "5120Mi"),
    "half a node": (4, 2, "16", "2560Mi"),
    "one GPU of a job of several pods": (1, 2, "4", "640Mi"),
    "several GPUs of one pod": (2, None, "8", "1280Mi"),
}


@pytest.mark.parametrize("case", RENDERED)
def test_render_when_pods_communicate_then_they_request_their_share_of_efa(case: str) -> None:
    gpus, replicas, interfaces, pages = RENDERED[case]
    found, spec = made(EKS, gpus=gpus, replicas=replicas)
    assert (limits(spec)[EFA], limits(spec)["hugepages-2Mi"]) == (interfaces, pages)
    assert (requests(spec)[EFA], requests(spec)["hugepages-2Mi"]) == (interfaces, pages)  # they cannot differ
    assert "memory" in requests(spec)  # without cpu or memory the API server rejects huge pages
    share = "all of a node" if gpus == 8 else "its share of the node's 32"
    assert f"vpc.amazonaws.com/efa: {interfaces}  # EFA: {share}" in found.text
    assert bool(items(spec, "volumes")) is (gpus > 1)


@pytest.mark.parametrize(("kind", "gpus", "replicas"), [("pod", 1, None), ("deployment", 1, 3), ("job", 1, 1)])
def test_render_when_pods_communicate_with_no_other_then_no_network(kind: str, gpus: int, replicas: int | None) -> None:
    _, spec = made(EKS, kind, gpus=gpus, replicas=replicas)
    assert limits(spec).keys() == {"memory", "nvidia.com/gpu"}


def test_render_when_the_pool_has_no_fast_network_then_none_is_requested() -> None:
    _, spec = made(PLAIN, gpus=8, replicas=2)
    assert limits(spec).keys() == {"memory", "nvidia.com/gpu"}
    assert tree(items(spec, "containers")[0], "securityContext") == {}


def test_render_when_there_are_fewer_interfaces_than_gpus_then_they_limit_the_pods_of_a_node() -> None:
    pool = offer_of(on_eks("g5.48xlarge", nodes=FOUR))
    found, spec = made(pool, gpus=2, replicas=4)
    assert limits(spec)[EFA] == "1"
    assert "A node has room for 1 such pod, the pool for 4." in found.text


@pytest.mark.parametrize("kind", ["job", "raycluster"])
def test_render_when_the_network_is_infiniband_then_memory_is_locked(kind: str) -> None:
    found, spec = made(AKS, kind, gpus=8, replicas=2)
    assert limits(spec)["rdma/ib"] == "8"
    assert "hugepages-2Mi" not in limits(spec)
    assert at(items(spec, "containers")[0], "securityContext", "capabilities", "add") == ["IPC_LOCK"]
    assert "with the Network Operator's shared plugin, write rdma/shared_ib: 1" in found.text
    assert "InfiniBand needs memory that is never swapped out" in found.text


def test_render_when_only_the_cluster_knows_the_names_then_a_note_says_what_to_add() -> None:
    found, spec = made(GKE, gpus=8, replicas=2)
    assert limits(spec).keys() == {"memory", "nvidia.com/gpu"}
    assert any("networking.gke.io/interfaces" in note for note in found.notes)


def test_render_when_a_queue_covers_the_pool_then_its_network_too() -> None:
    found = render(Intent(kind="kueue"), EKS)
    queue = next(one for one in found.documents if one["kind"] == "ClusterQueue")
    resources = items(queue, "spec", "resourceGroups", 0, "flavors", 0, "resources")
    quotas = {text(item, "name"): text(item, "nominalQuota") for item in resources}
    assert quotas[EFA] == "128"
    assert quotas["hugepages-2Mi"] == "41024Mi"


FITS: dict[str, tuple[PoolOffer, dict[str, object], str]] = {
    "EFA that a node has": (EKS, {"nvidia.com/gpu": 8, EFA: 32}, ""),
    "more EFA than a node has": (EKS, {EFA: 33}, "vpc.amazonaws.com/efa: 33 requested, a node has 32"),
    "EFA on a pool without it": (PLAIN, {EFA: 4}, "the node has no vpc.amazonaws.com/efa"),
    "huge pages of the image": (EKS, {"hugepages-2Mi": "5120Mi"}, ""),
    "huge pages on a pool without any": (PLAIN, {"hugepages-2Mi": "2Mi"}, "the node has no hugepages-2Mi"),
    "slots of the shared plugin": (AKS, {"rdma/shared_ib": 1}, ""),
    "a name that only the cluster knows": (AKS, {"rdma/hca_shared_devices_a": 1}, ""),
    "a network of the cluster": (GKE, {"networking.gke.io.networks/gpu-nic-0": 1}, ""),
    "a network on a pool without any": (
        PLAIN,
        {"networking.gke.io.networks/gpu-nic-0": 1},
        "the node has no networking.gke.io.networks/gpu-nic-0",
    ),
}


@pytest.mark.parametrize("case", FITS)
def test_why_not_when_a_pod_requests_the_network_then_the_pools_nodes_decide(case: str) -> None:
    offer, amounts, reason = FITS[case]
    requested = {"cpu": "1", "memory": "1Gi", **amounts}
    pod = read_pod({}, {"containers": [{"name": "main", "resources": {"limits": requested}}]})
    shape = replace(offer.real, taints=())
    node = Node(name="n", cluster="c", shape=shape, labels={}, tolerates_resources=True, offer=offer)
    found = why_not(pod, node)
    assert (found.text if found else "") == reason
    assert may_go(pod, node) is (not reason)


ZERO = Nodes(0, 0, 4, autoscaled=True)


def test_render_when_the_autoscaler_of_an_empty_pool_does_not_know_efa_then_refused_with_the_tag() -> None:
    pool = offer_of(on_eks(nodes=ZERO))
    with pytest.raises(SpecError) as caught:
        made(pool, gpus=8, replicas=2)
    (found,) = caught.value.diagnostics
    assert "its autoscaler expects 0 vpc.amazonaws.com/efa of a node, but a pod requests 32" in found.seen
    assert f'"{RESOURCE_TAG}{EFA}": "32"' in found.fix
    assert made(pool, gpus=1)[1]  # which communicates with no other pod


def test_expected_when_the_group_has_the_tags_then_an_empty_pool_starts_nodes() -> None:
    tags = {f"{RESOURCE_TAG}{EFA}": "32", f"{RESOURCE_TAG}hugepages-2Mi": str(10256 * MIB)}
    pool = on_eks(nodes=ZERO)
    desired = load_provider("eks").desired(replace(pool.target, tags=tags), pool.ownership, pool.promise)
    offer = offer_of(desired)
    assert offer.expected.devices == offer.real.devices
    assert offer.expected.others == offer.real.others
    _, spec = made(offer, gpus=8, replicas=2)
    assert limits(spec)[EFA] == "32"


def hints(offer: PoolOffer, amounts: str, pods: int = 2, extra: str = "") -> list[str]:
    """Lint a Job of several pods, and return the codes about the network."""
    text = f"""\
apiVersion: batch/v1
kind: Job
metadata: {{name: train}}
spec:
  parallelism: {pods}
  completions: {pods}
  activeDeadlineSeconds: 60
  template:
    spec:
      restartPolicy: Never
      tolerations: [{{operator: Exists}}]
      {extra or "hostIPC: true"}
      containers:
        - name: main
          image: busybox:1.37
          resources: {{limits: {{cpu: 8, memory: 64Gi, {amounts}}}}}
"""
    found = lint([Source("job.yaml", text)], offers=(offer,)).findings
    return [finding.code for finding in found if finding.code.startswith(("network-", "hugepages-", "shm-"))]


HINTS: dict[str, tuple[PoolOffer, str, int, str, list[str]]] = {
    "whole nodes without EFA": (EKS, "nvidia.com/gpu: 8", 2, "", ["network-unrequested"]),
    "whole nodes with EFA": (EKS, f"nvidia.com/gpu: 8, {EFA}: 32", 2, "", []),
    "one pod": (EKS, "nvidia.com/gpu: 8", 1, "", []),
    "parts of nodes": (EKS, "nvidia.com/gpu: 1", 2, "", []),
    "the node's own network": (EKS, "nvidia.com/gpu: 8", 2, "hostNetwork: true", ["shm-missing"]),
    "a pool without a fast network": (PLAIN, "nvidia.com/gpu: 8", 2, "", []),
    "GKE's networks": (GKE, "nvidia.com/gpu: 8, networking.gke.io.networks/gpu-nic-0: 1", 2, "", []),
    "EFA that no pool has": (PLAIN, f"nvidia.com/gpu: 4, {EFA}: 4", 1, "", ["network-not-offered"]),
    "huge pages that no pool has": (PLAIN, "nvidia.com/gpu: 1, hugepages-2Mi: 2Mi", 1, "", ["network-not-offered"]),
    "huge pages of the image": (EKS, "nvidia.com/gpu: 1, hugepages-2Mi: 640Mi", 1, "", []),
}


@pytest.mark.parametrize("case", HINTS)
def test_lint_when_pods_use_or_miss_the_network_then_told(case: str) -> None:
    offer, amounts, pods, extra, codes = HINTS[case]
    assert hints(offer, amounts, pods, extra) == codes
