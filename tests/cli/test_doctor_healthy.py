"""The doctor finds nothing on healthy clusters of all clouds, whoever advertises there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube_sandbox import daemon
from sandbox_tests.waiting import wait_for
from tests.cli.harness import EXAMPLES, edited_spec
from tests.networks import install_networks

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.harness import Document, Gpukube


@pytest.mark.turns(6)
@pytest.mark.parametrize(
    "example",
    [
        "three-clouds", "gke-mps", "eks-bottlerocket-mig", "aks-mig-mixed", "aks-operator-driver", "gke-operator",
        "eks-dra", "aks-dra",
    ],
)  # fmt: skip
def test_doctor_when_pools_were_just_created_then_nothing_is_found(example: str, gpukube: Gpukube) -> None:
    spec = EXAMPLES / f"{example}.yaml"
    gpukube.made("-f", spec)
    require_healthy(gpukube, spec)


def test_doctor_when_the_dra_driver_serves_gke_then_nothing_is_found(gpukube: Gpukube, tmp_path: Path) -> None:
    spec = edited_spec("gke-dra", tmp_path, lambda it: it["pools"][0].update(nodes={"count": 1}))
    version = "1.35.2-gke.1000000"
    daemon.add_gke_cluster(gpukube.info, "ml-prod", "us-central1", "claims", kubernetes_version=version)
    install_networks(gpukube, spec)
    gpukube.made("-f", spec)
    require_healthy(gpukube, spec)


def test_doctor_when_google_s_driver_installer_is_missing_then_it_is_the_one_finding(
    gpukube: Gpukube, tmp_path: Path
) -> None:
    def own_driver(document: Document) -> None:
        document["pools"][0].update(nodes={"count": 1}, driver={"owner": "none"})

    spec = edited_spec("gke-dra", tmp_path, own_driver)
    version = "1.35.2-gke.1000000"
    daemon.add_gke_cluster(gpukube.info, "ml-prod", "us-central1", "claims", kubernetes_version=version)
    assert gpukube("pool", "create", "-f", spec, "--no-wait").code == 0

    def is_found() -> bool:
        (cluster,) = gpukube("doctor", "-f", spec, "-o", "json").json()["clusters"]
        found = [item["check"] for item in cluster["ailments"]]
        return found == ["driver-of-nobody"] and "no devices" in cluster["ailments"][0]["evidence"][0]

    wait_for(is_found, lambda: gpukube.log[-1].out)


def require_healthy(gpukube: Gpukube, spec: Path) -> None:
    def is_healthy() -> bool:
        seen = gpukube("doctor", "-f", spec)
        return (seen.code, "doctor: no problems found" in seen.out) == (0, True)

    wait_for(is_healthy, lambda: gpukube.log[-1].out)  # controllers still do their part when devices are there
