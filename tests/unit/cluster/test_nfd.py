"""Node Feature Discovery that is there already."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpukube.cluster.names import GPU_OPERATOR
from gpukube.cluster.nfd import find_nfd, nfd_warnings
from gpukube.cluster.sighting import Sighting
from gpukube.cluster.views import placement_of
from tests.unit.cluster.builders import NAMESPACE, RELEASE_NAME, container, daemonset, desire, operated

POOL = desire()
LABELS = {"app.kubernetes.io/name": "node-feature-discovery", "app.kubernetes.io/instance": "nfd"}
WORKER = daemonset("nfd-node-feature-discovery-worker", "nfd", labels=LABELS)
MASTER = replace(daemonset("nfd-node-feature-discovery-master", "nfd", labels=LABELS), kind="Deployment")
TOLERANT = placement_of({"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}]})

THERE = {
    "helm chart, worker": Sighting(daemonsets=(WORKER,)),
    "helm chart, master": Sighting(deployments=(MASTER,)),
    "static manifest": Sighting(daemonsets=(daemonset("nfd-worker", "node-feature-discovery"),)),
    "operator's bundled one": Sighting(daemonsets=(replace(WORKER, namespace="gpu-operator"),)),
    "by its program": Sighting(daemonsets=(daemonset("features", containers=(container("i", "nfd-worker"),)),)),
}


@pytest.mark.parametrize("case", THERE)
def test_find_when_nfd_runs_then_found(case: str) -> None:
    assert find_nfd(THERE[case]) is not None


NOT_THERE = {
    "an empty cluster": Sighting(),
    "our own": Sighting(
        daemonsets=(
            replace(WORKER, namespace=NAMESPACE, labels={**LABELS, "app.kubernetes.io/instance": RELEASE_NAME}),
        )
    ),
    "our own, of the operator": Sighting(
        daemonsets=(
            replace(WORKER, namespace=NAMESPACE, labels={**LABELS, "app.kubernetes.io/instance": GPU_OPERATOR.name}),
        )
    ),
    "its collector alone": Sighting(deployments=(replace(MASTER, name="nfd-node-feature-discovery-gc"),)),
    "something else": Sighting(daemonsets=(daemonset("gardener-worker"),)),
}


@pytest.mark.parametrize("case", NOT_THERE)
def test_find_when_no_foreign_nfd_runs_then_none(case: str) -> None:
    assert find_nfd(NOT_THERE[case]) is None


def test_warnings_when_its_workers_do_not_tolerate_our_taint_then_the_taint_is_named() -> None:
    (found,) = nfd_warnings(find_nfd(Sighting(daemonsets=(WORKER,))), [POOL])
    assert (found.code, found.severity) == ("nfd-taint", "warning")
    assert "nvidia.com/gpu=present:NoSchedule" in found.seen


@pytest.mark.parametrize(
    "seen",
    [
        Sighting(),
        Sighting(deployments=(MASTER,)),
        Sighting(daemonsets=(replace(WORKER, placement=TOLERANT),)),
        Sighting(daemonsets=(WORKER, replace(WORKER, name="x-worker", placement=TOLERANT))),
    ],
    ids=["no nfd", "workers not in view", "tolerant", "one of two is tolerant"],
)
def test_warnings_when_our_nodes_are_reached_then_none(seen: Sighting) -> None:
    assert nfd_warnings(find_nfd(seen), [POOL]) == []


def test_warnings_when_the_operator_depends_on_it_then_refused() -> None:
    (found,) = nfd_warnings(find_nfd(Sighting(daemonsets=(WORKER,))), [operated()])
    assert (found.code, found.severity) == ("operator-nfd", "error")
    assert "nvidia.com/gpu=present:NoSchedule" in found.fix
