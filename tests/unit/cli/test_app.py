"""How a run ends: whose fault it is, told in a few lines, with the trace only when asked for."""

from __future__ import annotations

import pytest

from gpukube.cli import app
from gpukube.errors import CapacityError, ExitCode, GpukubeError

MEND = "    fix: fix it and run the command again; it continues\n"

ENDS: dict[str, tuple[BaseException, ExitCode, str]] = {
    "an error of ours": (
        CapacityError("none left", where="train-aks/a100", fix="zone 2"),
        ExitCode.CAPACITY,
        "train-aks/a100: error[capacity]: none left\n    fix: zone 2\n",
    ),
    "Ctrl-C": (KeyboardInterrupt(), ExitCode.INTERRUPTED, "gpukube: interrupted\n"),
    "a full disk": (
        OSError(28, "No space left on device"),
        ExitCode.ERROR,
        f"gpukube: error[system]: no space left on device\n{MEND}",
    ),
    "no right to write": (
        PermissionError(13, "Permission denied", "/etc/x"),
        ExitCode.ERROR,
        f"gpukube: error[system]: permission denied: /etc/x\n{MEND}",
    ),
}


class Command:
    """A command line that ends in one way."""

    def __init__(self, end: BaseException) -> None:
        self._end = end

    def main(self, **_: object) -> None:
        raise self._end


def end_with(end: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "command_line", lambda: Command(end))


@pytest.mark.parametrize("name", ENDS)
def test_run_when_it_ends_badly_then_code_and_message(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    end, code, said = ENDS[name]
    end_with(end, monkeypatch)
    assert app.run(["pool", "plan"]) == code
    assert capsys.readouterr() == ("", said)


def test_run_when_there_is_a_defect_then_its_place_but_no_values(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    end_with(KeyError("a-secret"), monkeypatch)
    assert app.run(["pool", "plan"]) == ExitCode.ERROR
    said = capsys.readouterr().err
    assert said.startswith("gpukube: error[defect]: KeyError in main (test_app.py:")
    assert "a-secret" not in said
    assert "Traceback" not in said


@pytest.mark.parametrize("flag", ["-v", "--verbose"])
def test_run_when_verbose_then_the_trace_too(
    flag: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = GpukubeError("it broke")
    error.__cause__ = ValueError("the library's own words")
    end_with(error, monkeypatch)
    assert app.run(["pool", "plan", flag]) == ExitCode.ERROR
    said = capsys.readouterr().err
    assert said.startswith("gpukube: error[error]: it broke\ncaused by:\n")
    assert "ValueError: the library's own words" in said
