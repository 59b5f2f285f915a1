"""`gpukube pool import`: live pools as a spec, and what is said of those that no spec can say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from gpukube_sandbox import daemon
from tests.cli.harness import EXAMPLES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.harness import Gpukube

SINGLE = EXAMPLES / "aks-mig-single.yaml"
ADDRESS = "aks:11111111-2222-3333-4444-555555555555/ml/train"


@pytest.fixture
def made(gpukube: Gpukube) -> Gpukube:
    gpukube.made("-f", SINGLE)
    return gpukube


def test_pool_when_somebody_else_made_it_then_a_spec_that_adopts_it_and_changes_nothing(
    made: Gpukube, tmp_path: Path
) -> None:
    daemon.tamper(made.info, "train", "a100mig", nodeLabels={"team": "vision"}, nodeTaints=[], tags=None)
    done = made("pool", "import", "--cluster", ADDRESS)
    assert (done.code, made.writes()) == (0, [])
    spec = yaml.safe_load(done.out)
    (pool,) = spec["pools"]
    assert (spec["metadata"], list(spec["clusters"])) == ({"name": "train"}, ["train"])
    assert pool == {
        "name": "a100mig",
        "clusters": ["train"],
        "instanceType": "Standard_ND96asr_v4",
        "nodes": {"count": 1},
        "sharing": {"mig": {"profile": "1g.5gb"}},
        "labels": {"team": "vision"},
        "gpuTaint": False,
        "devicePlugin": {"owner": "none"},
    }
    assert "# its nodes have no taint nvidia.com/gpu=present:NoSchedule" in done.out

    file = tmp_path / "imported.yaml"
    file.write_text(done.out)
    (planned,) = made("pool", "plan", "-f", file, "--adopt", "-o", "json").pools()
    assert (planned["action"], planned["diagnostics"]) == ("adopt", [])
    assert made("pool", "apply", "-f", file, "--adopt", "--yes").code == 0
    assert made("pool", "plan", "diff", "-f", file).code == 0


def test_pool_when_it_is_ours_then_the_sharing_is_read_from_the_release(made: Gpukube) -> None:
    (pool,) = yaml.safe_load(made("pool", "import", "--cluster", ADDRESS, "--owner", "ml").out)["pools"]
    assert pool["sharing"] == {"mig": {"profile": "1g.5gb", "strategy": "single"}}
    assert "devicePlugin" not in pool


DRA = {
    "eks": ("eks:111122223333/us-east-1/claims", EXAMPLES / "eks-dra.yaml"),
    "aks": ("aks:11111111-2222-3333-4444-555555555555/ml/driven", EXAMPLES / "aks-operator-driver.yaml"),
}
"""Pools that NVIDIA's DRA driver serves: MIG by the GPU Operator, on AKS with the operator's driver."""


@pytest.mark.parametrize("cloud", DRA)
def test_pools_when_the_dra_driver_serves_them_then_their_spec_says_so(
    gpukube: Gpukube, cloud: str, tmp_path: Path
) -> None:
    address, example = DRA[cloud]
    spec = yaml.safe_load(example.read_text("utf-8"))
    for pool in spec["pools"]:
        pool["devicePlugin"] = {"owner": "dra"}
        pool["sharing"] = {key: value for key, value in pool.get("sharing", {}).items() if key == "mig"}
    file = tmp_path / "pools.yaml"
    file.write_text(yaml.safe_dump(spec), "utf-8")
    gpukube.made("-f", file)
    imported = gpukube("pool", "import", "--cluster", address, "--owner", spec["metadata"]["name"])
    found = {pool["name"]: pool for pool in yaml.safe_load(imported.out)["pools"]}
    for pool in spec["pools"]:
        one = found[pool["name"]]
        assert one["devicePlugin"] == {"owner": "dra"}
        assert one.get("driver") == pool.get("driver")
        assert one.get("sharing", {}).get("mig", {}).keys() <= {"profile", "layout"}
        assert bool(one.get("sharing")) == bool(pool["sharing"])
    again = tmp_path / "imported.yaml"
    again.write_text(imported.out, "utf-8")
    assert gpukube("pool", "plan", "diff", "-f", again).code == 0


def test_pool_when_no_spec_can_say_it_then_left_out_with_the_reason(made: Gpukube) -> None:
    daemon.tamper(made.info, "train", "a100mig", maxPods=5)
    done = made("pool", "import", "--cluster", ADDRESS)
    assert done.code == 0
    assert yaml.safe_load(done.out)["pools"] == []
    assert "skipped a100mig: " in done.err


def test_pool_when_something_else_manages_it_then_adopted_by_name_on_its_own_option(
    made: Gpukube, tmp_path: Path
) -> None:
    daemon.tamper(made.info, "train", "a100mig", nodeLabels={}, tags={"avm_yor_trace": "e82d0232"})
    file = tmp_path / "imported.yaml"
    file.write_text(made("pool", "import", "--cluster", ADDRESS).out)
    text = file.read_text().replace("\n  # ", " ")
    assert "(traced by yor) manages it (tag avm_yor_trace=e82d0232); to adopt it anyway: " in text
    for words in (("plan",), ("create",), ("apply", "--yes")):
        refused = made("pool", *words, "-f", file, "--adopt")
        assert (refused.code, made.writes()) == (0 if words == ("plan",) else 1, [])
        assert "error[managed-pool]" in refused.out + refused.err
    for name in ((), ("--pool", "a100*")):
        refused = made("pool", "apply", "-f", file, "--adopt-managed", *name, "--yes")
        assert (refused.code, "error[adopt-managed]" in refused.err, made.writes()) == (4, True, [])

    plan, options = tmp_path / "saved.gpuplan", ("-f", file, "--adopt-managed", "--pool", "a100mig")
    (planned,) = made("pool", "plan", *options, "--out", plan, "-o", "json").pools()
    assert (planned["action"], planned["needs"]) == ("adopt", ["--adopt-managed"])
    assert [found["code"] for found in planned["diagnostics"]] == ["managed-pool"]
    assert made("pool", "apply", plan).code == 0
    assert made("pool", "plan", "diff", "-f", file).code == 0


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--cluster", "train"), "import needs the address of one cluster"),
        ((), "import needs the address of one cluster"),
        (("--cluster", ADDRESS, "--pool", "x*"), "--pool x* matches no live GPU pool"),
    ],
)
def test_import_when_it_is_not_said_what_then_four(made: Gpukube, words: tuple[str, ...], text: str) -> None:
    refused = made("pool", "import", *words)
    assert (refused.code, text in refused.err) == (4, True), refused.err
