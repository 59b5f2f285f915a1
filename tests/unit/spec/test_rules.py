"""Rules across fields: what is just allowed. What is refused is shown under tests/messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube.spec.kubesyntax import explain_key, explain_value
from tests.unit.spec.samples import POOL, problems_of, spec_of

if TYPE_CHECKING:
    from pathlib import Path

ALLOWED = {
    "no nodes now": ("count: 1}}", "count: 0}}"),
    "initial at min": ("{count: 1}}", "{autoscaling: {min: 1, max: 3, initial: 1}}}"),
    "initial at max": ("{count: 1}}", "{autoscaling: {min: 1, max: 3, initial: 3}}}"),
    "min equals max": ("{count: 1}}", "{autoscaling: {min: 3, max: 3}}}"),
    "spot with a price": ("nodes:", "capacity: {type: spot, maxPrice: 0.5}, nodes:"),
    "time-slicing on MIG": ("nodes:", "sharing: {mig: {profile: 1g.5gb}, timeSlicing: {replicas: 2}}, nodes:"),
    "mps at its limits": ("nodes:", "sharing: {mps: {replicas: 48}}, nodes:"),
    "the GPU taint by hand": (
        "nodes:",
        "gpuTaint: false, taints: [{key: nvidia.com/gpu, value: present, effect: NoSchedule}], nodes:",
    ),
    "the GPU taint with another effect": ("nodes:", "taints: [{key: nvidia.com/gpu, effect: NoExecute}], nodes:"),
    "one taint key with two effects": (
        "nodes:",
        "taints: [{key: a, effect: NoExecute}, {key: a, effect: NoSchedule}], nodes:",
    ),
    "an empty label": ("nodes:", 'labels: {a: ""}, nodes:'),
    "other labels of nvidia.com": ("nodes:", "labels: {nvidia.com/gpu.workload.config: container}, nodes:"),
    "operator for both": ("nodes:", "driver: {owner: operator}, devicePlugin: {owner: operator}, nodes:"),
    "somebody else's plugin without replicas": ("nodes:", "devicePlugin: {owner: none}, nodes:"),
    "a type for each cloud": (
        "clusters: [train-aks], gpu: {model: T4-16GB, count: 1}",
        "clusters: [train-aks, train-eks], instanceType: {aks: x, eks: y}",
    ),
    "gpu fills the clouds without a type": (
        "clusters: [train-aks]",
        "clusters: [train-aks, train-eks], instanceType: {aks: x}",
    ),
    "native fields for a cloud it is not on": ("nodes:", "gke: {a: 1}, nodes:"),
}


@pytest.mark.parametrize(("old", "new"), ALLOWED.values(), ids=ALLOWED)
def test_pool_when_just_inside_the_rules_then_is_accepted(old: str, new: str, tmp_path: Path) -> None:
    assert old in POOL
    assert problems_of(tmp_path, spec_of(POOL.replace(old, new))) == ()


def test_one_pool_name_when_on_different_clusters_then_is_accepted(tmp_path: Path) -> None:
    assert problems_of(tmp_path, spec_of(POOL + POOL.replace("train-aks", "train-eks"))) == ()


KEYS = {
    "a": True,
    "a" * 63: True,
    "a" * 64: False,
    "A_b.c-9": True,
    "-a": False,
    "a-": False,
    "": False,
    "example.com/a": True,
    "example.com/": False,
    "/a": False,
    "Example.com/a": False,
    "a/b/c": False,
    f"{'a' * 63}.{'b' * 63}.{'c' * 63}.{'d' * 61}/x": True,
    f"{'a' * 63}.{'b' * 63}.{'c' * 63}.{'d' * 62}/x": False,
    "a b": False,
    "a\n": False,
}


@pytest.mark.parametrize(("key", "right"), KEYS.items())
def test_label_key_when_judged_then_as_kubernetes_does(key: str, right: bool) -> None:  # noqa: FBT001 - the table's answer
    assert (explain_key(key) == "") is right


VALUES = {"": True, "a": True, "a" * 63: True, "a" * 64: False, "a_b.C-9": True, "a b": False, "-": False, "a\n": False}


@pytest.mark.parametrize(("value", "right"), VALUES.items())
def test_label_value_when_judged_then_as_kubernetes_does(value: str, right: bool) -> None:  # noqa: FBT001 - the table's answer
    assert (explain_value(value) == "") is right
