"""`gpukube pool export`: the clouds' own tools run what is written, and the pools that they make match the spec."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest
import yaml

from gpukube_sandbox.environment import env
from sandbox_tests.kube.clients import run_client
from tests.cli.harness import EXAMPLES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from _pytest.mark.structures import ParameterSet

    from tests.cli.harness import Gpukube

TOOLS = {"eks": "aws", "aks": "az", "gke": "gcloud"}
IN_TURNS = ("eks-capacity-block", "aks-mig-single", "gke-timesharing")
"""Two commands of `az` or `gcloud` take ten seconds: one example of each cloud takes turns, the others are slow."""


def _examples() -> list[ParameterSet]:
    found = []
    for file in sorted(EXAMPLES.glob("*.yaml"), key=lambda file: (file.stem not in IN_TURNS, file.stem)):
        for key, cluster in yaml.safe_load(file.read_text())["clusters"].items():
            tool = TOOLS[cluster["provider"]]
            marks = [pytest.mark.clients(tool), *([] if file.stem in IN_TURNS else [pytest.mark.slow])]
            found.append(pytest.param(file, key, tool, marks=marks, id=f"{file.stem}-{tool}"))
    return found


def _variables(gpukube: Gpukube) -> Mapping[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return kept | env(gpukube.info)


@pytest.mark.turns(3)
@pytest.mark.parametrize(("file", "key", "tool"), _examples())
def test_script_when_the_tool_runs_it_then_the_pools_match_the_spec(
    gpukube: Gpukube, tmp_path: Path, file: Path, key: str, tool: str
) -> None:
    written = gpukube("pool", "export", "-f", file, "--cluster", key, "--to", tool)
    assert written.code == 0, written.err
    done = run_client(["sh", "-c", written.out], _variables(gpukube), cwd=tmp_path)
    assert done.returncode == 0, f"{written.out}\n{done.stderr}"
    compared = gpukube("pool", "plan", "diff", "-f", file, "--cluster", key, "--skip-cluster", "-o", "json")
    assert compared.code == 0, [pool["changes"] for pool in compared.pools()]


BLUE_GREEN = """
apiVersion: gpukube.io/v1alpha1
kind: GPUNodePools
metadata: {name: ml}
clusters:
  train-gke: {provider: gke, project: ml-prod, location: us-central1-a, name: train}
pools:
  - name: bluegreen
    clusters: [train-gke]
    instanceType: g2-standard-12
    nodes: {count: 1}
    gke: {upgradeSettings: {strategy: BLUE_GREEN}}
  - name: after
    clusters: [train-gke]
    instanceType: g2-standard-12
    nodes: {count: 1}
"""


@pytest.mark.slow
@pytest.mark.clients("gcloud")
def test_script_when_a_pool_is_upgraded_blue_green_then_gcloud_makes_it_and_those_after_it(
    gpukube: Gpukube, tmp_path: Path
) -> None:
    (tmp_path / "pools.yaml").write_text(BLUE_GREEN)
    written = gpukube("pool", "export", "-f", tmp_path / "pools.yaml", "--to", "gcloud")
    done = run_client(["sh", "-c", written.out], _variables(gpukube), cwd=tmp_path)
    assert done.returncode == 0, f"{written.out}\n{done.stderr}"
    compared = gpukube("pool", "plan", "diff", "-f", tmp_path / "pools.yaml", "--skip-cluster")
    assert compared.code == 0, compared.out


PROVIDER = """
terraform {
  required_providers {
    aws = {
      source = "hashicorp/aws"
    }
  }
}

provider "aws" {}
"""


@pytest.mark.clients("terraform")
def test_hcl_when_terraform_takes_live_pools_over_then_it_changes_nothing(gpukube: Gpukube, tmp_path: Path) -> None:
    gpukube.made("-f", EXAMPLES / "eks-timeslicing.yaml")
    written = gpukube("pool", "export", "--cluster", "eks:111122223333/us-east-1/train", "--to", "terraform")
    assert written.code == 0, written.err
    (tmp_path / "pools.tf").write_text(written.out)
    (tmp_path / "provider.tf").write_text(PROVIDER)
    begun = run_client(["terraform", "init", "-no-color"], os.environ, cwd=tmp_path)
    if begun.returncode:
        pytest.skip(f"terraform found no hashicorp/aws (a mirror: TF_CLI_ARGS_init=-plugin-dir=DIR): {begun.stderr}")
    if _is_before(tmp_path, (6, 26)):  # the release that has it is noted at the top of the export
        lines = written.out.splitlines(keepends=True)
        (tmp_path / "pools.tf").write_text("".join(line for line in lines if "update_strategy =" not in line))
    planned = run_client(["terraform", "plan", "-no-color"], _variables(gpukube), cwd=tmp_path)
    assert "Plan: 2 to import, 0 to add, 0 to change, 0 to destroy." in planned.stdout, planned.stdout + planned.stderr


def _is_before(place: Path, release: tuple[int, int]) -> bool:
    """Whether terraform init has chosen an older hashicorp/aws."""
    chosen = re.search(r'version *= "(\d+)\.(\d+)', (place / ".terraform.lock.hcl").read_text())
    assert chosen is not None
    return (int(chosen[1]), int(chosen[2])) < release
