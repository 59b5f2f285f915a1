"""The doctor finds nothing on healthy clusters of all clouds, whoever advertises there."""

from __future__ import annotations

import pytest

from tests.cli.harness import EXAMPLES, Gpukube


@pytest.mark.parametrize("example", ["three-clouds", "gke-mps", "eks-bottlerocket-mig", "aks-mig-mixed"])
def test_doctor_when_pools_were_just_created_then_nothing_is_found(example: str, gpukube: Gpukube) -> None:
    spec = EXAMPLES / f"{example}.yaml"
    gpukube.made("-f", spec)
    seen = gpukube("doctor", "-f", spec)
    assert (seen.code, "doctor: nothing found" in seen.out) == (0, True), seen.out
