"""What pods must tolerate by themselves: taints whose key is no resource that they ask for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpukube.core.tolerations import pod_tolerations
from gpukube.core.values import Promise, Taint, Toleration
from tests.unit.cluster.builders import desire

GPU = Taint("nvidia.com/gpu", "present", "NoSchedule")
SPOT = Taint("kubernetes.azure.com/scalesetpriority", "spot", "NoSchedule")
ANY_GPU = Toleration("nvidia.com/gpu", "Exists", "", "NoSchedule")

CASES: dict[str, tuple[tuple[str, ...], tuple[Taint, ...], tuple[Toleration, ...]]] = {
    # The resources of the pool, its taints, and what pods need.
    "whole GPUs": (("nvidia.com/gpu",), (GPU,), ()),
    "no taint": (("nvidia.com/mig-1g.5gb",), (), ()),
    "mixed": (("nvidia.com/mig-1g.5gb", "nvidia.com/mig-2g.10gb"), (GPU,), (ANY_GPU,)),
    "renamed shares": (("nvidia.com/gpu.shared",), (GPU,), (ANY_GPU,)),
    "a taint by the name of one of two": (
        ("nvidia.com/mig-1g.5gb", "nvidia.com/mig-2g.10gb"),
        (Taint("nvidia.com/mig-1g.5gb", "", "NoSchedule"),),
        (Toleration("nvidia.com/mig-1g.5gb", "Exists", "", "NoSchedule"),),
    ),
    "spot": (("nvidia.com/gpu",), (GPU, SPOT), (Toleration(SPOT.key, "Equal", "spot", "NoSchedule"),)),
    "one of their own": (
        ("nvidia.com/gpu",),
        (Taint("sku", "gpu", "NoSchedule"),),
        (Toleration("sku", "Equal", "gpu", "NoSchedule"),),
    ),
    "one that evicts": (
        ("nvidia.com/gpu",),
        (replace(GPU, effect="NoExecute"),),
        (Toleration("nvidia.com/gpu", "Exists", "", "NoExecute"),),
    ),
    "one that only prefers": (("nvidia.com/gpu",), (Taint("sku", "gpu", "PreferNoSchedule"),), ()),
}


@pytest.mark.parametrize("case", CASES)
def test_tolerations_when_the_admission_adds_some_then_the_others(case: str) -> None:
    resources, taints, needed = CASES[case]
    pool = replace(desire(), effective_taints=taints)
    pool = replace(pool, promise=Promise(dict.fromkeys(resources, 1), pool.promise.nodes))
    assert pod_tolerations(pool, tolerates_resources=True) == needed


def test_tolerations_when_the_admission_adds_none_then_the_usual_taint_too() -> None:
    pool = replace(desire(), effective_taints=(GPU,))
    assert pod_tolerations(pool, tolerates_resources=False) == (ANY_GPU,)
