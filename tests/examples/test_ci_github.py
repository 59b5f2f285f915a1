"""The workflows of examples/ci/github, and the action that they use, run step by step in the sandbox."""

from __future__ import annotations

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from sandbox_tests.waiting import wait_for
from tests.examples.github_actions import GitHub, pairs
from tests.examples.shop import CI, ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.examples.shop import Shop

PLAN, APPLY, DRIFT = (CI / "github" / f"{name}.yml" for name in ("plan", "apply", "drift"))
SPEC = (ROOT / "examples" / "aks-timeslicing.yaml").read_text()
POD = """apiVersion: v1
kind: Pod
metadata: {name: infer}
spec:
  containers:
    - name: infer
      image: registry.example.com/infer:1
      resources:
        limits: {nvidia.com/gpu: 1}
  tolerations:
    - {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}
"""
VARIABLES = {
    "AZURE_TENANT_ID": "00000000-0000-0000-0000-000000000001",
    "AZURE_SUBSCRIPTION_ID": "11111111-2222-3333-4444-555555555555",
    "AZURE_PLAN_CLIENT_ID": "00000000-0000-0000-0000-000000000002",
}
AUDIENCE = "&audience=api://AzureADTokenExchange"
OWN = {"pull_request": {"number": 7, "head": {"sha": "5ca1ab1e", "repo": {"full_name": "acme/gpu-pools"}}}}
FORK = {"pull_request": {"number": 8, "head": {"repo": {"full_name": "stranger/gpu-pools"}}}}

pytestmark = pytest.mark.clients("jq")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    directory = tmp_path / "repository"
    (directory / "manifests").mkdir(parents=True)
    (directory / "pools.yaml").write_text(SPEC)
    (directory / "manifests" / "pod.yaml").write_text(POD)
    return directory


@pytest.fixture
def github(shop: Shop, repository: Path) -> GitHub:
    return GitHub(shop, repository, VARIABLES)


def test_story_when_followed_from_the_pull_request_to_drift_then_each_run_shows_and_does_what_it_should(
    github: GitHub, shop: Shop
) -> None:
    # A pull request: checked without an identity, planned with one that may read.
    jobs = github.run(PLAN, "pull_request", OWN)
    assert (jobs["check"].result, jobs["plan"].result) == ("success", "success"), jobs["plan"].log
    assert jobs["check"].signed_in == {}
    assert [given["client-id"] for given in jobs["plan"].signed_in.values()] == [VARIABLES["AZURE_PLAN_CLIENT_ID"]]
    (comment,) = shop.github["comments"]
    assert str(comment["body"]).startswith("<!-- gpukube:aks-timeslicing -->\n")
    assert (comment["issue"], "t4shared" in str(comment["body"])) == (7, True)
    assert str(comment["body"]).endswith("\nCommit 5ca1ab1e, [run](https://github.com/acme/gpu-pools/actions/runs/1)\n")
    assert any("t4shared%3A create" in text for text in jobs["plan"].annotated("notice"))
    assert re.search(r"Saved plan: SHA-256 `[0-9a-f]{64}`", jobs["plan"].summary)

    # Its next commit: the comment is updated, others of the pull request stay.
    (github.repository / "pools.yaml").write_text(SPEC.replace("nodes: {count: 2}", "nodes: {count: 1}"))
    github.run(PLAN, "pull_request", OWN)
    (updated,) = shop.github["comments"]
    assert updated["id"] == comment["id"]
    assert updated["body"] != comment["body"]

    # Merged: planned, approved (environment), applied exactly so, verified.
    jobs = github.run(APPLY, "push")
    assert [job.result for job in jobs.values()] == ["success", "success"], jobs["apply"].log
    assert jobs["plan"].outputs["changes"] == "true"
    assert "nvidia.com/gpu" in jobs["apply"].summary
    assert jobs["apply"].annotated("warning") == []
    (proof,) = [files for name, files in github.artifacts.items() if name.startswith("gpukube-verify-")]
    assert b"<testcase" in proof["junit.xml"]

    # The same plan again: refused, with what to do.
    again = github.again(APPLY, "apply", jobs)
    assert again.result == "failure"
    assert again.steps["apply"].code == 1
    assert any("live pool t4shared exists now" in text for text in again.annotated("error"))
    assert "Re-run all jobs" in again.summary
    assert again.steps["verify"].outcome == "success", "verified after a failure too"

    # Another file in its place: not even looked at.
    github.artifacts[jobs["plan"].outputs["artifact"]]["gpukube.plan.json"] += b"\n"
    swapped = github.again(APPLY, "apply", jobs)
    assert (swapped.result, swapped.steps["apply"].code) == ("failure", 1)
    assert "not the plan that was approved" in swapped.annotated("error")[0]

    # Nothing to do: nobody is asked.
    jobs = github.run(APPLY, "workflow_dispatch", inputs={"flag": "--allow-disruption"})
    assert (jobs["plan"].outputs["changes"], jobs["apply"].result) == ("false", "skipped")

    # Nights: without a difference, with one (twice), after it was taken back.
    assert github.run(DRIFT, "schedule")["drift"].result == "success"
    assert shop.github["issues"] == []
    merged = (github.repository / "pools.yaml").read_text()
    (github.repository / "pools.yaml").write_text(merged.replace("team: vision", "team: speech"))
    for _ in range(2):
        job = github.run(DRIFT, "schedule")["drift"]
        assert (job.result, job.steps["diff"].outputs["exit-code"]) == ("success", "2"), job.log
    (issue,) = shop.github["issues"]
    assert (issue["state"], "speech" in str(issue["body"])) == ("open", True)
    (github.repository / "pools.yaml").write_text(merged.replace("provider: aks", "provider: asks"))
    broken = github.run(DRIFT, "schedule")["drift"]
    assert (broken.result, broken.steps["diff"].code) == ("failure", 4)
    assert shop.github["issues"] == [issue], "what could not be compared says nothing about drift"
    (github.repository / "pools.yaml").write_text(merged)
    github.run(DRIFT, "schedule")
    assert [one["state"] for one in shop.github["issues"]] == ["closed"]
    assert "Nothing differs any more" in str(shop.github["comments"][-1]["body"])

    # A plan that cannot be applied: not kept, and shown all the same; of another owner, in a comment of its own.
    (github.repository / "pools.yaml").write_text(SPEC.replace("name: aks-timeslicing", "name: other"))
    job = github.run(PLAN, "pull_request", OWN)["plan"]
    assert (job.result, job.steps["plan"].code, job.steps["plan"].outputs["digest"]) == ("failure", 1, "")
    assert "foreign-pool" in job.annotated("error")[0]
    markers = [str(one["body"]).partition("\n")[0] for one in shop.github["comments"] if one["issue"] == 7]
    assert markers == ["<!-- gpukube:aks-timeslicing -->", "<!-- gpukube:other -->"]


def test_pull_request_when_the_spec_is_wrong_then_the_job_fails_and_the_line_is_annotated(github: GitHub) -> None:
    (github.repository / "pools.yaml").write_text(SPEC.replace("count: 2", "count: -2"))
    jobs = github.run(PLAN, "pull_request", OWN)
    assert (jobs["check"].result, jobs["plan"].result) == ("failure", "skipped")
    (error,) = jobs["check"].annotated("error")
    assert error.startswith("file=pools.yaml,line=16,"), error


def test_pull_request_when_from_a_fork_then_is_checked_and_no_more(github: GitHub) -> None:
    jobs = github.run(PLAN, "pull_request", FORK)
    assert (jobs["check"].result, jobs["plan"].result) == ("success", "skipped")


def test_plan_when_refused_then_its_messages_are_annotations(github: GitHub, shop: Shop) -> None:
    (github.repository / "pools.yaml").write_text(SPEC.replace("count: 2", "count: -2"))
    job = github.run(APPLY, "push")["plan"]
    assert (job.result, job.steps["plan"].code) == ("failure", 4)
    (error,) = job.annotated("error")
    assert error.startswith("pools.yaml:16:"), error
    assert "ended with exit code 4" in job.summary


@pytest.fixture
def tokens() -> Iterator[str]:
    """Serve GitHub's tokens, another one each time; gives the address."""
    given = count(1)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = self.headers["Authorization"] == "Bearer of-the-job" and self.path.endswith(AUDIENCE)
            self.send_response(200 if known else 401)
            self.end_headers()
            self.wfile.write(json.dumps({"value": f"token-{next(given)}"}).encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/token?api-version=2.0"
        server.shutdown()
        thread.join()


@pytest.mark.clients("curl")
def test_azure_sign_in_when_the_job_lasts_then_the_token_is_renewed_in_its_file(
    shop: Shop, tokens: str, tmp_path: Path
) -> None:
    steps = yaml.safe_load(APPLY.read_text())["jobs"]["apply"]["steps"]
    (step,) = [step for step in steps if step.get("name") == "Sign in to Azure"]
    # The first pause is over at once; the next ones last.
    sleep = f"#!/bin/sh\n[ -e {tmp_path}/slept ] && exec /bin/sleep 600\ntouch {tmp_path}/slept\n"
    (shop.tools / "sleep").write_text(sleep)
    (shop.tools / "sleep").chmod(0o755)
    environ = {
        **dict.fromkeys(step["env"], "00000000-0000-0000-0000-000000000003"),
        "ACTIONS_ID_TOKEN_REQUEST_URL": tokens,
        "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "of-the-job",
        "GITHUB_ENV": str(tmp_path / "env"),
        "RUNNER_TEMP": str(tmp_path),
    }
    ended = shop.run(step["run"], ["bash", "-e"], environ, tmp_path)
    assert ended.code == 0, ended.log
    variables = pairs(tmp_path / "env")
    assert set(variables) == {"AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_FEDERATED_TOKEN_FILE"}
    file = Path(variables["AZURE_FEDERATED_TOKEN_FILE"])
    wait_for(lambda: file.read_text() == "token-2", file.read_text)
    assert file.stat().st_mode & 0o777 == 0o600
