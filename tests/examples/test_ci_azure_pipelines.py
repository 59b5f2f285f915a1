"""The pipeline of examples/ci/azure-pipelines, script by script in the sandbox, with the variables of an agent."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.examples.shop import CI, ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.examples.shop import Ended, Shop

DOCUMENT = yaml.safe_load((CI / "azure-pipelines" / "azure-pipelines.yml").read_text())
STAGES: Mapping[str, Any] = {stage["stage"]: stage["jobs"][0] for stage in DOCUMENT["stages"]}
SPEC = (ROOT / "examples" / "aks-timeslicing.yaml").read_text()

pytestmark = pytest.mark.clients("jq")


def scripts(stage: str) -> dict[str, str]:
    """List the scripts of a stage by their names."""
    job = STAGES[stage]
    steps = job["steps"] if "steps" in job else job["strategy"]["runOnce"]["deploy"]["steps"]
    texts = {
        step.get("displayName", ""): step.get("bash") or step.get("inputs", {}).get("inlineScript") for step in steps
    }
    return {name: text for name, text in texts.items() if text}


class Agent:
    """An agent with a checkout."""

    def __init__(self, shop: Shop, workspace: Path) -> None:
        self.shop, self.workspace = shop, workspace

    def run(self, stage: str, name: str, **environ: str) -> Ended:
        """Run a script as the agent does: bash without options."""
        settings = {**DOCUMENT["variables"], "PIPELINE_WORKSPACE": str(self.workspace.parent), **environ}
        return self.shop.run(scripts(stage)[name], ["bash", "--noprofile", "--norc"], settings, self.workspace)


def outputs(log: str) -> dict[str, str]:
    """Read the variables that a script sets for later stages."""
    return dict(re.findall(r"^##vso\[task\.setvariable variable=(\w+);isOutput=true\](.*)$", log, re.MULTILINE))


def issues(log: str, kind: str) -> list[str]:
    """List the issues that a script logs."""
    return re.findall(rf"^##vso\[task\.logissue type={kind}([;\]].*)$", log, re.MULTILINE)


@pytest.fixture
def agent(shop: Shop, tmp_path: Path) -> Agent:
    workspace = tmp_path / "agent" / "s"
    workspace.mkdir(parents=True)
    (workspace / "pools.yaml").write_text(SPEC)
    return Agent(shop, workspace)


def test_story_when_followed_then_the_plan_is_shown_applied_verified_and_drift_is_a_warning(agent: Agent) -> None:
    assert agent.run("plan", "Install gpukube").code == 0
    assert agent.shop.installed[-1].endswith(DOCUMENT["variables"]["GPUKUBE"])
    validated = agent.run("plan", "Validate")
    assert validated.code == 0, validated.log
    planned = agent.run("plan", "Plan")
    assert planned.code == 0, planned.log
    given = outputs(planned.log)
    assert given["changes"] == "true"
    (summary,) = re.findall(r"^##vso\[task\.uploadsummary\](.*)$", planned.log, re.MULTILINE)
    assert "t4shared" in Path(summary).read_text()
    assert STAGES["apply"]["variables"] == {"DIGEST": "$[stageDependencies.plan.plan.outputs['plan.digest']]"}

    (agent.workspace.parent / "plan").mkdir()
    shutil.copy(agent.workspace / "gpukube.plan.json", agent.workspace.parent / "plan")
    swapped = agent.run("apply", "Apply", DIGEST="0" * 64)
    assert (swapped.code, "did NOT match" in swapped.log) == (1, True)
    applied = agent.run("apply", "Apply", DIGEST=given["digest"])
    assert applied.code == 0, applied.log
    verified = agent.run("apply", "Verify")
    assert verified.code == 0, verified.log
    assert {file.name for file in agent.workspace.glob("*.junit.xml")} == {
        f"{name}.junit.xml" for name in ("validation", "plan", "apply", "verify")
    }

    again = agent.run("apply", "Apply", DIGEST=given["digest"])
    assert again.code == 1
    assert any("live pool t4shared exists now" in text for text in issues(again.log, "error"))

    (agent.workspace / "pools.yaml").write_text(SPEC.replace("team: vision", "team: speech"))
    differs = agent.run("drift", "Compare")
    assert (differs.code, len(issues(differs.log, "warning"))) == (0, 1), differs.log


def test_spec_when_wrong_then_scripts_fail_and_log_the_line_as_an_issue(agent: Agent) -> None:
    (agent.workspace / "pools.yaml").write_text(SPEC.replace("count: 2", "count: -2"))
    validated = agent.run("plan", "Validate")
    assert validated.code == 4
    (issue,) = issues(validated.log, "error")
    assert issue.startswith(";sourcepath=pools.yaml;linenumber=16]")
    planned = agent.run("plan", "Plan")
    assert (planned.code, len(issues(planned.log, "error"))) == (4, 1), planned.log
    assert agent.run("drift", "Compare").code == 4, "an error, no drift"
