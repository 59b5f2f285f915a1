"""A pool with alternatives is one pool for every command: its name means the alternative that has the nodes."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from gpukube_sandbox import daemon
from sandbox_tests.waiting import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from gpukube_sandbox.daemon import SandboxInfo
    from tests.cli.harness import Gpukube

SPEC = """
apiVersion: gpukube.io/v1alpha1
kind: GPUNodePools
metadata: {name: ml}
clusters:
  train-eks: {provider: eks, account: "111122223333", region: us-east-1, name: train}
pools:
  - name: h100
    clusters: [train-eks]
    gpu: {model: H100-80GB, count: 8}
    nodes: {count: 2}
    alternatives:
      - {name: h100spot, capacity: {type: spot}}
      - {name: h200, gpu: {model: H200-141GB, count: 8}}
"""
ADDRESS = "eks:111122223333/us-east-1/train"


@pytest.fixture
def spec(tmp_path: Path, sandbox: SandboxInfo) -> Path:
    """A family of three whose first two alternatives are sold out."""
    daemon.set_stock(sandbox, "eks", 0, type="p5.48xlarge")
    path = tmp_path / "pools.yaml"
    path.write_text(SPEC)
    return path


@pytest.fixture
def held(gpukube: Gpukube, spec: Path) -> Path:
    """The same family, with the nodes in its third alternative."""
    gpukube.made("-f", spec)
    return spec


def live(info: SandboxInfo) -> set[str]:
    clusters = daemon.status(info)["clusters"]
    assert isinstance(clusters, list)
    pools = {pool["name"] for entry in clusters if entry["provider"] == "eks" for pool in entry["pools"]}
    return pools - {"system"}


def test_create_when_two_alternatives_are_sold_out_then_one_line_names_the_third(
    gpukube: Gpukube, spec: Path, sandbox: SandboxInfo
) -> None:
    done = gpukube("pool", "create", "-f", spec)
    assert done.code == 0, done.err
    assert "done          train-eks/h100  created; h200 has the nodes (alternative 3 of 3)" in done.out
    assert live(sandbox) == {"h200"}


def test_create_when_all_are_sold_out_then_six_and_one_line_per_place(
    gpukube: Gpukube, spec: Path, sandbox: SandboxInfo
) -> None:
    daemon.set_stock(sandbox, "eks", 0, type="p5en.48xlarge")
    failed = gpukube("pool", "create", "-f", spec)
    assert (failed.code, live(sandbox)) == (6, set())
    assert "failed        train-eks/h100  no alternative of h100 got its nodes\n" in failed.out
    lines = [line for line in failed.out.splitlines() if "error[family-stock]" in line]
    assert [line.split(": no machines at ")[0].strip() for line in lines] == [
        "train-eks/h100: error[family-stock]: 2 x p5.48xlarge",
        "train-eks/h100spot: error[family-stock]: 2 x p5.48xlarge, spot",
        "train-eks/h200: error[family-stock]: 2 x p5en.48xlarge",
    ]
    later = (
        r"fix: run the same command again after (\d\d:){2}\d\d UTC \(apply --rebalance asks at once\), or add altern"
    )
    assert len(re.findall(later, failed.out)) == 1


def test_create_when_all_cost_too_much_then_one_and_nothing_is_tried(
    gpukube: Gpukube, spec: Path, sandbox: SandboxInfo
) -> None:
    text = SPEC.replace("    alternatives:", "    maxHourlyPrice: 50\n    alternatives:")
    spec.write_text(text.replace("      - {name: h100spot, capacity: {type: spot}}\n", ""))
    failed = gpukube("pool", "create", "-f", spec, "--live-prices")
    assert (failed.code, live(sandbox)) == (1, set())
    assert "failed        train-eks/h100  every alternative of h100 was skipped for its price\n" in failed.out
    assert failed.out.count("error[family-price]") == 2
    assert failed.out.count("fix: raise maxHourlyPrice, or add alternatives\n") == 1


def test_plan_when_no_pool_has_nodes_then_alternatives_are_short_and_cost_nothing(gpukube: Gpukube, spec: Path) -> None:
    document = gpukube("pool", "plan", "-f", spec, "-o", "json").json()
    pools = {pool["pool"]: pool for pool in document["clusters"][0]["pools"]}
    assert {name: (pool["action"], pool["family"]["role"]) for name, pool in pools.items()} == {
        "h100": ("create", "next"), "h100spot": ("standby", "standby"), "h200": ("standby", "standby"),
    }  # fmt: skip
    assert pools["h100"]["family"]["mostWaitSeconds"] == 3 * 15 * 60
    assert pools["h200"]["family"]["differs"][0] == "type: p5.48xlarge -> p5en.48xlarge"
    assert pools["h200"]["price"]["ifTried"]["max"] > pools["h100"]["price"]["usdPerHour"]["after"]["max"]
    assert document["summary"]["price"]["usdPerHour"]["after"] == pools["h100"]["price"]["usdPerHour"]["after"]
    assert document["summary"]["price"]["unknown"]["after"] == 0
    assert document["summary"]["gpus"] == {"before": 0, "min": 16, "max": 16}
    advised = [found for found in document["clusters"][0]["diagnostics"] if found["code"] == "dra-advised"]
    assert advised[0]["message"].endswith("serves h100")

    text = gpukube("pool", "plan", "-f", spec).out
    assert "plan: 1 to create, 2 standing by, 1 release to install\n" in text
    start = text.index("  . standby  h200")
    facts = [line.split()[0] for line in text[start:].splitlines()[1:4]]
    assert facts == ["rank", "price", "why"]
    assert "waits   at most 45 min for machines, over all 3 alternatives\n" in text


def test_plan_when_an_alternative_costs_too_much_then_it_says_that_it_is_skipped(gpukube: Gpukube, spec: Path) -> None:
    spec.write_text(SPEC.replace("    alternatives:", "    maxHourlyPrice: 120\n    alternatives:").replace(
        "      - {name: h100spot, capacity: {type: spot}}\n", ""
    ))  # fmt: skip
    document = gpukube("pool", "plan", "-f", spec, "--live-prices", "-o", "json").json()
    pools = {pool["pool"]: pool for pool in document["clusters"][0]["pools"]}
    (found,) = [one for one in pools["h200"]["diagnostics"] if one["code"] == "price-limit"]
    assert found["severity"] == "warning"
    assert found["message"].endswith("more than maxHourlyPrice: 120, so it is skipped")
    assert [one["code"] for one in pools["h100"]["diagnostics"]] == []


def test_diff_when_one_alternative_has_the_nodes_then_no_difference_in_any_format(gpukube: Gpukube, held: Path) -> None:
    assert gpukube("pool", "plan", "diff", "-f", held).code == 0
    assert 'failures="0"' in gpukube("pool", "plan", "diff", "-f", held, "-o", "junit").out
    noted = json.loads(gpukube("pool", "plan", "diff", "-f", held, "-o", "codequality").out)
    assert {note["severity"] for note in noted} == {"info"}  # hints about the spec
    assert "| `h100" not in gpukube("pool", "plan", "diff", "-f", held, "-o", "markdown").out
    changes = json.loads(gpukube("pool", "plan", "-f", held, "-o", "terraform-json").out)
    assert [(one["change"]["actions"], one["name"]) for one in changes["resource_changes"]] == [
        (["no-op"], "train-eks_h200")
    ]


def test_list_when_an_alternative_has_the_nodes_then_its_place_is_shown(gpukube: Gpukube, held: Path) -> None:
    document = gpukube("pool", "list", "-f", held, "-o", "json").json()
    (cluster,) = document["clusters"]
    assert cluster["families"] == [
        {"name": "h100", "owner": "ml", "members": ["h100", "h100spot", "h200"], "holder": "h200"}
    ]
    (pool,) = cluster["pools"]
    assert (pool["family"]["rank"], pool["family"]["of"], pool["family"]["role"]) == (3, 3, "holder")
    assert gpukube("pool", "list", "-f", held).out.splitlines()[1].rstrip().endswith("h100 (3 of 3)")
    (alone,) = gpukube("pool", "list", "--cluster", ADDRESS, "-o", "json").json()["clusters"][0]["pools"]
    assert (alone["family"]["name"], alone["family"]["rank"], alone["family"]["role"]) == ("h100", None, "holder")
    assert gpukube("pool", "get", "h100", "-f", held).out.startswith("train-eks/h200\n")


@pytest.mark.parametrize("command", ["verify", "wait"])
def test_check_when_an_alternative_has_the_nodes_then_the_family_is_fine(
    command: str, gpukube: Gpukube, held: Path
) -> None:
    found = gpukube("pool", command, "-f", held)
    assert found.code == 0, found.out
    (line,) = [line for line in found.out.splitlines() if line.startswith("unchanged")]
    assert line.startswith("unchanged     train-eks/h100  ")
    assert line.endswith("h200 has the nodes (alternative 3 of 3)")


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("command", ["verify", "wait"])
def test_check_when_no_alternative_has_nodes_then_one_line_fails(command: str, gpukube: Gpukube, spec: Path) -> None:
    found = gpukube("pool", command, "-f", spec, "--timeout", "1")
    assert found.code == 1
    lines = [line for line in found.out.splitlines() if line.startswith("failed")]
    assert len(lines) == 1
    assert lines[0].startswith("failed        train-eks/h100  ")
    assert lines[0].endswith("no alternative has nodes")


def test_scale_when_named_by_the_family_then_the_pool_with_the_nodes(gpukube: Gpukube, held: Path) -> None:
    done = gpukube("pool", "scale", "h100", "--nodes", "3", "-f", held)
    assert done.code == 0, done.err
    assert "done          train-eks/h200  scaled\n" in done.out


def test_scale_when_an_alternative_stands_by_then_refused_with_the_reason(gpukube: Gpukube, held: Path) -> None:
    refused = gpukube("pool", "scale", "h100spot", "--nodes", "3", "-f", held)
    assert refused.code == 1
    assert "train-eks/h100spot: error[not-there]: it does not exist" in refused.err
    assert "why: h200 has the nodes of h100" in refused.err
    assert "fix: gpukube pool scale h100" in refused.err


def test_scale_when_no_alternative_has_nodes_then_refused(gpukube: Gpukube, spec: Path) -> None:
    refused = gpukube("pool", "scale", "h100", "--nodes", "3", "-f", spec)
    assert refused.code == 1
    assert "train-eks/h100: error[not-there]: it does not exist" in refused.err


@pytest.mark.parametrize("where", ["spec", "address"])
def test_delete_when_named_by_the_family_then_whatever_alternative_is_live(
    where: str, gpukube: Gpukube, held: Path, sandbox: SandboxInfo
) -> None:
    place = ("-f", held) if where == "spec" else ("--cluster", ADDRESS, "--owner", "ml")
    done = gpukube("pool", "delete", "h100", *place, "--yes")
    assert (done.code, live(sandbox)) == (0, set()), done.err
    assert "/h200  deleted\n" in done.out
    assert "does not exist" not in done.out


def test_delete_when_named_by_an_alternative_then_that_one_alone(
    gpukube: Gpukube, held: Path, sandbox: SandboxInfo
) -> None:
    kept = gpukube("pool", "delete", "h100spot", "-f", held, "--yes")
    assert (kept.code, live(sandbox)) == (0, {"h200"})
    assert "unchanged     train-eks/h100spot  does not exist\n" in kept.out
    assert (gpukube("pool", "delete", "h200", "-f", held, "--yes").code, live(sandbox)) == (0, set())
    gone = gpukube("pool", "delete", "h100", "-f", held, "--yes")
    assert gone.code == 0
    assert [line.split()[1] for line in gone.out.splitlines() if line.startswith(("done", "unchanged"))] == [
        "train-eks/h100"
    ]


def test_delete_when_the_pool_with_the_nodes_is_protected_then_refused(
    gpukube: Gpukube, spec: Path, sandbox: SandboxInfo
) -> None:
    spec.write_text(SPEC.replace("    nodes:", "    deletionProtection: true\n    nodes:"))
    assert gpukube("pool", "create", "-f", spec).code == 0
    refused = gpukube("pool", "delete", "h100", "-f", spec, "--yes")
    assert (refused.code, live(sandbox)) == (1, {"h200"})
    assert "train-eks/h200: error[protected]" in refused.err


def test_prune_when_an_alternative_left_the_spec_then_only_that_one_goes(
    gpukube: Gpukube, held: Path, sandbox: SandboxInfo
) -> None:
    held.write_text(SPEC.replace("      - {name: h200, gpu: {model: H200-141GB, count: 8}}\n", ""))
    daemon.set_stock(sandbox, "eks", 9, type="p5.48xlarge")
    planned = gpukube("pool", "plan", "-f", held).out
    assert "warning[family-left]: h200 left the spec, and still has nodes of h100\n" in planned

    def applies() -> bool:
        return gpukube("pool", "apply", "-f", held, "--prune", "--yes").code == 0

    wait_for(applies, lambda: gpukube.log[-1].out)  # right after it had no machines, h100 is not tried again
    assert live(sandbox) == {"h100"}


def test_export_when_a_pool_has_alternatives_then_refused_until_one_is_chosen(gpukube: Gpukube, held: Path) -> None:
    refused = gpukube("pool", "export", "-f", held, "--to", "terraform")
    assert (refused.code, refused.out) == (4, "")
    assert "h100 has alternatives (h100spot, h200), and terraform cannot try them in turn" in refused.err
    chosen = gpukube("pool", "export", "-f", held, "--to", "terraform", "--pool", "h200")
    assert (chosen.code, chosen.out.count('resource "aws_eks_node_group"')) == (0, 1), chosen.err


def test_import_when_an_alternative_has_the_nodes_then_one_pool_with_a_note(gpukube: Gpukube, held: Path) -> None:
    assert held.exists()
    written = gpukube("pool", "import", "--cluster", ADDRESS).out
    assert written.count("- name: ") == 1
    assert "# in the spec of ml it is an alternative of h100; this one has no others\n  - name: h200\n" in written
