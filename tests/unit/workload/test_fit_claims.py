"""Where pods with claims go on pools of a spec: on those of the DRA driver, as far as the catalog knows the devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpukube.engine.documents.fit import fit_document
from gpukube.spec.source.files import Source
from gpukube.workload.fit.answers import Fit, find_fit
from gpukube.workload.fit.demand import read_demands
from gpukube.workload.lint.check import lint
from gpukube.workload.manifests import read_manifests
from tests.claim_cases import GPU, MEMORY, PARENT, ask, choice, claim_of, class_of, devices, either, slices_of_profile
from tests.unit.workload.specs import offers
from tests.unit.workload.test_fit_packing import pod_spec, spoiled, views

if TYPE_CHECKING:
    from collections.abc import Mapping
    from random import Random

    from gpukube.workload.offers import PoolOffer

Json = dict[str, Any]
DRA = "{{name: {}, clusters: [{}], gpu: {}, nodes: {}, devicePlugin: {{owner: dra}}{}}}"
POOLS = (
    DRA.format("claims", "train-eks, train-gke", "{model: H100-80GB, count: 8}", "{count: 2}", ""),
    DRA.format("zero", "train-gke", "{model: L4, count: 1}", "{autoscaling: {min: 0, max: 3}}", ""),
    DRA.format(
        "cut",
        "train-eks",
        "{model: A100-40GB, count: 8}",
        "{count: 1}",
        ", sharing: {mig: {profile: 1g.5gb, strategy: mixed}}",
    ),
)
PLUGIN = "{name: plugin, clusters: [train-aks], gpu: {model: A100-40GB, count: 8}, nodes: {count: 1}}"
TOLERANT = [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]


@pytest.fixture(scope="module")
def pools(tmp_path_factory: pytest.TempPathFactory) -> dict[str, PoolOffer]:
    return offers(tmp_path_factory.mktemp("spec"), *POOLS, PLUGIN)


def template(spec: Json, name: str = "gpus") -> Json:
    kind = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate"}
    return {**kind, "metadata": {"name": name}, "spec": {"spec": spec}}


def workload(count: int = 1, reference: str = "resourceClaimTemplateName", name: str = "gpus") -> Json:
    claims = [{"name": "gpu", reference: name}]
    spec = pod_spec(0, tolerations=TOLERANT, resourceClaims=claims)
    spec["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
    made = {"replicas": count, "template": {"metadata": {"labels": {"app": "web"}}, "spec": spec}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": made}


def fit(pools: Mapping[str, PoolOffer], pool: str, *objects: Json) -> Fit:
    reading = read_manifests(yaml.safe_dump_all(objects), "file.yaml")
    return find_fit(views({pool: pools[pool]}), *read_demands(reading.manifests))


ANSWERS: dict[str, tuple[str, Json, int, tuple[int, int, int, int], str]] = {
    # Pool, spec of the claim, pods -> pods now, after scale-up, never, unknown; part of the first reason.
    "whole GPUs": ("train-eks/claims", devices(ask(count=4)), 5, (4, 0, 1, 0), "its 2 nodes are full"),
    "more than a node has": ("train-eks/claims", devices(ask(count=9)), 1, (0, 0, 1, 0), "a node has 8"),
    "from zero": ("train-gke/zero", devices(ask()), 2, (0, 2, 0, 0), ""),
    "MIG devices": ("train-eks/cut", devices(slices_of_profile("1g.5gb", 7)), 9, (8, 0, 1, 0), "its node is full"),
    "of one GPU": ("train-eks/cut", devices(slices_of_profile("1g.5gb", 4), same=PARENT), 9, (8, 0, 1, 0), ""),
    "another profile": ("train-eks/cut", devices(slices_of_profile("3g.20gb")), 1, (0, 0, 1, 0), "what it selects"),
    "a plugin pool": ("train-aks/plugin", devices(ask()), 1, (0, 0, 1, 0), "no devices that claims get"),
    "an architecture": ("train-eks/claims", devices(ask(where=f"{GPU}.architecture == 'Hopper'")), 1, (1, 0, 0, 0), ""),
    "enough memory": (
        "train-eks/claims",
        devices(ask(where=f"{MEMORY}.isGreaterThan(quantity('40Gi'))")),
        1,
        (1, 0, 0, 0),
        "",
    ),
    "memory that only nodes show": (
        "train-eks/claims",
        devices(ask(where=f"{MEMORY}.isGreaterThan(quantity('79Gi'))")),
        1,
        (0, 0, 0, 1),
        "claims: unknown",
    ),
    "a product that only nodes show": (
        "train-eks/claims",
        devices(ask(where=f"{GPU}.productName == 'NVIDIA H100 80GB HBM3'")),
        1,
        (0, 0, 0, 1),
        "productName, which only the node shows",
    ),
    "a product that does not matter": (
        "train-eks/claims",
        devices(ask(count=9, where=f"{GPU}.productName == 'NVIDIA H100 80GB HBM3'")),
        1,
        (0, 0, 1, 0),
        "",
    ),
    "the second choice": (
        "train-eks/claims",
        devices(either("gpu", choice("mig", "mig.nvidia.com"), choice("gpu", count=2))),
        9,
        (8, 0, 1, 0),
        "",
    ),
    "a class that may be in the cluster": ("train-eks/claims", devices(ask(kind="big")), 1, (0, 0, 0, 1), "class big"),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_fit_when_pods_have_claims_then_as_the_devices_of_the_pool_allow(
    case: str, pools: dict[str, PoolOffer]
) -> None:
    pool, spec, count, expected, why = ANSWERS[case]
    found = fit(pools, pool, template(spec), workload(count))
    (answer,) = found.answers
    placed = answer.placed
    assert (placed.now, placed.later, placed.never, placed.unknown) == expected, answer.reasons
    assert found.fits is (expected[2:] == (0, 0))
    if why:
        assert why in "; ".join(answer.reasons[0].texts)


def test_fit_when_claims_are_answered_then_the_document_has_them(pools: dict[str, PoolOffer]) -> None:
    document = fit_document(fit(pools, "train-eks/claims", template(devices(ask(count=3))), workload(1)), live=False)
    (part,) = document["workloads"]
    assert (part["state"], part["requests"]["claims"]) == ("now", ["gpu"])
    assert document["nodes"][0]["left"]["devices"] == {"gpu.nvidia.com": 5}
    unclear = fit_document(fit(pools, "train-eks/claims", workload(2)), live=False)
    assert (unclear["exitCode"], unclear["workloads"][0]["state"], unclear["workloads"][0]["unknown"]) == (
        1,
        "unknown",
        2,
    )
    assert unclear["workloads"][0]["reasons"][0]["why"] == [
        "claims: unknown: ResourceClaimTemplate gpus is not among the files"
    ]


def test_fit_when_pods_share_a_claim_then_it_counts_once_and_they_stay_together(pools: dict[str, PoolOffer]) -> None:
    shared = claim_of("gpus", devices(ask(count=8)))
    found = fit(pools, "train-eks/claims", shared, workload(3, "resourceClaimName"))
    assert len(found.answers[0].placed.nodes) == 1
    (use,) = found.nodes
    assert use.node.free_devices() == {"gpu.nvidia.com": 0}


def test_fit_when_a_class_is_among_the_files_then_it_counts(pools: dict[str, PoolOffer]) -> None:
    made = class_of("big", f"device.driver == 'gpu.nvidia.com' && {GPU}.type == 'gpu'")
    assert fit(pools, "train-eks/claims", made, template(devices(ask(kind="big"))), workload(1)).fits


def test_fit_when_pods_request_the_plugins_name_on_a_dra_pool_then_unknown_without_the_cluster(
    pools: dict[str, PoolOffer],
) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "old"}, "spec": pod_spec(2, tolerations=TOLERANT)}
    (answer,) = fit(pools, "train-eks/claims", pod).answers
    assert answer.state == "unknown"
    served = class_of("gpu.nvidia.com", f"{GPU}.type == 'gpu'")
    served["spec"]["extendedResourceName"] = "nvidia.com/gpu"
    assert fit(pools, "train-eks/claims", served, pod).fits
    named = {**pod, "spec": pod_spec(1, name="mig.nvidia.com/1g.5gb", tolerations=TOLERANT)}
    assert fit(pools, "train-eks/cut", named).answers[0].state == "never"


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(random=st.randoms(use_true_random=False), wrongs=st.integers(1, 4))
def test_claims_when_wrong_in_any_way_then_an_answer(random: Random, wrongs: int, pools: dict[str, PoolOffer]) -> None:
    both = devices(
        slices_of_profile("1g.5gb", 2, "a"),
        either("b", choice("one", "mig.nvidia.com"), choice("two", count="All")),
        same=PARENT,
    )
    made: list[Any] = [template(both), claim_of("gpus", devices(ask())), workload(2), class_of("mine", "true")]
    for _ in range(wrongs):
        index = random.randrange(len(made))
        made[index] = spoiled(made[index], random)
    written = yaml.safe_dump_all(made)
    found = find_fit(
        views({"train-eks/cut": pools["train-eks/cut"]}), *read_demands(read_manifests(written, "f").manifests)
    )
    assert fit_document(found, live=False)["exitCode"] == (0 if found.fits else 1)
    assert lint([Source("f", written)], offers=[pools["train-eks/cut"]]).manifests <= len(made)
