"""`gpukube pool export`: the clouds' own tools run what is written, and the pools that they make match the spec."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
import yaml

from gpukube.sandbox.environment import env
from tests.cli.harness import EXAMPLES
from tests.sandbox.kube.clients import run_client

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
    planned = run_client(["terraform", "plan", "-no-color"], _variables(gpukube), cwd=tmp_path)
    assert "Plan: 2 to import, 0 to add, 0 to change, 0 to destroy." in planned.stdout, planned.stdout + planned.stderr
