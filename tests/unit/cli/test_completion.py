"""What Tab offers: names of the spec, fields, formats and fixed words; nothing on stderr, whatever a file holds."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpukube.__main__ import main
from gpukube.cli.app import command_line
from gpukube.cli.completion import EXPORT_TARGETS
from gpukube.cli.field_names import FIELD_NAMES
from gpukube.cli.kinds import FORMATS, KINDS
from gpukube.engine.exporting import targets
from gpukube.rule_ids import rule_id
from gpukube.spec.reference.fieldguide import field_names
from gpukube.spec.source.names import names_in
from gpukube.workload.lint.registry import RULES
from tools.spec_docs import NAMES, names_module

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from typer._click.core import Command

    Tab = Callable[[str], list[str]]

ROOT = Path(__file__).parents[3]
SPEC = ROOT / "examples" / "three-clouds.yaml"
POOLS = ["a100slices", "t4slices"]
CLUSTERS = ["train-eks", "train-aks", "train-gke"]


@pytest.fixture
def tab(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Tab:
    """Press Tab at the end of a line, as bash does."""
    monkeypatch.delenv("GPUKUBE_FILE", raising=False)
    # A slow Tab ends its process with 0: here that would be the whole run of the tests, without a word.
    monkeypatch.setattr("gpukube.cli.completion._PATIENCE_S", 600.0)

    def press(line: str) -> list[str]:
        words = line.split(" ")
        monkeypatch.setenv("_GPUKUBE_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", "\n".join(words))
        monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
        with pytest.raises(SystemExit) as ended:
            main([])
        shown = capfd.readouterr()
        assert (ended.value.code, shown.err) == (0, "")
        return shown.out.split()

    return press


LINES = {
    f"pool get -f {SPEC} ": POOLS,
    f"pool get -f {SPEC} a": ["a100slices"],
    f"pool delete -f {SPEC} t4slices ": POOLS,
    f"pool plan -f {SPEC} diff --pool ": POOLS,
    f"pool list --file = {SPEC} --pool = t": ["t4slices"],  # as bash takes --file=... --pool=t apart
    f"pool apply -f {SPEC} --cluster ": CLUSTERS,
    f"workload render -f {SPEC} --image nvcr.io/nvidia/cuda : 13 --pool ": POOLS,
    f"workload render -f {SPEC} --cluster train-g": ["train-gke"],
    f"explain owner -f {SPEC} t": ["t4slices"],
    "pool get ": [],
    "pool list --cluster ": [],
    "pool get -f nowhere.yaml ": [],
    "pool apply --replace ": ["surge", "recreate"],
    "pool export --to e": ["eksctl"],
    "explain sharing.": ["sharing.mig", "sharing.timeSlicing", "sharing.mps"],
    "explain pools.sharing.mig": [
        *("pools.sharing.mig", "pools.sharing.mig.profile", "pools.sharing.mig.layout", "pools.sharing.mig.strategy"),
    ],
    "explain field gpu.m": ["gpu.model"],
    "explain pools.sh": ["pools.sharing", "pools.sharing.mig", "pools.sharing.timeSlicing", "pools.sharing.mps"],
    "explain ow": ["owner"],
    "init --provider a": ["aks"],
    "init --gpu H100": ["H100-80GB", "H100-94GB"],
    "pool plan -o ": list(FORMATS["Plan"]),
    "pool plan diff -o ": list(FORMATS["Diff"]),
    "pool get -o w": ["wide"],
    "validate -o s": ["sarif"],
    "report show -o t": ["table", "terraform-json", "text"],
    "explain field -o ": list(FORMATS["FieldExplanation"]),
    "workload lint --explain GPK705": ["GPK705"],
    "workload lint --explain gpu-fr": ["gpu-fraction"],
    "sandbox fault add stock": ["stock-out"],
}


@pytest.mark.parametrize("line", LINES)
def test_tab_when_pressed_then_offers_what_fits_there(line: str, tab: Tab) -> None:
    assert tab(f"gpukube {line}") == LINES[line]


def test_tab_when_the_file_is_in_the_environment_then_its_pools(tab: Tab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUKUBE_FILE", str(SPEC))
    assert tab("gpukube pool get ") == POOLS


def test_tab_when_the_path_is_as_written_in_the_shell_then_home_and_variables_are_meant(
    tab: Tab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "pools.yaml").write_text(SPEC.read_text())
    monkeypatch.setenv("HOME", str(tmp_path))
    assert tab("gpukube pool get -f ~/pools.yaml t") == ["t4slices"]
    assert tab("gpukube pool get -f $HOME/*.yaml t") == ["t4slices"]


HALF = """
clusters:
  train: &here {provider: eks, labels: {name: inner}}
  beside: *here
pools:
  - name: whole
    taints: [{name: not-a-pool}]
  - {gpu: {model: T4}, name: behind}
  - name: "$(touch owned)"
  - name: half
    sharing: {mig: {profile: 1g
other: ]
"""


def test_names_when_the_text_is_half_written_then_those_before_the_mistake() -> None:
    found = names_in(HALF)
    assert found.clusters == ["train", "beside"]
    assert found.pools == ["whole", "behind", "$(touch owned)", "half"]
    assert names_in("---\n- 1\n---\npools: [{name: a}]\n---\npools: [{name: b}]\n").pools == ["a", "b"]
    for text in ("", "pools", "pools: {name: a}", "{", "\0", "*a", "- " * 100):
        assert names_in(text).pools == []


def test_tab_when_names_are_no_names_then_they_are_not_offered(tab: Tab, tmp_path: Path) -> None:
    (tmp_path / "half.yaml").write_text(HALF)
    assert tab(f"gpukube pool get -f {tmp_path}/half.yaml ") == ["whole", "behind", "half"]


def test_tab_when_a_file_cannot_be_read_then_nothing_and_no_word(tab: Tab, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")  # opening it would wait for ever
    (tmp_path / "latin.yaml").write_bytes(b"pools: [{name: \xff}]")
    (tmp_path / "huge.yaml").write_text("pools:\n" + "".join(f"- name: p{i}\n" for i in range(100_000)))
    (tmp_path / "empty").mkdir()
    for path in (*tmp_path.iterdir(), "/dev/zero", "/proc/self/mem", "-", "a\\", "'"):
        if "huge" not in str(path):
            assert tab(f"gpukube pool get -f {path} ") == []
    assert tab(f"gpukube pool get -f {tmp_path}/huge.yaml p3999") == ["p3999", *(f"p3999{i}" for i in range(10))]


def commands(group: Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Command]]:
    yield path, group
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, (*path, name))


def test_formats_when_offered_then_those_that_the_command_takes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUKUBE_FILE", str(SPEC))
    with_output = {
        " ".join(path): command
        for path, command in commands(command_line())
        if path[:1] != ("report",) and any(parameter.name == "output" for parameter in command.params)
    }
    assert set(with_output) == set(KINDS)
    for path, kind in KINDS.items():
        command = with_output[path]
        required = ["pools" if p.name == "field" else "a100slices" for p in command.params if p.required]
        sizes = ["--nodes", "1"] if path == "pool scale" else []
        assert main([*path.split(), *required, *sizes, "-o", "nonsense"]) == 4
        said = capsys.readouterr().err
        assert f"choose one of {', '.join(FORMATS[kind])}\n" in said, path


def test_lists_when_compared_then_they_are_those_of_the_code(tab: Tab) -> None:
    assert set(EXPORT_TARGETS) == set(targets())
    assert NAMES.read_text() == names_module(), "run: python tools/spec_docs.py"
    assert FIELD_NAMES.split() == list(field_names())
    assert tab("gpukube workload lint --explain GPK") == [rule_id(code) for code in RULES]


SHELLS = {
    "bash": 'eval "$(_GPUKUBE_COMPLETE=source_bash gpukube)"; COMP_WORDS=(gpukube pool get "$0"); COMP_CWORD=3; '
    "_gpukube_completion gpukube; printf '%s\\n' \"${COMPREPLY[@]}\"",
    # compdef and _arguments come with zsh's completion system, which needs a terminal.
    "zsh": 'compdef() {}; _arguments() { print -r -- "$@" }; eval "$(_GPUKUBE_COMPLETE=source_zsh gpukube)"; '
    'words=(gpukube pool get "$0"); CURRENT=4; _gpukube_completion',
    "fish": "_GPUKUBE_COMPLETE=source_fish gpukube | source; complete -C 'gpukube pool get t4'",
}


@pytest.mark.parametrize("shell", SHELLS)
def test_script_when_a_shell_runs_it_then_a_pool_of_the_spec_is_offered(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not on PATH")
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    done = subprocess.run(
        [shell, "-c", SHELLS[shell], *(["t4"] if shell != "fish" else [])],
        env={**os.environ, "PATH": path, "GPUKUBE_FILE": str(SPEC)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, ""), shlex.quote(done.stderr)
    assert "t4slices" in done.stdout
    assert "a100slices" not in done.stdout
