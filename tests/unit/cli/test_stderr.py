"""Messages on stderr: records in a pipe, broken at words on a terminal, commands never."""

from __future__ import annotations

import io
import re
import shlex
from contextlib import redirect_stderr
from pathlib import Path
from typing import TYPE_CHECKING

import gpukube.cli
from gpukube.cli.stderr import write_stderr

if TYPE_CHECKING:
    import pytest

MESSAGE = "pools.yaml:3:5: hint[GPK436]: the operator's MIG manager reboots the node when its GPUs are cut anew, once\n"
FIX = "    fix: gpukube pool apply -f pools.yaml --allow-disruption --adopt-release --cluster train-eks\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def told(text: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a terminal of 60 columns gets."""
    monkeypatch.setenv("COLUMNS", "60")
    with redirect_stderr(Terminal()) as terminal:
        write_stderr(text)
    return terminal.getvalue()


def test_message_when_in_a_pipe_then_a_record(capsys: pytest.CaptureFixture[str]) -> None:
    write_stderr(MESSAGE + FIX)
    assert capsys.readouterr().err == MESSAGE + FIX


def test_message_when_longer_than_the_terminal_then_broken_at_words(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = told(MESSAGE, monkeypatch).splitlines()
    assert len(rows) > 1
    assert max(map(len, rows)) <= 60
    assert " ".join(" ".join(rows).split()) == MESSAGE.strip()


def test_message_when_it_holds_a_command_then_broken_at_its_words_and_a_shell_takes_it_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line = "to run it again: gpukube pool apply -f 'my pools.yaml' --yes --cluster train-aks --pool t4slices --adopt\n"
    for text in (FIX, line):
        rows = told(text, monkeypatch).splitlines()
        assert len(rows) > 1
        assert max(map(len, rows)) <= 60
        assert shlex.split("\n".join(rows).replace("\\\n", "")) == shlex.split(
            text
        )  # as a shell takes a line that goes on


PROMPTS = {"stderr.py", "ending.py", "bodies/init.py", "app.py"}
"""What writes by itself: the writer, an end in a signal handler, prompts without a line's end, and a constant."""


def test_command_when_it_writes_to_stderr_then_through_the_one_writer_that_cleans() -> None:
    folder = Path(gpukube.cli.__file__).parent
    found = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*.py")
        if re.search(r"stderr\.write|file=sys\.stderr", path.read_text("utf-8"))
    }
    assert found <= PROMPTS
