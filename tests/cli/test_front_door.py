"""The edges of the process: help, streams that end, a machine that is full, the sandbox's own commands."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpukube.errors import ExitCode
from gpukube_sandbox import daemon
from tests.cli.harness import EXAMPLES, LONGEST_S, ROOT, Gpukube, environment
from tests.cli.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube_sandbox.daemon import SandboxInfo

SINGLE = EXAMPLES / "aks-mig-single.yaml"
COMMANDS = ("docs", "validate", "schema", "init", "explain", "pool", "catalog", "doctor", "sandbox")
POOL_COMMANDS = ("plan", "create", "list", "get", "delete", "verify")


def test_help_when_shown_then_every_command_and_every_exit_code(gpukube: Gpukube) -> None:
    shown = gpukube("--help", sandbox=False)
    assert shown.code == 0
    for command in COMMANDS:
        assert re.search(rf"^  {command} ", shown.out, re.MULTILINE)
    told = " ".join(shown.out.partition("Exit codes: ")[2].split())
    assert [int(number) for number in re.findall(r"\b\d+\b", told)] == [int(code) for code in ExitCode]
    below = gpukube("pool", "--help", sandbox=False).out
    assert all(re.search(rf"^  {command} ", below, re.MULTILINE) for command in POOL_COMMANDS)


def test_gpukube_when_alone_on_a_terminal_then_three_next_steps() -> None:
    with Terminal(None) as terminal:
        assert terminal.end() == ExitCode.BAD_INPUT
        assert len(re.findall(r"^  gpukube ", terminal.text, re.MULTILINE)) == 3
        assert "gpukube --help" in terminal.text
        assert max(map(len, terminal.text.splitlines())) <= 80


def test_docs_when_on_a_terminal_then_a_page_is_drawn_in_a_pager() -> None:
    with Terminal(None, "docs", "sharing", PAGER="cat") as terminal:
        assert terminal.end() == 0
        assert "\nResize MIG" in terminal.text, "a heading, no Markdown"
        assert "## " not in terminal.text
        assert "a new pool (replace)" in " ".join(terminal.text.split()), "a link is named by its topic"


def test_readme_when_it_lists_exit_codes_then_all_of_them() -> None:
    rows = re.findall(r"^\| (\d+) \| ", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE)
    assert [int(row) for row in rows] == [int(code) for code in ExitCode]


@pytest.mark.parametrize("words", [(), ("pool",), ("sandbox",)])
def test_command_when_missing_then_usage_and_four_never_two(words: tuple[str, ...], gpukube: Gpukube) -> None:
    shown = gpukube(*words, sandbox=False)
    assert (shown.code, "Usage: gpukube" in shown.out + shown.err) == (4, True)


def test_version_when_asked_for_then_the_same_by_every_way(gpukube: Gpukube) -> None:
    said = {gpukube(*words, sandbox=False).out for words in (("--version",), ("-V",), ("-v", "--version"))}
    assert len(said) == 1
    assert re.fullmatch(r"gpukube \d+\.\d+\.\d+\n", said.pop())


def test_schema_when_printed_then_it_accepts_the_examples(gpukube: Gpukube) -> None:
    import json  # noqa: PLC0415 - with jsonschema, for this one

    import yaml  # noqa: PLC0415
    from jsonschema import Draft202012Validator  # noqa: PLC0415

    schema = json.loads(gpukube("schema", sandbox=False).out)
    Draft202012Validator.check_schema(schema)
    for file in EXAMPLES.glob("*.yaml"):
        Draft202012Validator(schema).validate(yaml.safe_load(file.read_text("utf-8")))


def test_spec_when_read_from_stdin_then_places_are_told_with_a_dash(
    gpukube: Gpukube, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(SINGLE.read_text("utf-8")))
    assert gpukube("pool", "plan", "-f", "-").code == 0
    monkeypatch.setattr(sys, "stdin", io.StringIO(SINGLE.read_text("utf-8").replace("count: 8", "count: 7")))
    wrong = gpukube("validate", "-f", "-")
    assert (wrong.code, wrong.err.startswith("-:")) == (4, True)


def _run_into(info: SandboxInfo, target: str, *words: str) -> subprocess.CompletedProcess[str]:
    with Path(target).open("w") as stream:
        return subprocess.run(
            [sys.executable, "-m", "gpukube", *words],
            stdout=stream,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env=environment(info.state_dir, {"PYTHONUNBUFFERED": ""}),  # buffered, as users have it
            cwd=ROOT,
            timeout=LONGEST_S,
        )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("words", [("schema",), ("validate", "-f", str(SINGLE), "-o", "json")])
def test_output_when_the_disk_is_full_then_the_machine_is_blamed(words: tuple[str, ...], sandbox: SandboxInfo) -> None:
    done = _run_into(sandbox, "/dev/full", *words)
    assert done.returncode == 1
    assert done.stderr.startswith("gpukube: error[system]: no space left on device\n    fix: ")
    assert "Traceback" not in done.stderr


def test_output_when_its_reader_goes_away_then_no_trace(sandbox: SandboxInfo) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "gpukube", "--sandbox", "pool", "plan", "-v", "-f", str(SINGLE)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(sandbox.state_dir, {}),
        cwd=ROOT,
    )
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()
    assert "Traceback" not in said
    assert "error[" not in said


@pytest.fixture
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gpukube: Gpukube) -> Iterator[Path]:
    """A place for a sandbox of the test's own."""
    directory = tmp_path / "state"
    monkeypatch.setenv("GPUKUBE_SANDBOX_STATE", str(directory))
    yield directory
    daemon.down(directory)


def test_sandbox_commands_when_used_in_turn_then_each_says_what_it_did(
    own_state: Path, gpukube: Gpukube, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert gpukube("sandbox", "down", sandbox=False).out == "the sandbox was not running\n"
    for command in ("status", "env", "reset"):
        missing = gpukube("sandbox", command, sandbox=False)
        assert (missing.code, "the sandbox is not running" in missing.err) == (1, True)
    up = gpukube("sandbox", "up", "-f", SINGLE, "--speed", "2000", sandbox=False)
    assert (up.code, str(own_state) in up.out) == (0, True)
    assert "it stops after 4 hours without a request\n" in up.out
    assert "train  aks  Succeeded" in gpukube("sandbox", "status", sandbox=False).out
    document = gpukube("sandbox", "status", "-o", "json", sandbox=False).json()
    assert (document["kind"], document["schemaVersion"], document["speed"]) == ("Sandbox", 0, 2000.0)
    upgraded = gpukube("sandbox", "upgrade", "train", "--images", "20260915", sandbox=False)
    assert upgraded.out == "done; node pools are unchanged\n"
    unknown = gpukube("sandbox", "upgrade", "nope", sandbox=False)
    assert (unknown.code, "no cluster is named 'nope'" in unknown.err) == (4, True)
    exports = gpukube("sandbox", "env", sandbox=False).out
    assert "export GPUKUBE_SANDBOX=1\n" in exports
    assert f"export GPUKUBE_SANDBOX_STATE={own_state}\n" in exports
    assert gpukube("sandbox", "reset", sandbox=False).out == "all clusters deleted\n"
    assert gpukube("sandbox", "status", "-o", "json", sandbox=False).json()["clusters"] == []
    own = next(line.partition("=")[2] for line in exports.splitlines() if "GPUKUBE_SANDBOX_ID" in line)
    monkeypatch.setenv("GPUKUBE_SANDBOX_ID", own)
    assert gpukube("pool", "list", "-f", SINGLE).code == 0
    assert gpukube("sandbox", "down", sandbox=False).out == "stopped\n"
    gone = gpukube("pool", "list", "-f", SINGLE)
    assert (gone.code, "error[sandbox-gone]: the sandbox of this shell has stopped" in gone.err) == (1, True)
    assert daemon.load_info(own_state) is None
    assert gpukube("sandbox", "up", "--idle-timeout", "0", sandbox=False).out.count("\n") == 2
    assert "and the running one is " in gpukube("pool", "list", "-f", SINGLE).err
    monkeypatch.delenv("GPUKUBE_SANDBOX_ID")
    assert gpukube("pool", "list", "-f", SINGLE).code == 0
    state = own_state / "sandbox.json"
    state.write_text(json.dumps({**json.loads(state.read_text()), "version": "0.0.9", "key of a later one": 1}))
    other = gpukube("pool", "list", "-f", SINGLE)
    assert (other.code, "error[sandbox-version]: the running sandbox is from gpukube 0.0.9" in other.err) == (1, True)
    assert gpukube("sandbox", "down", sandbox=False).out == "stopped\n"


def test_sandbox_when_led_in_by_the_environment_then_as_with_the_option(
    gpukube: Gpukube, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUKUBE_SANDBOX", "1")
    done = gpukube("pool", "create", "-f", SINGLE, sandbox=False)
    assert (done.code, "nvidia.com/gpu: 56 verified on 1 node" in done.out) == (0, True), done.err


def test_sandbox_when_its_place_cannot_be_written_then_the_machine_is_blamed(
    gpukube: Gpukube, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GPUKUBE_SANDBOX_STATE", str(tmp_path / "file"))
    refused = gpukube("pool", "plan", "-f", SINGLE)
    assert refused.code == 1
    assert refused.err.startswith("gpukube: error[system]: file exists: ")


def test_library_when_used_from_python_then_as_its_docstring_says(gpukube: Gpukube, sandbox: SandboxInfo) -> None:
    from gpukube import api  # noqa: PLC0415 - after the fixtures

    prepared = api.prepare(api.load([str(SINGLE)], environ={}))
    settings = api.Settings(
        endpoints={"aks": sandbox.arm_url}, sandbox=True, secret=sandbox.secret, kube_timeout_s=60.0
    )
    heard: list[api.Event] = []
    run = api.Run(
        settings,
        api.chart_source(sandbox.charts_url),
        environment(sandbox.state_dir, {}),
        resume="python my_script.py",
        pace=api.QUICK,
        listen=heard.append,
    )
    reports = api.create(prepared, run)
    assert api.exit_code(reports) == ExitCode.DONE
    assert reports[0].pools[0].proof is not None
    assert dict(reports[0].pools[0].proof.total) == {"nvidia.com/gpu": 56}
    assert {event.phase for event in heard} >= {"check", "release", "create", "done"}
    assert api.exit_code(api.verify(prepared, run)) == ExitCode.DONE
    assert api.diff_exit_code(api.plan(prepared, run), skip_cluster=False) == ExitCode.DONE
