"""Pools with alternatives as pods see them: what is rendered, what fits, and what an autoscaler would start."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from gpukube.core.jsontree import tree
from gpukube.spec.source.files import Source
from gpukube.workload.fit.answers import find_fit
from gpukube.workload.fit.demand import read_demands
from gpukube.workload.fit.filling import ClusterView
from gpukube.workload.lint.check import lint
from gpukube.workload.manifests import read_manifests
from gpukube.workload.offers import family_offer, members_of
from gpukube.workload.render.intent import Intent
from gpukube.workload.render.manifests import render
from tests.unit.workload.specs import offers

if TYPE_CHECKING:
    from gpukube.workload.fit.answers import Fit
    from gpukube.workload.offers import PoolOffer

SCALED = (
    "{name: scaled, clusters: [train-aks, train-eks, train-gke], gpu: {model: T4, count: 1}, "
    "nodes: {autoscaling: {min: 0, max: 2}}, alternatives: [{name: scaledspot, capacity: {type: spot}}]}"
)
FIXED = (
    "{name: fixed, clusters: [train-aks, train-eks, train-gke], gpu: {model: T4, count: 1}, nodes: {count: 2}, "
    "alternatives: [{name: fixedspot, capacity: {type: spot}}, {name: fixedbig, gpu: {model: T4, count: 4}}]}"
)
CHEAPER = (
    "{name: large, clusters: [train-eks], instanceType: g4dn.2xlarge, nodes: {autoscaling: {min: 0, max: 2}}, "
    "alternatives: [{name: small, instanceType: g4dn.xlarge}]}"
)
GPU = "nvidia.com/gpu"


@pytest.fixture(scope="module")
def pools(tmp_path_factory: pytest.TempPathFactory) -> dict[str, PoolOffer]:
    return offers(tmp_path_factory.mktemp("spec"), SCALED, FIXED, CHEAPER)


def whole(pools: dict[str, PoolOffer], name: str) -> PoolOffer:
    return family_offer(members_of(pools[name], pools.values()))


def rendered(pools: dict[str, PoolOffer], name: str, **options: Any) -> dict[str, Any]:  # noqa: ANN401 - any of Intent's
    (document,) = render(Intent(kind="pod", **options), whole(pools, name)).documents
    return tree(document, "spec")


def deployment(replicas: int, selector: dict[str, str], gpus: int = 1) -> dict[str, Any]:
    container = {"name": "main", "resources": {"requests": {"cpu": "1"}, "limits": {GPU: gpus}}}
    tolerations = [
        {"key": GPU, "operator": "Exists"},
        {"key": "kubernetes.azure.com/scalesetpriority", "operator": "Exists"},
    ]
    pod = {"nodeSelector": selector, "tolerations": tolerations, "containers": [container]}
    template = {"metadata": {"labels": {"app": "x"}}, "spec": pod}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "x"},
        "spec": {"replicas": replicas, "strategy": {"type": "Recreate"}, "template": template},
    }


def fit(pools: dict[str, PoolOffer], cluster: str, *objects: dict[str, Any]) -> Fit:
    there = tuple(offer for name, offer in pools.items() if name.startswith(f"{cluster}/"))
    demands = read_demands(read_manifests(yaml.safe_dump_all(objects), "file.yaml").manifests).demands
    return find_fit([ClusterView(key=cluster, offers=there)], demands)


def used(found: Fit) -> set[str]:
    return {use.node.offer.desired.target.pool for use in found.nodes if use.node.offer}


@pytest.mark.parametrize("cluster", ["train-eks", "train-aks"])
@pytest.mark.parametrize("pool", ["scaled", "scaledspot"])
def test_rendered_for_a_family_then_its_label_whichever_pool_is_named(
    pools: dict[str, PoolOffer], cluster: str, pool: str
) -> None:
    spec = rendered(pools, f"{cluster}/{pool}")
    assert spec["nodeSelector"] == {"gpukube.io/family": "scaled"}


def test_rendered_on_gke_for_an_autoscaled_family_then_only_its_class(pools: dict[str, PoolOffer]) -> None:
    spec = rendered(pools, "train-gke/scaled")
    assert spec["nodeSelector"] == {"cloud.google.com/compute-class": "scaled"}
    assert rendered(pools, "train-gke/fixed")["nodeSelector"] == {"gpukube.io/family": "fixed"}


def test_rendered_for_a_family_then_the_tolerations_of_all_its_pools(pools: dict[str, PoolOffer]) -> None:
    spot = {
        "key": "kubernetes.azure.com/scalesetpriority",
        "operator": "Equal",
        "value": "spot",
        "effect": "NoSchedule",
    }
    assert spot in rendered(pools, "train-aks/scaled")["tolerations"]
    assert spot in rendered(pools, "train-aks/fixed")["tolerations"]
    assert spot not in rendered(pools, "train-eks/scaled")["tolerations"]


def test_rendered_for_pools_of_several_sizes_then_a_pod_fits_the_smallest(pools: dict[str, PoolOffer]) -> None:
    offer = whole(pools, "train-eks/fixedbig")
    assert offer.gpus == {GPU: 1}
    assert offer.real.cpu == pools["train-eks/fixed"].real.cpu
    head = render(Intent(kind="pod"), offer).text
    assert "# Or of its alternatives: fixedspot, fixedbig." in head


def test_a_family_refuses_what_one_of_its_pools_refuses_and_knows_what_all_know(pools: dict[str, PoolOffer]) -> None:
    first = pools["train-eks/fixed"]
    found = family_offer([first, replace(first, single=True, discovered=False, on_request="a request")])
    assert (found.single, found.discovered, found.on_request) == (True, False, "a request")
    assert family_offer([first]) is first


def test_capacity_of_a_family_then_one_pool_of_fixed_size_and_all_autoscaled_ones(pools: dict[str, PoolOffer]) -> None:
    assert whole(pools, "train-eks/fixed").desired.target.nodes.maximum == 2
    assert whole(pools, "train-eks/scaled").desired.target.nodes.maximum == 4


@pytest.mark.parametrize(
    ("replicas", "gpus", "fits", "pools_used"),
    [(2, 1, True, {"fixed"}), (3, 1, True, {"fixedbig"}), (8, 1, True, {"fixedbig"}), (9, 1, False, {"fixedbig"}),
     (2, 4, True, {"fixedbig"})],
)  # fmt: skip
def test_fit_of_a_family_of_fixed_size_then_the_best_of_its_pools_and_no_two(
    pools: dict[str, PoolOffer], replicas: int, gpus: int, pools_used: set[str], *, fits: bool
) -> None:
    found = fit(pools, "train-eks", deployment(replicas, {"gpukube.io/family": "fixed"}, gpus))
    assert (found.fits, used(found)) == (fits, pools_used)


@pytest.mark.parametrize(
    ("replicas", "fits", "pools_used"),
    [(2, True, {"scaled"}), (3, True, {"scaled", "scaledspot"}), (4, True, {"scaled", "scaledspot"}),
     (5, False, {"scaled", "scaledspot"})],
)  # fmt: skip
def test_fit_of_an_autoscaled_family_then_by_rank_up_to_the_maximum_of_each(
    pools: dict[str, PoolOffer], replicas: int, pools_used: set[str], *, fits: bool
) -> None:
    found = fit(pools, "train-aks", deployment(replicas, {"gpukube.io/family": "scaled"}))
    assert (found.fits, used(found)) == (fits, pools_used)


def test_fit_of_an_autoscaled_family_then_a_cheaper_pool_waits_for_its_turn(pools: dict[str, PoolOffer]) -> None:
    assert used(fit(pools, "train-eks", deployment(1, {"gpukube.io/family": "large"}))) == {"large"}
    anywhere = deployment(1, {"node.kubernetes.io/instance-type": "g4dn.xlarge"})
    assert "large" not in used(fit(pools, "train-eks", anywhere))


def test_fit_on_live_pools_then_alternatives_that_do_not_exist_are_no_reason(pools: dict[str, PoolOffer]) -> None:
    view = ClusterView(
        key="train-eks",
        offers=(pools["train-eks/fixed"],),
        missing=(pools["train-eks/fixedspot"], pools["train-eks/large"]),
        nodes=(),
    )
    objects = [deployment(9, {"gpukube.io/family": "fixed"})]
    demands = read_demands(read_manifests(yaml.safe_dump_all(objects), "file.yaml").manifests).demands
    (answer,) = find_fit([view], demands).answers
    assert [reason.pool for reason in answer.reasons] == ["train-eks/fixed", "train-eks/large"]


def test_fit_on_gke_when_a_pod_selects_the_class_then_the_cluster_tolerates_its_taint(
    pools: dict[str, PoolOffer],
) -> None:
    assert fit(pools, "train-gke", deployment(1, {"cloud.google.com/compute-class": "scaled"})).fits
    assert not fit(pools, "train-gke", deployment(1, {"gpukube.io/family": "scaled"})).fits


@pytest.mark.parametrize(("replicas", "codes"), [(8, []), (9, ["replicas-beyond-pools"])])
def test_lint_of_replicas_then_one_pool_of_a_family_of_fixed_size_counts(
    pools: dict[str, PoolOffer], replicas: int, codes: list[str]
) -> None:
    there = [offer for name, offer in pools.items() if name.startswith("train-eks/")]
    text = yaml.safe_dump(deployment(replicas, {"gpukube.io/family": "fixed"}))
    found = lint([Source("file.yaml", text)], offers=there)
    named = [one for one in found.findings if "replicas" in one.code]
    assert [one.code for one in named] == codes
    assert {one.severity for one in named} <= {"error"}  # a family's label is the spec's own, so no other node is meant


def linted(pools: dict[str, PoolOffer], cluster: str, selector: dict[str, str]) -> list[tuple[str, str]]:
    there = [offer for name, offer in pools.items() if name.startswith(f"{cluster}/")]
    found = lint([Source("file.yaml", yaml.safe_dump(deployment(1, selector)))], offers=there)
    return [(one.code, one.fix) for one in found.findings if one.code in ("taint-untolerated", "alternative-missed")]


def test_lint_on_gke_when_a_pod_selects_the_familys_label_then_it_is_to_select_the_class_not_to_tolerate_its_taint(
    pools: dict[str, PoolOffer],
) -> None:
    fix = "write nodeSelector: {cloud.google.com/compute-class: scaled}"
    for selector in ({"gpukube.io/family": "scaled"}, {"gpukube.io/pool": "scaledspot"}):
        assert linted(pools, "train-gke", selector) == [("taint-untolerated", fix)]
    assert linted(pools, "train-gke", {"cloud.google.com/compute-class": "scaled"}) == []


@pytest.mark.parametrize(
    ("selector", "fix"),
    [
        ({"gpukube.io/pool": "scaled"}, "write gpukube.io/family: scaled instead"),
        (
            {"gpukube.io/family": "scaled", "eks.amazonaws.com/capacityType": "SPOT"},
            "remove eks.amazonaws.com/capacityType",
        ),
    ],
)
def test_lint_of_a_label_that_some_alternatives_lack_then_what_to_write_or_to_remove(
    pools: dict[str, PoolOffer], selector: dict[str, str], fix: str
) -> None:
    assert linted(pools, "train-eks", selector) == [("alternative-missed", fix)]
