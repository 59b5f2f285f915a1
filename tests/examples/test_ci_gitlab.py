"""The pipeline of examples/ci/gitlab, job by job in the sandbox, with the variables that GitLab would set."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest
import yaml

from tests.examples.shop import CI, ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.examples.shop import Ended, Shop

DOCUMENT = yaml.safe_load((CI / "gitlab" / ".gitlab-ci.yml").read_text())
SPEC = (ROOT / "examples" / "aks-timeslicing.yaml").read_text()
POD = """apiVersion: v1
kind: Pod
metadata: {name: idle}
spec: {containers: [{name: idle, image: registry.example.com/idle:1}]}
"""
STEADY = ("validation.xml", "lint.xml")


def job(name: str) -> dict[str, Any]:
    """Return a job with what it extends: maps are merged, the rest is replaced."""
    made: dict[str, Any] = {**DOCUMENT["default"], "variables": DOCUMENT["variables"]}
    chain = [DOCUMENT[name]]
    while "extends" in chain[0]:
        chain.insert(0, DOCUMENT[chain[0]["extends"]])
    for one in chain:
        variables = {**made["variables"], **one.get("variables", {})}
        made = {**made, **one, "variables": variables}
    return made


class Pipeline:
    """A project: its files, and the artifacts of its jobs."""

    def __init__(self, shop: Shop, workspace: Path) -> None:
        self.shop, self.workspace = shop, workspace

    def run(self, name: str, *, needs: str | None = None) -> Ended:
        """Run a job in a fresh checkout, with the artifacts of the job that it needs; keep its reports."""
        spec = job(name)
        workspace = self.shop.directory / name
        shutil.rmtree(workspace, ignore_errors=True)
        shutil.copytree(self.workspace, workspace)
        for file in job(needs)["artifacts"]["paths"] if needs else ():
            shutil.copy(self.shop.directory / str(needs) / file, workspace)
        settings = {
            "AWS_PLAN_ROLE": "",
            "GCP_PROVIDER": "projects/1/locations/global/workloadIdentityPools/p/providers/p",
        }
        tokens = dict.fromkeys(spec.get("id_tokens", {}), "eyJ.token.of-the-job")
        variables = {
            key: settings.get(str(value).removeprefix("$"), str(value)) for key, value in spec["variables"].items()
        }
        environ = {"CI": "true", "CI_JOB_ID": "41", **settings, **variables, **tokens}
        text = "\n".join(["set -eo pipefail", *spec["before_script"], *spec["script"]])
        ended = self.shop.run(text, ["bash"], environ, workspace)
        for reports in spec["artifacts"]["reports"].values():
            for report in [reports] if isinstance(reports, str) else reports:
                if (workspace / report).exists():
                    require_report(workspace / report)
        return ended

    def file(self, name: str, report: str) -> Path:
        """Find a file that a job has left."""
        return self.shop.directory / name / report


def require_report(path: Path) -> None:
    """Check that GitLab can read a report."""
    if path.suffix == ".xml":
        assert ET.parse(path).getroot().tag == "testsuites"  # noqa: S314 - ours
        return
    report = json.loads(path.read_text())
    if path.name == "terraform.json":
        assert {key: type(value) for key, value in report.items()} == dict.fromkeys(("create", "update", "delete"), int)
        return
    for one in report:
        assert one["severity"] in ("info", "minor", "major", "critical", "blocker")
        assert one["location"]["path"] == "pools.yaml"
    assert len({one["fingerprint"] for one in report}) == len(report)


@pytest.fixture
def pipeline(shop: Shop, tmp_path: Path) -> Pipeline:
    workspace = tmp_path / "project"
    (workspace / "manifests").mkdir(parents=True)
    (workspace / "pools.yaml").write_text(SPEC)
    (workspace / "manifests" / "pod.yaml").write_text(POD)
    return Pipeline(shop, workspace)


def test_story_when_followed_then_the_plan_is_shown_applied_verified_and_drift_is_a_warning(pipeline: Pipeline) -> None:
    checked = pipeline.run("check")
    assert checked.code == 0, checked.log
    assert all(pipeline.file("check", report).exists() for report in STEADY)

    planned = pipeline.run("plan")
    assert planned.code == 0, planned.log
    counts = json.loads(pipeline.file("plan", "terraform.json").read_text())
    assert counts == {"create": 2, "update": 0, "delete": 0}, "the pool and the release"
    assert pipeline.shop.installed[-1].endswith(DOCUMENT["variables"]["GPUKUBE"])

    applied = pipeline.run("apply", needs="plan")
    assert applied.code == 0, applied.log
    assert all(pipeline.file("apply", report).exists() for report in ("apply.xml", "verify.xml"))

    again = pipeline.run("apply", needs="plan")
    assert again.code == 1
    assert "error[stale-plan]" in again.log
    assert pipeline.file("apply", "verify.xml").exists(), "verified after a refusal too"

    (pipeline.workspace / "pools.yaml").write_text(SPEC.replace("team: vision", "team: speech"))
    differs = pipeline.run("drift")
    assert differs.code == DOCUMENT["drift"]["allow_failure"]["exit_codes"]
    assert pipeline.file("drift", "diff.xml").exists()


def test_spec_when_wrong_then_jobs_fail_with_its_exit_code_and_the_report_names_the_line(pipeline: Pipeline) -> None:
    (pipeline.workspace / "pools.yaml").write_text(SPEC.replace("count: 2", "count: -2"))
    assert pipeline.run("check").code == 4
    (found,) = json.loads(pipeline.file("check", "codequality.json").read_text())
    assert found["location"]["lines"]["begin"] == 16
    assert pipeline.run("drift").code == 4, "not 2: nothing was compared"
