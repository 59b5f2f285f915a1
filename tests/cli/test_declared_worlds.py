"""What a spec declares in the sandbox when gpukube first meets it, and what it says of that."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gpukube import api
from gpukube.cli.sandbox import Shelter
from gpukube.engine.plan.prepare import prepare_addresses
from gpukube.errors import SpecError
from gpukube_sandbox import daemon
from gpukube_sandbox.worldfile import read_world
from sandbox_tests.sandboxes import emptied

if TYPE_CHECKING:
    from gpukube_sandbox.daemon import SandboxInfo

SPEED = 5000.0
ROOT = Path(__file__).resolve().parents[2]
SPEC = """
apiVersion: gpukube.io/v1alpha1
kind: GPUNodePools
metadata: {name: ml}
clusters:
  own: {provider: eks, account: "111122223333", region: us-east-1, name: train}
pools:
  - name: t4
    clusters: [own]
    instanceType: g4dn.xlarge
    nodes: {count: 1}
    eks: {nodeRole: "arn:aws:iam::111122223333:role/nodes", subnets: [subnet-0a1b2c3d]}
"""
DECLARED = "sandbox: declared cluster own, role arn:aws:iam::111122223333:role/nodes, subnet subnet-0a1b2c3d\n"


@pytest.fixture
def sandbox(running_sandbox: SandboxInfo) -> SandboxInfo:
    return emptied(running_sandbox, SPEED)


def known(sandbox: SandboxInfo, field: str) -> list[str]:
    """One field of every cluster that the sandbox has."""
    clusters: Any = daemon.status(sandbox)["clusters"]
    return [str(cluster[field]) for cluster in clusters]


def test_register_when_a_spec_is_first_met_then_what_it_needs_is_declared_and_told_once(
    sandbox: SandboxInfo, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "pools.yaml"
    path.write_text(SPEC)
    prepared = api.prepare(api.load([str(path)], environ={}))
    Shelter(sandbox).register(prepared)
    assert capsys.readouterr().err == DECLARED
    Shelter(sandbox).register(prepared)
    assert capsys.readouterr().err == ""
    assert known(sandbox, "name") == ["train"]


def test_register_when_a_cluster_is_named_by_its_address_then_nothing_is_declared(
    sandbox: SandboxInfo, capsys: pytest.CaptureFixture[str]
) -> None:
    Shelter(sandbox).register(prepare_addresses(["eks:111122223333/us-east-1/train"]))
    assert (known(sandbox, "name"), capsys.readouterr().err) == ([], "")


def test_populate_when_the_world_of_the_examples_then_all_of_it_is_there(sandbox: SandboxInfo) -> None:
    entries = read_world(str(ROOT / "examples" / "sandbox" / "world.yaml"))
    Shelter(sandbox).populate([*entries])
    assert known(sandbox, "provider") == ["aks", "eks", "gke"]
    again = [daemon.call(sandbox, "POST", "things", entry.body)["made"] for entry in entries if entry.part == "things"]
    assert again == [[], [], []]


WRONG = {
    "clusters:\n  - {provider: eks, account: '1', region: us-east-1, name: train}\n": (
        "2:21: account is '1'; it must have twelve digits"
    ),
    "clusters:\n  - {provider: gke, name: train}\n": "2:5: project is missing",
    "clusters:\n  - {provider: oke, name: train}\n": "2:6: provider is oke; there are aks, eks, gke",
    "things:\n  - resources: []\n": "2:5: provider is missing; there are aks, eks, gke",
    "things:\n  - {provider: aks, resources: [x]}\n": (
        "2:33: x is not the id of a resource that a pool can name; the types are "
        "Microsoft.Compute/capacityReservationGroups, Microsoft.Compute/hostGroups, "
        "Microsoft.Compute/proximityPlacementGroups, Microsoft.Network/publicIPPrefixes, "
        "Microsoft.Network/virtualNetworks"
    ),
    "things:\n  - provider: gke\n    project: p\n    reservations:\n      - {name: r, size: 2}\n": (
        '5:19: there is no key "size"; there are assuredCount, count, deleteAtTime, inUseByOthers, machineType, name, '
        "status, zone"
    ),
}


@pytest.mark.parametrize("text", WRONG)
def test_populate_when_the_sandbox_does_not_take_an_entry_then_told_with_its_place(
    sandbox: SandboxInfo, tmp_path: Path, text: str
) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(text)
    with pytest.raises(SpecError) as caught:
        Shelter(sandbox).populate([*read_world(str(path))])
    (found,) = caught.value.diagnostics
    assert (found.code, f"{found.where}: {found.seen}") == ("sandbox-world", f"{path}:{WRONG[text]}")
    assert found.fix == "see docs/sandbox.md, What exists, for the format"
