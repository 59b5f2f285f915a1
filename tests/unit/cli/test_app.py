"""How a run ends: whose fault it is, told in a few lines, with the trace only when asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

from gpukube.cli import app
from gpukube.errors import CapacityError, ExitCode, GpukubeError

MEND = "    fix: solve the problem and run the command again; it continues\n"

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


POSIX_ONLY = ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty", "syslog")
ON_WINDOWS = f"""
import signal, sys
import typer  # it looks for what Windows has
sys.modules.update(dict.fromkeys({POSIX_ONLY!r}))
del signal.SIGHUP, signal.SIGKILL
sys.platform = "win32"
from gpukube.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


def test_windows_when_it_is_the_system_then_every_command_is_refused_in_words() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ON_WINDOWS, "pool", "create", "-f", "pools.yaml"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stdout, done.stderr) == (
        ExitCode.ERROR,
        "",
        (
            "gpukube: error[system]: gpukube does not run on Windows\n"
            "    why: it needs file locks, signals and process groups of Linux or macOS\n"
            "    fix: run it in WSL 2: https://learn.microsoft.com/windows/wsl/install\n"
        ),
    )
