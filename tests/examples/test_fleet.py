"""The files of examples/fleet: fields that the APIs have, and scripts that run as in their pods and jobs."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.builders import SUBSCRIPTION
from tests.cli.harness import LONGEST_S, ROOT, environment
from tests.unit.workload.schemas import problems

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.cli.harness import Gpukube

FOLDER = ROOT / "examples" / "fleet"
MANIFESTS = sorted((FOLDER / "kubernetes").glob("*.yaml"))
DRIFT, REPORT = [
    document["spec"]["jobTemplate"]["spec"]
    for document in yaml.safe_load_all((FOLDER / "kubernetes" / "drift.yaml").read_text())
    if document["kind"] == "CronJob"
]
FLEET = f"""\
apiVersion: gpukube.io/v1alpha1
kind: GPUNodePools
metadata: {{name: fleet}}
clusters:
  a1: {{provider: aks, subscription: {SUBSCRIPTION}, resourceGroup: ml, name: a1}}
  g1: {{provider: gke, project: ml-prod, location: us-central1, name: g1}}
pools:
  - name: t4
    clusters: [a1, g1]
    instanceType: {{aks: Standard_NC4as_T4_v3, gke: g2-standard-4}}
    nodes: {{count: 1}}
"""
WORKFLOW = FOLDER / "github" / "fleet.yml"
JOBS: Mapping[str, Any] = yaml.safe_load(WORKFLOW.read_text())["jobs"]


def container(job: Mapping[str, Any]) -> Mapping[str, Any]:
    (found,) = job["template"]["spec"]["containers"]
    return dict(found)


def variables(job: Mapping[str, Any]) -> dict[str, str]:
    return {variable["name"]: variable["value"] for variable in container(job)["env"]}


def test_manifests_when_compared_with_the_api_then_no_field_is_unknown() -> None:
    documents = [document for file in MANIFESTS for document in yaml.safe_load_all(file.read_text())]
    assert len(documents) >= len(MANIFESTS) > 5
    assert [problem for document in documents for problem in problems(document)] == []


def test_job_when_it_has_shards_then_an_index_for_each_and_retries_that_an_indexed_job_may_have() -> None:
    assert (DRIFT["completionMode"], str(DRIFT["completions"])) == ("Indexed", variables(DRIFT)["SHARDS"])
    assert DRIFT["template"]["spec"]["restartPolicy"] == "Never"  # backoffLimitPerIndex needs both
    assert DRIFT["maxFailedIndexes"] <= DRIFT["completions"]
    assert [rule["action"] for rule in DRIFT["podFailurePolicy"]["rules"]] == ["Ignore", "FailIndex"]
    for job in (DRIFT, REPORT):
        pod = job["template"]["spec"]
        volumes = {volume["name"] for volume in pod["volumes"]}
        assert {mount["name"] for mount in container(job)["volumeMounts"]} == volumes
        assert not pod["automountServiceAccountToken"]


class Cluster:
    """What runs the scripts of the pods, one after the other, with a volume for the results."""

    def __init__(self, gpukube: Gpukube, directory: Path, results: str) -> None:
        (directory / "specs").mkdir()
        (directory / "specs" / "fleet.yaml").write_text(FLEET)
        self.directory = directory
        self.results = directory / results
        self.results.mkdir()
        self.environ = {
            **environment(gpukube.info.state_dir, {"GPUKUBE_SANDBOX": "1"}),
            "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
            "SPECS": str(directory / "specs"),
            "RESULTS": str(self.results),
        }

    def run(self, script: list[str], **changes: str) -> subprocess.CompletedProcess[str]:
        """Run a script to its end."""
        return subprocess.run(
            script,
            env={**self.environ, **changes},
            cwd=self.directory,
            capture_output=True,
            text=True,
            check=False,
            timeout=LONGEST_S,
        )

    def index(self, index: int) -> int:
        """Run the pod of an index."""
        changes = {"JOB_COMPLETION_INDEX": str(index), "HOSTNAME": f"drift-{index}", "SHARDS": "2"}
        return self.run(container(DRIFT)["command"], **changes).returncode

    def files(self) -> list[str]:
        """List what the volume holds."""
        return sorted(str(path.relative_to(self.results)) for path in self.results.rglob("*") if path.is_file())


def test_job_when_its_pods_run_then_drift_is_no_failure_of_theirs_and_the_report_has_it(
    gpukube: Gpukube, tmp_path: Path
) -> None:
    cluster = Cluster(gpukube, tmp_path, "results")
    assert cluster.index(1) == 0
    partial = cluster.run(container(REPORT)["command"])
    assert partial.returncode == 1
    assert "partial: 1 of 2 shards missing: 1" in partial.stdout

    assert cluster.index(0) == 0
    whole = cluster.run(container(REPORT)["command"])
    assert (whole.returncode, whole.stderr) == (2, "")
    assert {"a1", "g1"} <= set(whole.stdout.split())
    names = cluster.files()
    day = names[0].partition(".")[0]
    assert names == [f"{day}.json", f"{day}/0.json", f"{day}/1.json"]

    (cluster.directory / "specs" / "fleet.yaml").write_text("kind: GPUNodePools\n")
    assert cluster.index(1) == 4  # FailIndex; and what another pod of the index has left stays
    assert cluster.files() == names


def script(job: str, name: str) -> list[str]:
    """Give a step of the workflow as GitHub's runner starts it."""
    (found,) = [step["run"] for step in JOBS[job]["steps"] if step.get("name") == name and "run" in step]
    return ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", found]


def test_workflow_when_its_jobs_run_then_one_summary_and_the_code_of_the_whole_fleet(
    gpukube: Gpukube, tmp_path: Path
) -> None:
    assert JOBS["compare"]["strategy"]["matrix"]["shard"] == list(range(1, 17))
    runner = Cluster(gpukube, tmp_path, "results")
    done = runner.run(script("compare", "Compare"), INDEX="1", SHARDS="1")
    assert done.returncode == 0, done.stderr
    report = runner.run(script("report", "Report"), GITHUB_STEP_SUMMARY=str(tmp_path / "summary.md"))
    assert report.returncode == 2, report.stderr
    document = json.loads((tmp_path / "fleet.json").read_text())
    assert [cluster["cluster"] for cluster in document["clusters"]] == ["a1", "g1"]
    summary = (tmp_path / "summary.md").read_text()
    assert all(name in summary for name in ("a1", "g1"))


def test_workflow_when_checked_then_valid_by_github_s_schema_and_without_a_finding_of_zizmor() -> None:
    pytest.importorskip("check_jsonschema")
    (zizmor,) = [file.locate() for file in importlib.metadata.files("zizmor") or () if file.name == "zizmor"]
    schema = ("--builtin-schema", "vendor.github-workflows", "--regex-variant", "nonunicode")
    for words in (
        [sys.executable, "-m", "check_jsonschema", *schema],
        [str(zizmor), "--offline", "--pedantic", "--no-ignores"],
    ):
        done = subprocess.run([*words, str(WORKFLOW)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout
