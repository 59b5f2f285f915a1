"""`gpukube workload lint`: files in and out, exit codes, formats."""

from __future__ import annotations

import io
import json
import shlex
import stat
from typing import TYPE_CHECKING

import pytest
import yaml

from gpukube.cli import app
from tests.cli.harness import EXAMPLES, ROOT
from tests.unit.workload.specs import CLUSTERS, POOLS

if TYPE_CHECKING:
    from pathlib import Path

WRONG = """apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  nodeSelector: {disk: yes} # fast
"""
RIGHT = WRONG.replace("yes", '"yes"')
WARNED = """apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  containers: [{name: c, image: "nvidia/cuda:latest"}]
"""


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GPUKUBE_FILE", raising=False)
    return tmp_path


def pipe(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))


@pytest.mark.parametrize(
    ("text", "words", "code"),
    [(RIGHT, (), 0), (WRONG, (), 4), (WARNED, (), 0), (WARNED, ("--strict",), 4), ("a: 1\n", (), 0), ("[", (), 4)],
)
def test_exit_code_when_linted_then_is_that_of_the_gravest_finding(
    directory: Path, text: str, words: tuple[str, ...], code: int
) -> None:
    (directory / "m.yaml").write_text(text)
    assert app.run(["workload", "lint", "m.yaml", *words]) == code


def test_findings_when_linted_then_on_stderr_with_a_sum(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (directory / "m.yaml").write_text(WRONG)
    app.run(["workload", "lint", "m.yaml"])
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("m.yaml:5:24: error[GPK728 value-not-string]: disk is the boolean true, not a string\n")
    assert said.err.endswith("1 error\n")


def test_directories_and_patterns_when_given_then_each_file_is_read_once(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (directory / "deep").mkdir()
    for name in ("a.yaml", "deep/b.yml"):
        (directory / name).write_text(RIGHT)
    assert app.run(["workload", "lint", ".", "**/*.y*ml", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["manifests"] == 2


@pytest.mark.parametrize("words", [(), ("missing.yaml",)])
def test_file_when_there_is_none_then_the_message_names_what_to_do(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.run(["workload", "lint", *words]) == 4
    assert "    fix: " in capsys.readouterr().err


def test_spec_when_given_then_pods_are_compared_with_its_pools(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (directory / "pools.yaml").write_text(f"{CLUSTERS}  - {POOLS['tainted']}\n")
    (directory / "m.yaml").write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  nodeSelector: "
        "{cloud.google.com/gke-nodepool: tainted}\n  containers:\n  - {name: c, resources: {limits: {cpu: 1, "
        "memory: 1Gi, nvidia.com/gpu: 1}}}\n"
    )
    assert app.run(["workload", "lint", "m.yaml", "-f", "pools.yaml", "--cluster", "train-gke"]) == 4
    assert "m.yaml:5:3: error[GPK715 taint-untolerated]: pool train-gke/tainted has the taint sku=gpu:NoSchedule" in (
        capsys.readouterr().err
    )


def test_spec_when_wrong_then_its_own_errors_are_reported(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (directory / "pools.yaml").write_text("kind: X\n")
    (directory / "m.yaml").write_text(RIGHT)
    assert app.run(["workload", "lint", "m.yaml", "-f", "pools.yaml"]) == 4
    assert "pools.yaml:1:" in capsys.readouterr().err


def test_file_when_fixed_then_is_written_in_place_with_its_mode_behind_its_link(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    real = directory / "real.yaml"
    real.write_bytes(b"\xef\xbb\xbf" + WRONG.replace("\n", "\r\n").encode())
    real.chmod(0o640)
    (directory / "m.yaml").symlink_to(real)
    assert app.run(["workload", "lint", "m.yaml", "--fix"]) == 0
    assert real.read_bytes() == b"\xef\xbb\xbf" + RIGHT.replace("\n", "\r\n").encode()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert (directory / "m.yaml").is_symlink()
    assert sorted(path.name for path in directory.iterdir()) == ["m.yaml", "real.yaml"]
    said = capsys.readouterr()
    assert "fixed m.yaml" in said.err
    assert said.out == "ok: 1 object, 1 pod template\n"


def test_stdin_when_fixed_then_the_text_goes_to_stdout_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe(monkeypatch, WRONG)
    assert app.run(["workload", "lint", "-", "--fix"]) == 0
    assert capsys.readouterr().out == RIGHT


def test_difference_when_asked_for_then_nothing_is_written(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (directory / "m.yaml").write_text(WRONG)
    assert app.run(["workload", "lint", "m.yaml", "--diff"]) == 4
    assert (directory / "m.yaml").read_text() == WRONG
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["--- m.yaml", "+++ m.yaml (fixed)"]
    assert lines[-2:] == ["-  nodeSelector: {disk: yes} # fast", '+  nodeSelector: {disk: "yes"} # fast']


def test_fixed_text_when_it_would_meet_a_document_on_stdout_then_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe(monkeypatch, WRONG)
    assert app.run(["workload", "lint", "-", "--fix", "-o", "json"]) == 4
    assert "error[output-format]" in capsys.readouterr().err


def test_rules_when_listed_then_each_has_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["workload", "lint", "--list-rules"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["GPK701", "gpu-request-only", "error"]
    assert [line.split()[0] for line in lines] == sorted(line.split()[0] for line in lines)


@pytest.mark.parametrize("rule", ["GPK705", "gpu-misplaced"])
def test_rule_when_explained_then_has_reason_fix_and_source(rule: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["workload", "lint", "--explain", rule]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "GPK705 gpu-misplaced (error)"
    assert [line.split(":")[0].strip() for line in lines[2:]] == ["why", "fix", "source"]


def test_rule_when_it_does_not_exist_then_the_nearest_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["workload", "lint", "--explain", "gpu-misplased"]) == 4
    assert "fix: did you mean gpu-misplaced?" in capsys.readouterr().err


@pytest.mark.parametrize(
    "config",
    [EXAMPLES / "pre-commit" / ".pre-commit-config.yaml", ROOT / ".pre-commit-hooks.yaml"],
    ids=["example", "hook"],
)
@pytest.mark.parametrize(
    ("hook", "least", "text"),
    [
        ("gpukube-workload-lint", 1, RIGHT),
        ("gpukube-workload-lint", 1, WRONG),
        ("gpukube-validate", 1, RIGHT),
        ("gpukube-validate", -1, RIGHT),
    ],
)
def test_hook_of_pre_commit_when_run_then_checks_what_is_committed(
    config: Path, hook: str, least: int, text: str, directory: Path
) -> None:
    read = yaml.safe_load(config.read_text("utf-8"))
    (one,) = [one for one in (read["repos"][0]["hooks"] if isinstance(read, dict) else read) if one["id"] == hook]
    pool = POOLS["whole"].replace("min: 0", f"min: {least}")
    (directory / "pools.yaml").write_text(f"{CLUSTERS}  - {pool}\n")
    (directory / "a.yaml").write_text(text)
    (directory / "b.yaml").write_text("replicas: 2\nx: !Ref y\n")
    program, *words = shlex.split(one["entry"])
    assert program == "gpukube"
    names = ["a.yaml", "b.yaml"] if one.get("pass_filenames", True) else []
    code = 0 if (least, text) == (1, RIGHT) else 4
    assert app.run([*words, *one.get("args", ()), *names]) == code
