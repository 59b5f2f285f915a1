"""Every example is right, is planned without a word of warning that is not meant, is created, and is proven."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from tests.cli.harness import EXAMPLES, Document, Gpukube
from tests.networks import install_networks

if TYPE_CHECKING:
    from pathlib import Path

FILES = sorted(EXAMPLES.glob("*.yaml"))
NETWORKS = {
    "aks-ndh100": {"rdma/ib": 8},
    "eks-p5-efa": {"vpc.amazonaws.com/efa": 32},
    "gke-a3mega": {"networking.gke.io.networks/*": 8},
}
"""Examples with a network between GPUs -> its devices on each node."""
NEEDED = {"aks-mig-single", "aks-mig-mixed", "aks-timeslicing", "aks-spot-autoscaling", "aks-custom-taint"}


def by_name(file: Path) -> str:
    return file.stem


def test_examples_when_listed_then_those_promised_are_there() -> None:
    assert {file.stem for file in FILES} >= NEEDED


def test_examples_when_all_are_loaded_together_then_no_two_clash(gpukube: Gpukube) -> None:
    together = gpukube("validate", "-f", EXAMPLES, "-o", "json")
    assert (together.code, together.json()["pools"] >= len(FILES)) == (0, True), together.err


@pytest.mark.parametrize("file", FILES, ids=by_name)
def test_example_when_read_then_it_says_what_it_shows(file: Path) -> None:
    assert file.read_text("utf-8").startswith("# ")


def require_proof(proof: Document, plan: Document, network: Document) -> None:
    """Check that every node shows what the plan says, and that there is one unless the pool may be empty."""
    if plan["nodes"]["autoscaled"] and plan["nodes"]["min"] == 0:
        assert proof["status"] in ("proven", "empty")
    else:
        assert (proof["status"], len(proof["nodes"]) >= 1) == ("proven", True)
    for node in proof["nodes"]:
        assert node["allocatable"] == {**plan["devices"]["perNode"], **network}


@pytest.mark.turns(9)  # all are created and proven in each run, side by side
@pytest.mark.parametrize("file", FILES, ids=by_name)
def test_example_when_followed_then_valid_planned_created_proven_the_same_and_gone(
    file: Path, gpukube: Gpukube
) -> None:
    assert gpukube("validate", "-f", file).code == 0
    planned = gpukube("pool", "plan", "-f", file, "-o", "json")
    assert planned.code == 0
    assert {pool["action"] for pool in planned.pools()} - {"standby"} == {"create"}
    install_networks(gpukube, file)
    created = gpukube("pool", "create", "-f", file, "-o", "json")
    assert created.code == 0, created.out + created.err
    promised = {pool["pool"]: pool for pool in planned.pools()}
    for pool in created.pools():
        require_proof(pool["proof"], promised[pool["pool"]], NETWORKS.get(file.stem, {}))
    assert gpukube("pool", "plan", "diff", "-f", file).code == 0
    names = [pool["name"] for pool in yaml.safe_load(file.read_text("utf-8"))["pools"]]
    assert gpukube("pool", "delete", *names, "-f", file, "--yes").code == 0
    assert gpukube("pool", "plan", "-f", file, "-o", "json").pools()[0]["action"] == "create"


def test_examples_when_created_side_by_side_then_one_release_per_cluster_serves_all(gpukube: Gpukube) -> None:
    assert gpukube("pool", "plan", "-f", EXAMPLES).code == 0
    install_networks(gpukube, *FILES)
    together = gpukube("pool", "create", "-f", EXAMPLES, "-o", "json")
    assert together.code == 0, together.out + together.err
    assert {pool["proof"]["status"] for pool in together.pools()} <= {"proven", "empty"}
    again = gpukube("pool", "create", "-f", EXAMPLES)
    assert (again.code, gpukube.writes()) == (0, [])
