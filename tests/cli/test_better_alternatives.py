"""`pool plan --live` and `pool plan diff --live` against the emulated clouds: better alternatives with machines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml

from gpukube_sandbox import daemon

if TYPE_CHECKING:
    from pathlib import Path

    from gpukube_sandbox.daemon import SandboxInfo
    from tests.cli.harness import Document, Gpukube

PLACE = {"account": "111122223333", "region": "us-east-1"}
DIFF = ("pool", "plan", "diff", "--live")
RESERVATION = "cr-0123456789abcdef0"
LAST = {"name": "last", "capacity": {"type": "on-demand"}}
RESERVED = {
    "instanceType": "g6.2xlarge",
    "capacity": {"type": "reserved", "reserved": {"eks": {"capacityReservation": RESERVATION}}},
}
SPOT = {"instanceTypes": ["g6.2xlarge", "g6.4xlarge", "gr6.4xlarge"], "capacity": {"type": "spot"}}


@pytest.fixture
def spec(tmp_path: Path, sandbox: SandboxInfo) -> Path:
    """Make the cluster of the specs; return where to write one."""
    daemon.add_eks_cluster(sandbox, PLACE["account"], PLACE["region"], "train")
    return tmp_path / "pools.yaml"


def write(spec: Path, first: Document) -> None:
    """Write a family whose last alternative is on demand."""
    pool = {"name": "l4", "clusters": ["train"], "nodes": {"count": 2}, **first, "alternatives": [LAST]}
    document = {
        "apiVersion": "gpukube.io/v1alpha1",
        "kind": "GPUNodePools",
        "metadata": {"name": "team"},
        "clusters": {"train": {"provider": "eks", **PLACE, "name": "train"}},
        "pools": [pool],
    }
    spec.write_text(yaml.safe_dump(document))


def hints(document: Document) -> list[tuple[str, str]]:
    """Return code and message of what is said about the cluster."""
    (cluster,) = document["clusters"]
    found = [one for one in cluster["diagnostics"] if one["code"] in ("better-alternative", "alternatives-unread")]
    assert {one["severity"] for one in found} <= {"hint"}
    return [(one["code"], one["message"]) for one in found]


def on_last(gpukube: Gpukube, sandbox: SandboxInfo, spec: Path) -> None:
    """Create a family of Spot machines while there are none: its nodes are on demand."""
    write(spec, SPOT)
    daemon.set_stock(sandbox, "eks", 0, kind="spot")
    gpukube.made("-f", spec)


def test_diff_when_spot_machines_are_back_then_a_hint_in_every_format_and_exit_0(
    gpukube: Gpukube, sandbox: SandboxInfo, spec: Path
) -> None:
    on_last(gpukube, sandbox, spec)
    daemon.clear_stock(sandbox)
    found = gpukube(*DIFF, "-f", spec, "-o", "json")
    assert found.code == 0
    document = found.json()
    assert not document["differs"]
    assert document["summary"]["actions"] == {"standby": 1, "no-op": 1}
    ((code, message),) = hints(document)
    said = "l4 (spot) comes before last and may get machines: likely, 9/10 (3 types) in us-east-1a"
    assert (code, message) == ("better-alternative", said)
    for form in ("table", "github", "junit", "markdown"):
        shown = gpukube(*DIFF, "-f", spec, "-o", form)
        assert shown.code == 0
        assert said in " ".join(shown.out.replace("\\", "").split())
    assert 'failures="0"' in gpukube(*DIFF, "-f", spec, "-o", "junit").out


def test_plan_when_spot_machines_are_back_then_the_hint_with_the_command_that_moves_there(
    gpukube: Gpukube, sandbox: SandboxInfo, spec: Path
) -> None:
    on_last(gpukube, sandbox, spec)
    daemon.clear_stock(sandbox)
    found = gpukube("pool", "plan", "--live", "-f", spec)
    assert found.code == 0
    assert f"gpukube pool apply -f {spec} --sandbox --rebalance moves l4 there" in " ".join(found.out.split())

    moved = gpukube("pool", "apply", "-f", spec, "--rebalance", "--yes")  # asks again, however short ago it was refused
    assert (moved.code, "moved from last" in moved.out) == (0, True), moved.out + moved.err
    assert hints(gpukube(*DIFF, "-f", spec, "-o", "json").json()) == []


def test_diff_when_it_is_not_live_then_no_cloud_is_asked(gpukube: Gpukube, sandbox: SandboxInfo, spec: Path) -> None:
    on_last(gpukube, sandbox, spec)
    daemon.clear_stock(sandbox)
    found = gpukube("pool", "plan", "diff", "-f", spec, "-o", "json")
    assert found.code == 0
    assert hints(found.json()) == []
    assert not [one for one in daemon.requests_since(sandbox) if "GetSpotPlacementScores" in json.dumps(one)]


def test_diff_when_nothing_better_has_machines_then_no_hint_and_its_class_with_v(
    gpukube: Gpukube, sandbox: SandboxInfo, spec: Path
) -> None:
    on_last(gpukube, sandbox, spec)
    found = gpukube(*DIFF, "-f", spec, "-o", "json")
    assert found.code == 0
    assert hints(found.json()) == []
    assert "note: " not in found.err
    verbose = gpukube(*DIFF, "-f", spec, "-v")
    assert "note: train/l4: unlikely, 1/10 (3 types) in us-east-1a" in verbose.err


def test_diff_when_it_may_not_ask_then_one_line_with_the_permission_and_exit_0(
    gpukube: Gpukube, sandbox: SandboxInfo, spec: Path
) -> None:
    on_last(gpukube, sandbox, spec)
    daemon.deny_permissions(sandbox, "ec2:GetSpotPlacementScores")
    found = gpukube(*DIFF, "-f", spec, "-o", "json")
    assert found.code == 0
    ((code, message),) = hints(found.json())
    assert code == "alternatives-unread"
    assert message.startswith("EC2 GetSpotPlacementScores failed: ")
    assert "allow ec2:GetSpotPlacementScores" in message


def test_diff_when_the_reservation_has_free_machines_again_then_how_many(
    gpukube: Gpukube, sandbox: SandboxInfo, spec: Path
) -> None:
    write(spec, RESERVED)
    entry = {"id": RESERVATION, "type": "g6.2xlarge", "zone": "us-east-1a", "count": 4}
    daemon.declare(sandbox, "eks", **PLACE, reservations=[entry])
    daemon.set_stock(sandbox, "eks", 1, kind="reserved")
    gpukube.made("-f", spec)
    assert hints(gpukube(*DIFF, "-f", spec, "-o", "json").json()) == []
    daemon.clear_stock(sandbox)
    found = gpukube(*DIFF, "-f", spec, "-o", "json")
    assert found.code == 0
    said = "l4 (reserved) comes before last and may get machines: free, 4 of 4 free in us-east-1a"
    assert hints(found.json()) == [("better-alternative", said)]
