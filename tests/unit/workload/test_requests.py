"""What a pod requests in all, by the rules of Kubernetes' own sum (component-helpers, resource/helpers.go)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpukube.workload.requests import Request, is_extended, pod_request, requested_names

GPU = "nvidia.com/gpu"
MIG = "nvidia.com/mig-1g.5gb"
GI = 1024**3


def asks(cpu: str = "", gpus: int | None = None, **more: object) -> dict[str, Any]:
    requests: dict[str, object] = {"cpu": cpu} if cpu else {}
    limits: dict[str, object] = {} if gpus is None else {GPU: gpus}
    return {"resources": {"requests": requests, "limits": limits}, **more}


def sidecar(cpu: str = "", gpus: int | None = None) -> dict[str, Any]:
    return asks(cpu, gpus, restartPolicy="Always")


SUMS: dict[str, tuple[dict[str, Any], Request]] = {
    "nothing": ({}, Request(0, 0, {})),
    "limits without requests": (
        {"containers": [{"resources": {"limits": {"cpu": "3", "memory": "50Gi", GPU: "1"}}}]},
        Request(3000, 50 * GI, {GPU: 1}),
    ),
    "requests win over limits": (
        {"containers": [{"resources": {"limits": {"cpu": 4, "memory": "2Gi"}, "requests": {"cpu": "500m"}}}]},
        Request(500, 2 * GI, {}),
    ),
    "containers add up": ({"containers": [asks("1", 1), asks("1500m", 1)]}, Request(2500, 0, {GPU: 2})),
    "several resources": (
        {"containers": [{"resources": {"limits": {GPU: 1, MIG: "3000m"}}}]},
        Request(0, 0, {GPU: 1, MIG: 3}),
    ),
    "an init container that asks less": (
        {"initContainers": [asks("1", 1)], "containers": [asks("2", 2)]},
        Request(2000, 0, {GPU: 2}),
    ),
    "an init container that asks more of one resource": (
        {"initContainers": [asks("1", 4)], "containers": [asks("2", 2)]},
        Request(2000, 0, {GPU: 4}),
    ),
    "the largest of several init containers": (
        {"initContainers": [asks("1"), asks("5"), asks("3")], "containers": [asks("2")]},
        Request(5000, 0, {}),
    ),
    "sidecars add": (
        {"initContainers": [sidecar("1", 1)], "containers": [asks("2", 2)]},
        Request(3000, 0, {GPU: 3}),
    ),
    "an init container beside the sidecars before it": (
        {"initContainers": [sidecar("1"), asks("4"), sidecar("2")], "containers": [asks("1")]},
        Request(5000, 0, {}),
    ),
    "an init container before the sidecars": (
        {"initContainers": [asks("4"), sidecar("2")], "containers": [asks("1")]},
        Request(4000, 0, {}),
    ),
    "the example of the sidecar proposal": (
        {"initContainers": [asks("5"), sidecar("1"), asks("5"), sidecar("2")], "containers": [asks("1"), asks("1")]},
        Request(6000, 0, {}),
    ),
    "overhead": (
        {"overhead": {"cpu": "250m", "memory": "120Mi"}, "containers": [asks("1")]},
        Request(1250, 120 * 1024**2, {}),
    ),
    "resources of the pod replace the sum": (
        {"resources": {"requests": {"cpu": "6"}}, "containers": [asks("1", 1), asks("1")]},
        Request(6000, 0, {GPU: 1}),
    ),
    "limits of the pod where nothing is requested": (
        {"resources": {"limits": {"cpu": "6", "memory": "8Gi"}}, "containers": [asks("1")]},
        Request(1000, 8 * GI, {}),
    ),
    "a GPU of the pod does not count": (
        {"resources": {"limits": {GPU: 2}}, "containers": [asks("1")]},
        Request(1000, 0, {}),
    ),
    "what is no quantity counts as absent": (
        {
            "containers": [
                {"resources": {"limits": {"cpu": "many", "memory": True, GPU: -1}, "requests": 5}},
                "no",
                None,
            ]
        },
        Request(0, 0, {}),
    ),
    "fractions are rounded up at the end": (
        {"containers": [{"resources": {"requests": {"cpu": "0.0001", "memory": "100m"}}} for _ in range(3)]},
        Request(1, 1, {}),
    ),
    "none of a device": ({"containers": [asks("1", 0)]}, Request(1000, 0, {})),
    "other resources": (
        {"containers": [{"resources": {"limits": {"ephemeral-storage": "1Gi", "hugepages-2Mi": "4Mi"}}}]},
        Request(0, 0, {}, {"ephemeral-storage": 1 << 30, "hugepages-2Mi": 4 << 20}),
    ),
}


@pytest.mark.parametrize("case", SUMS)
def test_request_when_added_up_then_as_the_scheduler_counts(case: str) -> None:
    spec, expected = SUMS[case]
    assert pod_request(spec) == expected


def test_names_when_none_is_wanted_then_named_all_the_same() -> None:
    spec = {"containers": [asks("1", 0)], "initContainers": [{"resources": {"requests": {MIG: 1}}}]}
    assert requested_names(spec) == (GPU, MIG)


@pytest.mark.parametrize(
    ("name", "extended"),
    [
        (GPU, True),
        ("nvidia.com/mig-1g.10gb.me", True),
        ("NVIDIA.com/gpu", False),
        ("gpu", False),
        ("cpu", False),
        ("alpha.kubernetes.io/nvidia-gpu", False),
        ("requests.nvidia.com/gpu", False),
        ("nvidia.com/", False),
        ("nvidia.com/-gpu", False),
        (f"nvidia.com/{'g' * 64}", False),
    ],
)
def test_name_when_it_is_a_plugins_then_extended(name: str, extended: bool) -> None:  # noqa: FBT001
    assert is_extended(name) is extended


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["containers", "initContainers", "resources", "limits", "requests", "cpu", "overhead", GPU]
            ),
            inner,
        )
    ),
    max_leaves=12,
)


@given(anything)
def test_request_when_the_spec_has_any_shape_then_numbers(spec: object) -> None:
    found = pod_request(spec)
    assert found.cpu >= 0
    assert found.memory >= 0
    assert all(count > 0 for count in found.devices.values())
