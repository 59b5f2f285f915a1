"""docs/workloads.md: its commands print what is shown, and what they write has nothing wrong with it and fits."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

import pytest

from gpukube.__main__ import main

if TYPE_CHECKING:
    from pathlib import Path

from tests.cli.harness import ROOT

PAGE = (ROOT / "docs" / "workloads.md").read_text()
STEPS = [
    (line, shown.splitlines())
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    for line, _, shown in (step.partition("\n") for step in block.removeprefix("$ ").split("\n$ "))
]
RENDERED = [(line, shown) for line, shown in STEPS if " render " in line]


def test_page_when_read_then_its_commands_are_found() -> None:
    assert len(RENDERED) >= 4
    assert all(line.startswith("gpukube ") for line, _ in STEPS)


@pytest.mark.parametrize(("line", "shown"), RENDERED, ids=[line.split(" render ")[1][:40] for line, _ in RENDERED])
def test_command_of_the_page_when_run_then_prints_what_is_shown_and_that_is_right(
    line: str, shown: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    words = shlex.split(line)[1:]
    spec = words[words.index("-f") + 1]

    assert main(words) == 0
    manifest = capsys.readouterr().out

    assert [text for text in shown if text not in manifest.splitlines()] == []
    file = tmp_path / "manifest.yaml"
    file.write_text(manifest)
    cluster = ["--cluster", words[words.index("--cluster") + 1]] if "--cluster" in words else []
    assert main(["workload", "lint", "--strict", str(file), "-f", spec, *cluster]) == 0, capsys.readouterr().err
    # 1 is for pods that never run; a Ray head, which needs a node that the spec does not know, is none
    assert main(["workload", "fit", str(file), "-f", spec, *cluster]) == 0, capsys.readouterr().out
