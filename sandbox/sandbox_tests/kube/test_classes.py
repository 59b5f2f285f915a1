"""What a pod takes from its runtime class and its priority class, and what it may not say otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube_sandbox.clock import ManualClock
from gpukube_sandbox.kube.matching import pod_requests
from gpukube_sandbox.kube.store.kinds import CORE
from gpukube_sandbox.kube.store.objects import spec
from gpukube_sandbox.kube.store.problems import ApiProblem
from gpukube_sandbox.kube.store.store import Store

if TYPE_CHECKING:
    from gpukube_sandbox.kube.store.objects import JsonObject

TOLERATED = {"key": "fat", "operator": "Exists"}
RUNTIMES: tuple[JsonObject, ...] = (
    {"metadata": {"name": "plain"}, "handler": "runc"},
    {
        "metadata": {"name": "fat"},
        "handler": "runc",
        "overhead": {"podFixed": {"cpu": "2", "memory": "1Gi"}},
        "scheduling": {"nodeSelector": {"pool": "a"}, "tolerations": [TOLERATED]},
    },
)
PRIORITIES: tuple[JsonObject, ...] = (
    {"metadata": {"name": "polite"}, "value": 10, "preemptionPolicy": "Never"},
    {"metadata": {"name": "usual"}, "value": 5, "globalDefault": True},
)


@pytest.fixture
def store() -> Store:
    made = Store(ManualClock())
    for item in RUNTIMES:
        made.create(CORE["runtimeclasses"], item)
    for item in PRIORITIES:
        made.create(CORE["priorityclasses"], item)
    return made


def made(store: Store, **more: object) -> JsonObject:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}}
    return store.create(CORE["pods"], {"metadata": {"name": "p"}, "spec": {"containers": [container], **more}})


REFUSED: dict[str, tuple[JsonObject, str]] = {
    "no such runtime": ({"runtimeClassName": "nope"}, 'pod rejected: RuntimeClass "nope" not found'),
    "overhead of another number": (
        {"runtimeClassName": "fat", "overhead": {"cpu": "1"}},
        "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
    ),
    "overhead without a class that has one": (
        {"runtimeClassName": "plain", "overhead": {"cpu": "1"}},
        "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
    ),
    "another place": (
        {"runtimeClassName": "fat", "nodeSelector": {"pool": "b"}},
        "conflict: runtimeClass.scheduling.nodeSelector[pool] = a; pod.spec.nodeSelector[pool] = b",
    ),
    "another preemption policy": (
        {"priorityClassName": "polite", "preemptionPolicy": "PreemptLowerPriority"},
        (
            "the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided in pod spec; priority "
            "admission controller computed Never from the given PriorityClass name"
        ),
    ),
    "another priority": (
        {"priority": 7},
        (
            "the integer value of priority (7) must not be provided in pod spec; priority admission controller "
            "computed 5 from the given PriorityClass name"
        ),
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_pod_when_it_contradicts_its_class_then_forbidden(store: Store, case: str) -> None:
    more, words = REFUSED[case]
    with pytest.raises(ApiProblem) as refused:
        made(store, **more)
    assert (refused.value.code, refused.value.message) == (403, f'pods "p" is forbidden: {words}')


def test_pod_when_its_runtime_class_costs_and_places_then_it_has_both(store: Store) -> None:
    found = spec(made(store, runtimeClassName="fat", overhead={"cpu": "2000m", "memory": "1Gi"}))
    assert found["overhead"] == {"cpu": "2", "memory": "1Gi"}
    assert found["nodeSelector"] == {"pool": "a"}
    assert TOLERATED in found["tolerations"]
    assert pod_requests({"spec": found})["cpu"] == 3000


def test_pod_when_it_names_no_priority_then_the_default_class_is_its(store: Store) -> None:
    found = spec(made(store))
    assert (found["priorityClassName"], found["priority"], found["preemptionPolicy"]) == (
        "usual",
        5,
        "PreemptLowerPriority",
    )


@pytest.mark.parametrize("name", ["requests.cpu", "cpu", "limits.cpu"])
def test_quota_when_a_pod_has_overhead_then_it_counts(store: Store, name: str) -> None:
    quota = {"metadata": {"name": "q", "namespace": "default"}, "spec": {"hard": {name: "2"}}}
    store.create(CORE["resourcequotas"], quota)
    with pytest.raises(ApiProblem, match=f"exceeded quota: q, requested: {name}=3"):
        made(store, runtimeClassName="fat")
