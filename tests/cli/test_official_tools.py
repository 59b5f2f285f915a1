"""What gpukube made, as the clouds' own commands read it from the sandbox."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from gpukube_sandbox.environment import env
from tests.cli.harness import EXAMPLES, Document, Gpukube

if TYPE_CHECKING:
    from gpukube_sandbox.daemon import SandboxInfo

SPEC = EXAMPLES / "three-clouds.yaml"


def told_by(info: SandboxInfo, *words: str) -> object:
    """Run a command in the environment that the sandbox gives out, and read its JSON."""
    kept = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME", "LANG"}}
    done = subprocess.run(words, env=kept | env(info), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def document(told: object) -> Document:
    """Insist on a JSON object."""
    assert isinstance(told, dict)
    return told


@pytest.mark.clients("aws")
def test_aws_when_it_lists_and_describes_then_the_node_groups_that_gpukube_made(gpukube: Gpukube) -> None:
    gpukube.made("-f", SPEC, "--cluster", "train-eks")
    cluster = ("--cluster-name", "train")
    listed = document(told_by(gpukube.info, "aws", "eks", "list-nodegroups", *cluster))
    assert {"a100slices", "t4slices"} <= set(listed["nodegroups"])
    words = ("eks", "describe-nodegroup", *cluster, "--nodegroup-name", "a100slices")
    group = document(told_by(gpukube.info, "aws", *words))["nodegroup"]
    assert (group["status"], group["amiType"]) == ("ACTIVE", "AL2023_x86_64_NVIDIA")
    assert (group["instanceTypes"], group["scalingConfig"]["desiredSize"]) == (["p4d.24xlarge"], 1)
    assert group["launchTemplate"]["name"] == "gpukube/train/a100slices"
    assert group["labels"]["gpukube.io/pool"] == "a100slices"
    assert group["labels"]["nvidia.com/mig.config"] == "all-1g.5gb"
    assert [(taint["key"], taint["effect"]) for taint in group["taints"]] == [("nvidia.com/gpu", "NO_SCHEDULE")]


@pytest.mark.clients("gcloud")
def test_gcloud_when_it_lists_and_describes_then_the_node_pools_that_gpukube_made(gpukube: Gpukube) -> None:
    gpukube.made("-f", SPEC, "--cluster", "train-gke")
    pools = ("gcloud", "container", "node-pools")
    place = ("--cluster=train", "--location=us-central1", "--format=json")
    listed = told_by(gpukube.info, *pools, "list", *place)
    assert isinstance(listed, list)
    assert {"a100slices", "t4slices"} <= {pool["name"] for pool in listed}
    pool = document(told_by(gpukube.info, *pools, "describe", "a100slices", *place))
    (accelerator,) = pool["config"]["accelerators"]
    assert (pool["status"], pool["config"]["machineType"]) == ("RUNNING", "a2-highgpu-8g")
    assert (accelerator["acceleratorType"], accelerator["acceleratorCount"]) == ("nvidia-tesla-a100", "8")
    assert accelerator["gpuPartitionSize"] == "1g.5gb"
    assert pool["config"]["labels"]["gpukube.io/pool"] == "a100slices"
    assert [taint["key"] for taint in pool["config"]["taints"]] == ["nvidia.com/gpu"]


@pytest.mark.clients("gcloud")
def test_gcloud_when_it_replaces_the_labels_of_a_pool_then_diff_shows_it_and_adopting_restores_them(
    gpukube: Gpukube,
) -> None:
    spec = ("-f", SPEC, "--cluster", "train-gke")
    gpukube.made(*spec)
    pool = ("gcloud", "container", "node-pools", "{}", "t4slices", "--cluster=train", "--location=us-central1")
    told_by(gpukube.info, *(word.format("update") for word in pool), "--node-labels=team=audio", "--format=json")
    diff = gpukube("pool", "plan", "diff", *spec)
    assert (diff.code, gpukube.writes()) == (2, []), diff.out + diff.err
    assert "error[marks-lost]" in diff.out
    assert gpukube("pool", "apply", *spec, "--yes").code == 3, "its tags cannot tell whose it is by now"
    for asked in (("--adopt",), ()):  # the marks first, then what else differs
        applied = gpukube("pool", "apply", *spec, "--yes", *asked)
        assert applied.code == 0, applied.out + applied.err
    described = (*(word.format("describe") for word in pool), "--format=json")
    labels = document(told_by(gpukube.info, *described))["config"]["labels"]
    assert (labels["gpukube.io/owner"], labels["gpukube.io/pool"]) == ("three-clouds", "t4slices")
    assert gpukube("pool", "plan", "diff", *spec).code == 0
