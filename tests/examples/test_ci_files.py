"""The files of examples/ci: valid by the platforms' schemas, without findings of zizmor, pinned, and as documented."""

from __future__ import annotations

import importlib.metadata
import json
import re
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from check_jsonschema import main as check_jsonschema  # type: ignore[import-untyped]
from click.testing import CliRunner

from tests.examples.shop import CI, ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.examples.shop import Shop

WORKFLOWS = sorted((CI / "github").glob("*.yml"))
ACTION = ROOT / "action.yml"
AZURE = CI / "azure-pipelines" / "azure-pipelines.yml"
SUBJECTS = {"pull_request", "ref:refs/heads/main", "environment:gpu"}


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("github-workflows", WORKFLOWS),
        ("github-actions", [ACTION]),
        ("gitlab-ci", [CI / "gitlab" / ".gitlab-ci.yml"]),
        ("azure-pipelines", [AZURE]),
    ],
    ids=["workflows", "action", "gitlab", "azure"],
)
def test_files_when_checked_by_the_platform_s_schema_then_are_valid(schema: str, files: list[Path]) -> None:
    words = ["--builtin-schema", f"vendor.{schema}", "--regex-variant", "nonunicode"]
    if schema == "azure-pipelines":
        words += ["--data-transform", schema]
    done = CliRunner().invoke(check_jsonschema, [*words, *map(str, files)])
    assert done.exit_code == 0, done.output


def test_workflows_when_pinned_as_documented_then_zizmor_finds_nothing(tmp_path: Path) -> None:
    (pin,) = re.findall(r'sed -i -E "(.*)" \.github', (ROOT / "docs" / "ci.md").read_text())
    assert pin == "s|OWNER/gpukube@VERSION.*|OWNER/gpukube@$sha # vX.Y.Z|"
    for file in WORKFLOWS:
        text = re.sub("OWNER/gpukube@VERSION.*", f"OWNER/gpukube@{'0' * 40} # v1.0.0", file.read_text())
        (tmp_path / file.name).write_text(text)
    (zizmor,) = [file.locate() for file in importlib.metadata.files("zizmor") or () if file.name == "zizmor"]
    hooks = [ROOT / ".pre-commit-hooks.yaml"]
    found = subprocess.run(
        [str(zizmor), "--offline", "--pedantic", "--no-ignores", ACTION, *hooks, *sorted(tmp_path.glob("*.yml"))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout


@pytest.mark.parametrize("file", [*WORKFLOWS, ACTION], ids=lambda file: file.stem)
def test_actions_when_used_then_are_pinned_by_commit_with_the_version_beside(file: Path) -> None:
    used = re.findall(r"uses: (\S+)@(\S+)(.*)", file.read_text())
    others = [(name, ref, rest) for name, ref, rest in used if name != "OWNER/gpukube"]
    assert others
    for name, ref, rest in others:
        assert re.fullmatch(r"[0-9a-f]{40}", ref), name
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", rest), name


def triggers(file: Path) -> dict[str, Any]:
    document = yaml.safe_load(file.read_text())
    assert isinstance(document, dict)
    found: dict[str, Any] = document[True]  # YAML 1.1 reads `on` so
    return found


def test_workflows_when_run_then_none_is_for_strangers_with_an_identity_and_no_apply_is_cancelled() -> None:
    for file in WORKFLOWS:
        assert "pull_request_target" not in triggers(file)
    groups = {file.stem: yaml.safe_load(file.read_text())["concurrency"] for file in WORKFLOWS}
    assert groups["apply"] == {"group": "gpukube-apply", "cancel-in-progress": False}
    assert len({group["group"] for group in groups.values()}) == len(groups)
    jobs = yaml.safe_load((CI / "github" / "apply.yml").read_text())["jobs"]
    assert jobs["apply"]["environment"] == "gpu"
    assert 60 * jobs["apply"]["timeout-minutes"] <= 7200, "the session of AWS"


def test_trust_when_filled_in_then_each_subject_is_one_of_those_that_jobs_have() -> None:
    subjects: dict[str, set[str]] = {}
    for file in (CI / "trust").glob("*.json"):
        policy = json.loads(file.read_text())
        if "Statement" in policy:
            (statement,) = policy["Statement"]
            (condition,) = statement["Condition"].values()
            named = condition["token.actions.githubusercontent.com:sub"]
        else:
            named = policy["subject"]
        for subject in [named] if isinstance(named, str) else named:
            subjects.setdefault(file.stem.split("-")[1], set()).add(subject.removeprefix("SUBJECT:"))
    assert subjects == {"plan": SUBJECTS - {"environment:gpu"}, "apply": {"environment:gpu"}}
    guide = (CI / "trust" / "README.md").read_text()
    assert all(f'"$SUBJECT:{subject}"' in guide for subject in SUBJECTS), "those of Google Cloud"
    named = set(re.findall(r"gh variable set (\w+)", guide))
    assert named == set(re.findall(r"vars\.(\w+)", "".join(file.read_text() for file in WORKFLOWS)))


def test_action_when_documented_then_the_page_has_its_inputs_and_outputs() -> None:
    action = yaml.safe_load(ACTION.read_text())
    page = (ROOT / "docs" / "ci.md").read_text().partition("### The action")[2].partition("\n## ")[0]
    listed = {
        name for row in re.findall(r"^\| (`.*?) \|", page, re.MULTILINE) for name in re.findall(r"`([\w-]+)`", row)
    }
    assert listed == {*action["inputs"], *action["outputs"]}


def test_page_when_it_names_files_of_the_kit_then_the_readme_lists_all() -> None:
    listed = re.findall(r"\]\(([^)#]+)", (CI / "README.md").read_text())
    assert all((CI / target).exists() for target in listed)
    files = {str(file.relative_to(CI)) for file in CI.rglob("*") if file.is_file() and file.parent.name != "trust"}
    assert files - {"README.md"} <= set(listed)


def test_page_when_its_commands_are_run_in_order_then_all_succeed(shop: Shop, tmp_path: Path) -> None:
    pages = [(ROOT / "docs" / "ci.md").read_text(), (CI / "trust" / "README.md").read_text()]
    command = r"gpukube (?:pool|doctor|report) [^'\"\n]+"
    lines = re.findall(rf"""^(?: *sh '|    commands: \["|)({command})""", "\n".join(pages), re.MULTILINE)
    assert [" ".join(line.split()[1:3]) for line in lines[:4]] == [
        "pool plan",
        "pool apply",
        "pool verify",
        "pool plan",
    ]
    (tmp_path / "pools.yaml").write_text((ROOT / "examples" / "aks-timeslicing.yaml").read_text())
    ended = shop.run("\n".join(lines), ["bash", "-e"], {}, tmp_path)
    assert ended.code == 0, ended.log
    assert (tmp_path / "comment.md").read_text().startswith("<!-- gpukube:aks-timeslicing -->\n")
    assert all(any((tmp_path / "permissions" / part).iterdir()) for part in ("plan", "apply"))


def test_action_when_it_runs_python_then_never_files_of_the_checkout() -> None:
    """Without -I the checked-out pip.py or venv.py would be run, with the credentials of the sign-in step."""
    lines = [line for line in ACTION.read_text().splitlines() if re.search(r'(PYTHON|/python)" ', line)]
    assert lines
    assert not [line for line in lines if not re.search(r'(PYTHON|/python)" -I ', line)]
