"""Clusters that admit critical pods outside kube-system only where a quota names them, as GKE's do."""

from __future__ import annotations

from typing import Any

import pytest

from gpukube_sandbox.clock import ManualClock
from gpukube_sandbox.kube.store import kinds
from gpukube_sandbox.kube.store.problems import ApiProblem
from gpukube_sandbox.kube.store.store import Store

QUOTA = {
    "metadata": {"name": "critical", "namespace": "default"},
    "spec": {
        "hard": {"pods": "10"},
        "scopeSelector": {
            "matchExpressions": [
                {"scopeName": "PriorityClass", "operator": "In", "values": ["system-node-critical"]},
            ]
        },
    },
}


def pod(namespace: str, priority: str = "system-node-critical") -> dict[str, Any]:
    spec = {"priorityClassName": priority, "containers": [{"name": "main", "image": "pause"}]}
    return {"metadata": {"name": "critical", "namespace": namespace}, "spec": spec}


@pytest.fixture
def store() -> Store:
    made = Store(ManualClock())
    made.limits_critical_pods = True
    return made


def test_pod_when_critical_outside_kube_system_then_it_needs_a_quota(store: Store) -> None:
    with pytest.raises(ApiProblem, match="insufficient quota to match these scopes"):
        store.create(kinds.CORE["pods"], pod("default"))
    store.create(kinds.CORE["pods"], pod("kube-system"))
    store.create(kinds.CORE["resourcequotas"], QUOTA)
    store.create(kinds.CORE["pods"], pod("default"))


def test_pod_when_the_quota_names_another_class_then_refused(store: Store) -> None:
    store.create(kinds.CORE["resourcequotas"], QUOTA)
    with pytest.raises(ApiProblem, match="insufficient quota"):
        store.create(kinds.CORE["pods"], pod("default", "system-cluster-critical"))
