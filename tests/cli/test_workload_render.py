"""`gpukube workload render`: the manifest on stdout, notes on stderr, refusals that name pools and clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from gpukube.cli.commands.workload import _KINDS
from gpukube.workload.render.manifests import KINDS
from tests.cli.harness import EXAMPLES
from tests.unit.workload.specs import CLUSTERS, POOLS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.harness import Gpukube


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "pools.yaml"
    pools = "".join(f"  - {POOLS[name]}\n" for name in ("whole", "mixed"))
    path.write_text(CLUSTERS + pools, "utf-8")
    return path


def test_render_when_piped_then_yaml_alone_on_stdout(gpukube: Gpukube, spec: Path) -> None:
    options = ("-f", spec, "--pool", "mixed", "--name", "try")
    shown = gpukube("workload", "render", "pod", *options, "--", "sh", "-c", "a b", sandbox=False)
    assert shown.code == 0, shown.err
    (pod,) = yaml.safe_load_all(shown.out)
    assert pod["metadata"] == {"name": "try"}
    assert pod["spec"]["containers"][0]["command"] == ["sh", "-c", "a b"]
    assert "note: a node of train-aks/mixed is assumed to fit 18 pods" in shown.err


REFUSED = {
    "no such kind": (("pd",), '"pd" is not a kind', "write pod"),
    "no spec": (("pod",), "no spec given", "add -f pools.yaml"),
    "no pool named": (("pod", "-f", "SPEC"), "the spec has 2 pools", "add --pool whole or mixed"),
    "no such pool": (("pod", "-f", "SPEC", "--pool", "mixd"), 'no pool "mixd"', "did you mean mixed?"),
    "several clusters": (
        ("pod", "-f", "SPEC", "--pool", "whole"), "pool whole is on 3 clusters",
        "add --cluster train-eks, train-aks or train-gke",
    ),
    "no file of a runtime environment": (
        ("rayjob", "-f", "SPEC", "--pool", "mixed", "--runtime-env", "gone.yaml"),
        "cannot read gone.yaml", "give the path of a readable file",
    ),
    "a runtime environment that is none": (
        ("rayjob", "-f", "SPEC", "--pool", "mixed", "--runtime-env", "/dev/null"),
        "/dev/null does not contain a mapping", "pip: [diffusers]",
    ),
    "more than a node has": (
        ("pod", "-f", "SPEC", "--pool", "whole", "--cluster", "train-gke", "--gpus", "9"),
        "a node of train-gke/whole has 8 nvidia.com/gpu", "write --gpus 8 or less",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_render_when_it_cannot_be_then_nothing_on_stdout(gpukube: Gpukube, spec: Path, case: str) -> None:
    words, message, fix = REFUSED[case]
    shown = gpukube("workload", "render", *(spec if word == "SPEC" else word for word in words), sandbox=False)
    assert (shown.code, shown.out) == (4, "")
    assert message in shown.err
    assert fix in shown.err


def test_kinds_when_completed_then_those_that_are_rendered() -> None:
    assert _KINDS == KINDS


def test_create_when_pools_are_made_then_ends_with_the_command_for_a_first_pod(gpukube: Gpukube) -> None:
    options = ("-f", EXAMPLES / "aks-mig-single.yaml", "--set", "pools[0].nodes.count=2")
    planned = gpukube("pool", "plan", *options)
    assert "first pod" not in planned.err, "there is no such pool yet"
    made = gpukube.made(*options)
    (line,) = [line for line in made.err.splitlines() if line.startswith("first pod")]
    assert line == (
        f"first pod: gpukube workload render pod -f {options[1]} --set 'pools[0].nodes.count=2' --pool a100mig "
        "--cluster train-aks | kubectl apply -f -"
    )
    again = gpukube("pool", "create", *options, "-o", "json")
    assert (again.code, "first pod" in again.err) == (0, False)
