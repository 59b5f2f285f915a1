"""Node Feature Discovery that is there already."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpukube.cluster.kube.views import placement_of
from gpukube.cluster.names import GPU_OPERATOR
from gpukube.cluster.state.nfd import find_nfd, nfd_warnings
from gpukube.cluster.state.snapshot import Snapshot
from tests.unit.cluster.builders import NAMESPACE, RELEASE_NAME, container, daemonset, desire, operated

POOL = desire()
LABELS = {"app.kubernetes.io/name": "node-feature-discovery", "app.kubernetes.io/instance": "nfd"}
WORKER = daemonset("nfd-node-feature-discovery-worker", "nfd", labels=LABELS)
MASTER = replace(daemonset("nfd-node-feature-discovery-master", "nfd", labels=LABELS), kind="Deployment")
TOLERANT = placement_of({"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}]})

THERE = {
    "helm chart, worker": Snapshot(daemonsets=(WORKER,)),
    "helm chart, master": Snapshot(deployments=(MASTER,)),
    "static manifest": Snapshot(daemonsets=(daemonset("nfd-worker", "node-feature-discovery"),)),
    "operator's bundled one": Snapshot(daemonsets=(replace(WORKER, namespace="gpu-operator"),)),
    "by its program": Snapshot(daemonsets=(daemonset("features", containers=(container("i", "nfd-worker"),)),)),
}


@pytest.mark.parametrize("case", THERE)
def test_find_when_nfd_runs_then_found(case: str) -> None:
    assert find_nfd(THERE[case]) is not None


NOT_THERE = {
    "an empty cluster": Snapshot(),
    "our own": Snapshot(
        daemonsets=(
            replace(WORKER, namespace=NAMESPACE, labels={**LABELS, "app.kubernetes.io/instance": RELEASE_NAME}),
        )
    ),
    "our own, of the operator": Snapshot(
        daemonsets=(
            replace(WORKER, namespace=NAMESPACE, labels={**LABELS, "app.kubernetes.io/instance": GPU_OPERATOR.name}),
        )
    ),
    "its collector alone": Snapshot(deployments=(replace(MASTER, name="nfd-node-feature-discovery-gc"),)),
    "something else": Snapshot(daemonsets=(daemonset("gardener-worker"),)),
}


@pytest.mark.parametrize("case", NOT_THERE)
def test_find_when_no_foreign_nfd_runs_then_none(case: str) -> None:
    assert find_nfd(NOT_THERE[case]) is None


def test_warnings_when_its_workers_do_not_tolerate_our_taint_then_the_taint_is_named() -> None:
    (found,) = nfd_warnings(find_nfd(Snapshot(daemonsets=(WORKER,))), [POOL])
    assert (found.code, found.severity) == ("nfd-taint", "warning")
    assert "nvidia.com/gpu=present:NoSchedule" in found.seen


@pytest.mark.parametrize(
    "seen",
    [
        Snapshot(),
        Snapshot(deployments=(MASTER,)),
        Snapshot(daemonsets=(replace(WORKER, placement=TOLERANT),)),
        Snapshot(daemonsets=(WORKER, replace(WORKER, name="x-worker", placement=TOLERANT))),
    ],
    ids=["no nfd", "workers not in view", "tolerant", "one of two is tolerant"],
)
def test_warnings_when_our_nodes_are_reached_then_none(seen: Snapshot) -> None:
    assert nfd_warnings(find_nfd(seen), [POOL]) == []


def test_warnings_when_the_operator_depends_on_it_then_refused() -> None:
    (found,) = nfd_warnings(find_nfd(Snapshot(daemonsets=(WORKER,))), [operated()])
    assert (found.code, found.severity) == ("operator-nfd", "error")
    assert "nvidia.com/gpu=present:NoSchedule" in found.fix
