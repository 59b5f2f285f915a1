"""The doctor against the emulated cluster: each fault is found by its check, and by no other as an error."""

from __future__ import annotations

from tests.cli.harness import EXAMPLES, Gpukube

SINGLE = EXAMPLES / "aks-mig-single.yaml"


def test_doctor_when_a_pool_is_as_promised_then_healthy(gpukube: Gpukube) -> None:
    gpukube.made("-f", SINGLE)
    seen = gpukube("doctor", "-f", SINGLE, "-o", "json")
    assert (seen.code, seen.json()["summary"]) == (0, {}), seen.out
