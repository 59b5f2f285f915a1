"""A pool that is on any of its clusters is one pool for every command, wherever it has its nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from gpukube_sandbox import daemon
from tests.cli.harness import EXAMPLES

if TYPE_CHECKING:
    from pathlib import Path

    from gpukube_sandbox.daemon import SandboxInfo
    from tests.cli.harness import Gpukube


@pytest.fixture
def spec(tmp_path: Path, sandbox: SandboxInfo) -> Path:
    """The example's pool on AKS, which is sold out, or GKE."""
    daemon.set_stock(sandbox, "aks", 0, type="Standard_NC4as_T4_v3")
    daemon.set_stock(sandbox, "aks", 0, type="Standard_NC8as_T4_v3")
    document = yaml.safe_load((EXAMPLES / "alternatives.yaml").read_text("utf-8"))
    document["pools"] = [pool for pool in document["pools"] if pool["name"] == "t4"]
    path = tmp_path / "pools.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


@pytest.fixture
def held(gpukube: Gpukube, spec: Path) -> Path:
    """The same pool with its nodes on GKE."""
    gpukube.made("-f", spec)
    return spec


def lines(text: str) -> list[list[str]]:
    """Return outcome and pool of each line of a report."""
    outcomes = ("done", "unchanged", "failed", "not-attempted", "differs")
    return [line.split()[:2] for line in text.splitlines() if line.startswith(outcomes)]


def test_plan_when_no_cluster_has_it_then_one_is_created_and_counted(gpukube: Gpukube, spec: Path) -> None:
    document = gpukube("pool", "plan", "-f", spec, "-o", "json").json()
    pools = [pool for cluster in document["clusters"] for pool in cluster["pools"]]
    assert [(pool["action"], pool["family"]["rank"], pool["family"]["of"]) for pool in pools] == [
        ("create", 1, 4), ("standby", 2, 4), ("standby", 3, 4), ("standby", 4, 4),
    ]  # fmt: skip
    assert pools[0]["family"]["mostWaitSeconds"] == (2 * 30 + 2 * 45) * 60
    assert document["summary"]["gpus"]["max"] == 1


@pytest.mark.parametrize("command", ["verify", "wait"])
def test_check_when_one_cluster_has_it_then_the_others_are_fine_without(
    command: str, gpukube: Gpukube, held: Path
) -> None:
    found = gpukube("pool", command, "-f", held)
    assert (found.code, lines(found.out)) == (0, [["unchanged", "alt-gke/t4"]]), found.out
    assert "t4 has the nodes (alternative 3 of 4)\n" in found.out
    assert gpukube("pool", "plan", "diff", "-f", held).code == 0


def test_verify_when_the_cluster_with_the_nodes_cannot_be_read_then_that_is_the_failure(
    gpukube: Gpukube, held: Path, sandbox: SandboxInfo
) -> None:
    daemon.add_fault(sandbox, "status", service="gke", status=403, times=0)
    found = gpukube("pool", "verify", "-f", held, "--timeout", "1")
    assert found.code == 5, found.out + found.err
    assert lines(found.out) == [["not-attempted", "alt-gke/t4"]]


def test_scale_and_delete_when_one_cluster_has_it_then_there(gpukube: Gpukube, held: Path) -> None:
    scaled = gpukube("pool", "scale", "t4", "--nodes", "2", "-f", held)
    assert (scaled.code, lines(scaled.out)) == (0, [["done", "alt-gke/t4"]]), scaled.err
    deleted = gpukube("pool", "delete", "t4", "-f", held, "--yes")
    assert (deleted.code, lines(deleted.out)) == (0, [["done", "alt-gke/t4"]]), deleted.err
    gone = gpukube("pool", "delete", "t4", "-f", held, "--yes")
    assert (gone.code, [pool for _, pool in lines(gone.out)]) == (0, ["alt-aks/t4", "alt-gke/t4"])
