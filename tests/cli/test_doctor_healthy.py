"""The doctor finds nothing on healthy clusters of all clouds, whoever advertises there."""

from __future__ import annotations

import pytest

from sandbox_tests.waiting import wait_for
from tests.cli.harness import EXAMPLES, Gpukube


@pytest.mark.turns(6)
@pytest.mark.parametrize(
    "example",
    ["three-clouds", "gke-mps", "eks-bottlerocket-mig", "aks-mig-mixed", "aks-operator-driver", "gke-operator"],
)
def test_doctor_when_pools_were_just_created_then_nothing_is_found(example: str, gpukube: Gpukube) -> None:
    spec = EXAMPLES / f"{example}.yaml"
    gpukube.made("-f", spec)

    def is_healthy() -> bool:
        seen = gpukube("doctor", "-f", spec)
        return (seen.code, "doctor: no problems found" in seen.out) == (0, True)

    wait_for(is_healthy, lambda: gpukube.log[-1].out)  # controllers still do their part when devices are there
