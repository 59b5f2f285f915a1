"""A fleet on three clouds in three shards: what they do, and that their documents add up to those of one run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.builders import SUBSCRIPTION

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.harness import Document, Gpukube, Result

FLEET = f"""\
apiVersion: gpukube.io/v1alpha1
kind: GPUNodePools
metadata: {{name: fleet}}
clusters:
  e1: {{provider: eks, account: "111122223333", region: us-east-1, name: e1}}
  a1: {{provider: aks, subscription: {SUBSCRIPTION}, resourceGroup: ml, name: a1}}
  g1: {{provider: gke, project: ml-prod, location: us-central1, name: g1}}
  e2: {{provider: eks, account: "111122223333", region: us-east-1, name: e2}}
  g2: {{provider: gke, project: ml-prod, location: us-central1, name: g2}}
pools:
  - name: t4
    clusters: [e1, a1, g1, e2]
    instanceType: {{eks: g4dn.xlarge, aks: Standard_NC4as_T4_v3, gke: g2-standard-4}}
    nodes: {{count: 1}}
"""
PARTS = (["e1", "a1"], ["g1", "e2"], ["g2"])
"""Of 3; e1 and e2 share a quota of their account, and no pool is on g2."""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET)
    return path


def in_shards(gpukube: Gpukube, directory: Path, *words: str | Path) -> tuple[Result, list[Document]]:
    """Run a command once per shard, and merge: how the merge ended, and the documents of the shards."""
    files = []
    for index in (1, 2, 3):
        files.append(directory / f"{index}.json")
        files[-1].write_text(gpukube(*words, "--shard", f"{index}/3", "-o", "json").out)
    return gpukube("report", "merge", *reversed(files), "-o", "json", sandbox=False), [
        json.loads(file.read_text()) for file in files
    ]


def without_merged(result: Result) -> str:
    """Write the merged document as a run without shards would have."""
    document = result.json()
    assert document.pop("merged")["missing"] == []
    return json.dumps(document, indent=2) + "\n"


def test_fleet_when_created_shard_by_shard_then_documents_add_up_to_those_of_one_run(
    gpukube: Gpukube, spec: Path, tmp_path: Path
) -> None:
    planned, parts = in_shards(gpukube, tmp_path, "pool", "plan", "-f", spec)
    assert tuple(list(part["shard"]["clusters"]) for part in parts) == PARTS
    assert [[cluster["cluster"] for cluster in part["clusters"]] for part in parts] == [*map(list, PARTS[:2]), []]
    assert [part["notRead"] for part in parts] == [[], [], ["g2"]]
    whole = gpukube("pool", "plan", "-f", spec, "-o", "json")
    assert (without_merged(planned), planned.code) == (whole.out, whole.code)
    (quota,) = planned.json()["clusters"][0]["quotas"]
    assert (quota["pools"], quota["needed"]) == (["e1/t4", "e2/t4"], 8)

    created, _ = in_shards(gpukube, tmp_path, "pool", "create", "-f", spec)
    assert created.code == 0, created.out
    assert {pool["outcome"] for pool in created.pools()} == {"done"}
    assert len(created.pools()) == 4


READING: dict[str, tuple[tuple[str, ...], int]] = {
    "diff": (("pool", "plan", "diff", "--set", "pools[0].labels.team=vision"), 2),
    "verify": (("pool", "verify"), 0),
    "list": (("pool", "list"), 0),
    "doctor": (("doctor",), 0),
}


@pytest.mark.turns(2)
@pytest.mark.parametrize("name", READING)
def test_fleet_when_read_shard_by_shard_then_documents_add_up_to_that_of_one_run(
    name: str, gpukube: Gpukube, tmp_path: Path, spec: Path
) -> None:
    words, code = READING[name]
    gpukube.made("-f", spec)
    found, _ = in_shards(gpukube, tmp_path, *words, "-f", spec)
    whole = gpukube(*words, "-f", spec, "-o", "json")
    assert (found.code, without_merged(found)) == (whole.code, whole.out)
    assert found.code == code


def test_fleet_when_no_cluster_is_in_a_shard_then_zero_without_a_call_and_said(gpukube: Gpukube, spec: Path) -> None:
    empty = gpukube("pool", "plan", "-f", spec, "--shard", "7/7", "-o", "json")
    document = empty.json()
    assert (empty.code, document["clusters"], document["shard"]["clusters"]) == (0, [], {})
    for words in (("pool", "plan", "diff"), ("pool", "create"), ("pool", "verify"), ("pool", "list"), ("doctor",)):
        shown = gpukube(*words, "-f", spec, "--shard", "7/7")
        assert (shown.code, shown.out.splitlines()[-1]) == (0, "shard 7/7: none of 5 clusters"), words
    assert gpukube.writes() == []


def test_plan_when_saved_of_a_shard_then_it_is_applied_to_that_shard(
    gpukube: Gpukube, spec: Path, tmp_path: Path
) -> None:
    plan = tmp_path / "plan.json"
    saved = gpukube("pool", "plan", "-f", spec, "--shard", "2/3", "--out", plan)
    assert "saved, shard 2/3 only; to apply exactly this: gpukube pool apply" in saved.err
    refused = gpukube("pool", "apply", plan, "--shard", "2/3")
    assert (refused.code, "error[saved-plan-option]: --shard cannot be combined" in refused.err) == (4, True)
    applied = gpukube("pool", "apply", plan, "--no-wait", "-o", "json")
    document = applied.json()
    assert (applied.code, list(document["shard"]["clusters"])) == (0, PARTS[1])
    assert (
        document["shard"]["spec"]
        == gpukube("pool", "list", "-f", spec, "--shard", "1/3", "-o", "json").json()["shard"]["spec"]
    )
    followed = gpukube("pool", "create", "-f", spec, "--shard", "1/3", "--no-wait", "-o", "json")
    assert {pool["resume"] for pool in followed.pools()} == {f"gpukube --sandbox pool wait -f {spec} --shard 1/3"}
