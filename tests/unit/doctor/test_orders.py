"""The doctor on orders of autoscaled families: maps that are invalid, behind the pools, or that nobody reads."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.state.snapshot import Snapshot
from gpukube.core.expander import NAME, RECORD, record
from gpukube.core.scaling_order import FamilyOrder
from gpukube.doctor.check import examine
from gpukube.doctor.checks import orders
from tests.unit.doctor.live_pools import LABELS, SCALER, aks_pool, eks_pool, evidence_of, gke_pool

if TYPE_CHECKING:
    from gpukube.core.jsontree import Tree
    from gpukube.core.values import Observed
    from gpukube.doctor.evidence import Evidence

FAMILY = {"gpukube.io/family": "t4"}
ORDER = FamilyOrder("ml-platform", "t4", (("t4",), ("t4spot",)))
(CONTAINER,) = SCALER.containers
BY_PRIORITY = replace(SCALER, containers=(replace(CONTAINER, command=(*CONTAINER.command, "--expander=priority")),))
FULL = "1000: ['{t4}']\n990: ['{t4spot}']\n1: ['.*']\n"


def pattern(name: str) -> str:
    return f"^eks-{name}-[0-9a-f]{{8}}-[0-9a-f-]{{27}}$"


def written(text: str, *, ours: bool = True) -> Tree:
    lines = text.format(t4=pattern("t4"), t4spot=pattern("t4spot"), old=pattern("old"))
    annotations = {RECORD: record([ORDER])} if ours else {}
    metadata = {"name": NAME, "namespace": "kube-system", "annotations": annotations}
    return {"metadata": metadata, "data": {"priorities": lines}}


def members() -> tuple[Observed, ...]:
    second = {**LABELS, **FAMILY, "gpukube.io/pool": "t4spot"}
    return (
        eks_pool(labels={**LABELS, **FAMILY}),
        eks_pool(nodegroupName="t4spot", capacityType="SPOT", labels=second),
    )


def on_eks(order: Tree | None, *pools: Observed) -> Evidence:
    seen = Snapshot(deployments=(BY_PRIORITY,))
    return evidence_of("eks", *(pools or members()), scaled=False, seen=seen, orders=(order,) if order else ())


def found(evidence: Evidence) -> list[tuple[str, str, str]]:
    return [(one.check.id, one.finding.seen, one.finding.fix) for one in examine(evidence, orders.CHECKS).found]


def test_a_map_with_all_pools_is_well() -> None:
    assert found(on_eks(written(FULL))) == []


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("'1000': [a]", "its priorities cannot be read: '1000' is not a number"),
        ("", "its priorities cannot be read: it is not a mapping of numbers to patterns"),
        (FULL + "5: ['(']\n", "( is no pattern"),
    ],
)
def test_a_map_that_the_autoscaler_cannot_read(text: str, seen: str) -> None:
    (one,) = found(on_eks(written(text)))
    assert one == ("order-invalid", seen, f"correct it: kubectl edit configmap {NAME} --namespace kube-system")


@pytest.mark.parametrize("ours", [True, False])
def test_a_map_that_names_a_pool_which_is_gone(*, ours: bool) -> None:
    (one,) = found(on_eks(written(FULL + "980: ['{old}']\n", ours=ours)))
    edit = f"correct it: kubectl edit configmap {NAME} --namespace kube-system"
    assert one == (
        "order-stale",
        "it names old, which no longer exists",
        "gpukube pool apply -f SPEC" if ours else edit,
    )


def test_a_map_that_lacks_a_pool_of_a_family() -> None:
    (one,) = found(on_eks(written("1000: ['{t4}']\n1: ['.*']\n")))
    assert one == ("order-stale", "it has no line for t4spot", "gpukube pool apply -f SPEC")


def test_a_family_without_a_map() -> None:
    (one,) = found(on_eks(None))
    assert one == ("order-stale", "there is none for t4, t4spot", "gpukube pool apply -f SPEC")


def test_pools_of_no_family_and_of_fixed_size_need_no_order() -> None:
    assert found(on_eks(None, eks_pool())) == []
    one = {"minSize": 1, "maxSize": 1, "desiredSize": 1}
    second = {**LABELS, **FAMILY, "gpukube.io/pool": "t4spot"}
    fixed = (eks_pool(labels={**LABELS, **FAMILY}, scalingConfig=one),
             eks_pool(nodegroupName="t4spot", labels=second, scalingConfig=one))  # fmt: skip
    assert found(on_eks(None, *fixed)) == []


def test_an_autoscaler_that_does_not_read_the_order() -> None:
    evidence = evidence_of("eks", *members(), orders=(written(FULL),))
    assert found(evidence) == [
        (
            "order-ignored",
            "the autoscaler ignores the order of t4: its expander is the default",
            "start Deployment kube-system/autoscaler-aws-cluster-autoscaler with --expander=priority,least-waste",
        )
    ]


def test_on_aks_the_profile_decides() -> None:
    scaling = {"enableAutoScaling": True, "minCount": 0, "maxCount": 2}
    first = aks_pool(**scaling, nodeLabels={**LABELS, **FAMILY})
    second = aks_pool(**scaling, nodeLabels={**LABELS, **FAMILY, "gpukube.io/pool": "t4spot"})
    evidence = evidence_of("aks", first, replace(second, name="t4spot"), scaled=False)
    assert evidence.facts is not None
    ignored = replace(evidence, facts=replace(evidence.facts, expander="random"))
    assert [one[0] for one in found(ignored)] == ["order-stale", "order-ignored"]
    assert found(ignored)[1][2].endswith("--cluster-autoscaler-profile expander=priority")
    followed = replace(evidence, facts=replace(evidence.facts, expander="priority"))
    assert [one[0] for one in found(followed)] == ["order-stale"]


@pytest.mark.parametrize(
    ("nodepools", "seen"),
    [
        ([["t4"], ["t4spot"]], []),
        ([["t4"], ["t4spot", "old"]], ["it names old, which no longer exists"]),
        ([["t4"]], ["it does not name t4spot"]),
        ([], ["there is none for t4, t4spot"]),
    ],
)
def test_on_gke_the_class_of_a_family_is_checked(nodepools: list[list[str]], seen: list[str]) -> None:
    scaling = {"enabled": True, "totalMinNodeCount": 0, "totalMaxNodeCount": 2}
    first = gke_pool({"pool": {"autoscaling": scaling}}, labels={**LABELS, **FAMILY})
    second = gke_pool({"pool": {"autoscaling": scaling}}, labels={**LABELS, **FAMILY, "gpukube.io/pool": "t4spot"})
    priorities = [{"nodepools": names} for names in nodepools]
    found_there: Tree = {"metadata": {"name": "t4"}, "spec": {"priorities": priorities}}
    evidence = evidence_of("gke", first, replace(second, name="t4spot"), orders=(found_there,) if nodepools else ())
    assert [one[:2] for one in found(evidence)] == [("order-stale", text) for text in seen]
