"""`gpukube-sandbox`: what each command does and prints, and its exit codes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from gpukube_sandbox import __version__, daemon, state
from gpukube_sandbox.cli import main
from sandbox_tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gpukube_sandbox.daemon import SandboxInfo

    Run = Callable[..., tuple[int, str, str]]

UUID = "11111111-2222-3333-4444-555555555555"
TRAIN = "eks:111122223333/us-east-1/train"


@pytest.fixture
def run(sandbox: SandboxInfo, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command against the sandbox of the test: exit code, stdout, stderr."""
    monkeypatch.setenv("GPUKUBE_SANDBOX_STATE", sandbox.state_dir)

    def call(*arguments: str) -> tuple[int, str, str]:
        try:
            code = main(arguments)
        except SystemExit as end:  # argparse's, after --help and --version
            code = int(end.code or 0)
        return code, *capsys.readouterr()

    return call


def test_up_when_clusters_and_a_world_are_given_then_both_are_there(run: Run, tmp_path: Path) -> None:
    world = tmp_path / "w.yaml"
    world.write_text(f"clusters:\n  - {{provider: aks, subscription: {UUID}, resourceGroup: ml, name: serve}}\n")
    code, out, err = run("up", "--cluster", TRAIN, "--cluster", "gke:ml-prod/us-central1/batch", "--world", str(world))
    assert (code, err, out.splitlines()[-1]) == (0, "", 'use it: eval "$(gpukube-sandbox env)"')
    _, shown, _ = run("status", "-v")
    names = [line for line in shown.splitlines() if not line.startswith(" ")]
    assert names == ["serve  aks  Succeeded", "train  eks  ACTIVE", "batch  gke  RUNNING"]
    assert "  pool system  ACTIVE  1 x m5.large" in shown
    assert shown.count("    node ") == 3
    document = json.loads(run("status", "-o", "json")[1])
    assert (document["kind"], len(document["clusters"])) == ("Sandbox", 3)


def test_env_when_real_credentials_are_set_then_they_are_unset_and_all_leads_to_loopback(
    run: Run, sandbox: SandboxInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "prod")
    run("up", "--cluster", TRAIN)
    code, out, _ = run("env")
    lines = out.splitlines()
    assert (code, lines[0]) == (0, "unset AWS_PROFILE")
    assert {f"export AWS_ENDPOINT_URL={sandbox.aws_url}", "export GPUKUBE_SANDBOX=1"} <= set(lines)
    assert all(line.startswith(("unset ", "export ")) for line in lines)


def test_fault_when_added_listed_and_cleared_then_told(run: Run) -> None:
    added = run("fault", "add", "status", "--service", "arm", "--status", "429", "--header", "Retry-After=1")
    assert added == (0, "added fault 0; gpukube-sandbox fault clear removes all\n", "")
    shown = "0  status  service=arm nth=1 times=1 status=429 headers=Retry-After:1\n   0 matched, 0 struck\n"
    assert run("fault", "list")[1] == shown
    assert json.loads(run("fault", "list", "-o", "json")[1])["faults"][0]["status"] == 429
    assert run("fault", "clear")[:2] == (0, "all faults removed\n")
    assert run("fault", "list")[1] == "no faults\n"


def test_deny_upgrade_and_reset_when_run_then_the_sandbox_has_done_it(run: Run, sandbox: SandboxInfo) -> None:
    run("up", "--cluster", TRAIN)
    assert run("deny", "iam:PassRole")[:2] == (0, "now denied: iam:PassRole\n")
    assert daemon.call(sandbox, "GET", "permissions")["denied"] == ["iam:PassRole"]
    assert run("deny")[:2] == (0, "everything is allowed\n")
    code, _, told = run("upgrade", "train")
    assert (code, told.splitlines()[0]) == (
        4,
        "error: nothing to upgrade to; specify a Kubernetes version or a date of node images",
    )
    code, _, told = run("upgrade", "train", "--kubernetes-version", "latest")
    wrong = "error: kubernetesVersion is 'latest'; write a version such as 1.35 or 1.35.1"
    assert (code, told.splitlines()[0]) == (4, wrong)
    assert run("upgrade", "train", "--kubernetes-version", "1.35.0")[0] == 0
    for address in (TRAIN, "aks:11111111-2222-3333-4444-555555555555/ml/batch", "gke:ml-prod/us-central1/serve"):
        assert run("up", "--cluster", address)[0] == 0
        assert run("upgrade", address, "--kubernetes-version", "1.35.0")[0] == 0
    assert run("reset")[:2] == (0, "all clusters deleted\n")
    assert run("status")[1].startswith("no clusters; gpukube-sandbox up --cluster creates one")


REFUSED = {
    "no command": ((), "the following arguments are required: COMMAND", "gpukube-sandbox --help"),
    "unknown option": (("up", "--fast"), "unrecognized arguments: --fast", "gpukube-sandbox --help"),
    "speed": (
        ("up", "--speed", "0"),
        'argument --speed: "0" is not a number from 1 to 10000',
        "gpukube-sandbox up --help",
    ),
    "address": (
        ("up", "--cluster", "eks:train"),
        '"eks:train" is not a cluster address',
        "write eks:ACCOUNT/REGION/NAME, aks:SUBSCRIPTION/RESOURCEGROUP/NAME or gke:PROJECT/LOCATION/NAME",
    ),
    "account": (
        ("up", "--cluster", "eks:1/us-east-1/train"),
        "account is '1'; it must have twelve digits",
        "write eks:ACCOUNT/REGION/NAME, aks:SUBSCRIPTION/RESOURCEGROUP/NAME or gke:PROJECT/LOCATION/NAME",
    ),
    "world": (("up", "--world", "/none.yaml"), "/none.yaml: does not exist", "check the path"),
    "fault": (
        ("fault", "add", "hang", "--seconds", "2"),
        "a fault 'hang' takes no 'seconds'; it takes method, nth, path, service, times",
        "gpukube-sandbox fault add --help lists kinds and options",
    ),
    "header": (("fault", "add", "status", "--header", "x"), '"x" is not a header', "write KEY=VALUE"),
    "permission": (
        ("deny", "iam:PassRoll"),
        "no call in the sandbox needs a permission 'iam:PassRoll'; did you mean iam:PassRole?",
        "spell it as in the cloud's error message; docs/sandbox.md, Permissions, has examples",
    ),
    "cluster": (
        ("upgrade", "train"),
        "no cluster is named 'train'",
        "gpukube-sandbox status lists the clusters; versions look like 1.35 or 1.35.1, dates like 20260915",
    ),
}


def test_command_when_the_input_is_wrong_then_exit_4_with_what_is_wrong_and_what_to_do(run: Run) -> None:
    told = {case: run(*arguments) for case, (arguments, _, _) in REFUSED.items()}
    assert told == {case: (4, "", f"error: {what}\n    fix: {fix}\n") for case, (_, what, fix) in REFUSED.items()}


def test_command_when_help_or_version_then_exit_0(run: Run) -> None:
    assert run("--version") == (0, f"gpukube-sandbox {__version__}\n", "")
    code, out, _ = run("fault", "add", "--help")
    assert (code, "stock-out" in out) == (0, True)


def test_command_when_no_sandbox_runs_then_exit_1(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUKUBE_SANDBOX_STATE", str(tmp_path))
    expected = (1, "", "error: the sandbox is not running\n    fix: gpukube-sandbox up\n")
    assert [run("env"), run("reset")] == [expected, expected]
    assert run("down")[:2] == (0, "the sandbox was not running\n")


def test_command_when_the_state_directory_is_a_file_then_exit_1(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.touch()
    monkeypatch.setenv("GPUKUBE_SANDBOX_STATE", str(path))
    fix = "set GPUKUBE_SANDBOX_STATE to a writable directory"
    assert run("up") == (1, "", f"error: {path}: file exists\n    fix: {fix}\n")


def test_up_when_the_last_sandbox_was_killed_then_what_was_lost_is_told_once(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUKUBE_SANDBOX_STATE", str(tmp_path))
    try:
        assert run("up", "--cluster", TRAIN)[2] == ""
        info: Any = daemon.load_info(tmp_path)
        os.kill(info.pid, signal.SIGKILL)
        wait_for(lambda: not state.is_running(tmp_path))
        lost = "the last sandbox was killed (last seen "
        code, _, told = run("status")
        assert (code, told.startswith(f"error: the sandbox is not running: {lost}")) == (1, True)
        _, _, told = run("up")
        assert (told.startswith(f"warning: {lost}"), told.endswith("; lost with it: eks train\n")) == (True, True)
        assert run("up")[2] == ""
        assert run("down")[:2] == (0, "stopped\n")
        assert state.find_loss(tmp_path) is None
    finally:
        daemon.down(tmp_path)


def test_env_when_its_reader_has_gone_then_no_traceback(run: Run) -> None:
    run("up", "--cluster", TRAIN)
    command = [sys.executable, "-c", "import sys; from gpukube_sandbox.cli import main; sys.exit(main(['env']))"]
    reader, writer = os.pipe()
    os.close(reader)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with contextlib.closing(os.fdopen(writer, "wb")) as out:
        done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True, check=False, env=environment)
    assert (done.returncode, done.stderr) == (1, "")
