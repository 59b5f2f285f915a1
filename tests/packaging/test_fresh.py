"""The main job by the wheel alone, in a virtual environment of its own: from no spec to proven GPUs on three clouds."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.packaging.conftest import Built

PAGE = Path(__file__).parents[2] / "docs" / "install.md"
SPEED = "2000"
TRY = next(
    block for block in re.findall(r"```sh\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL) if "--sandbox init" in block
)
"""What the page tells somebody without a cloud account to run."""


class Machine:
    """A home directory with a virtual environment that has the wheel, and the libraries of this one.

    Args:
        home: An empty directory.
        wheels: What is installed.
    """

    def __init__(self, home: Path, *wheels: Path) -> None:
        self._home = home
        venv.create(home / "venv", symlinks=True)
        (packages,) = (home / "venv" / "lib").glob("python*/site-packages")
        # The libraries come after the wheel: a gpukube that is installed among them is not found.
        ours = [path for path in sys.path if Path(path).name == "site-packages"]
        (packages / "libraries.pth").write_text("".join(f"{path}\n" for path in ours))
        self.run(
            str(home / "venv" / "bin" / "python"),
            *("-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"),
            *map(str, wheels),
        )

    def run(self, program: str, *words: str) -> str:
        """Run a program and return its output."""
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("GPUKUBE_", "PYTHON", "XDG_"))
        }
        done = subprocess.run(
            [program, *words],
            cwd=self._home,
            env={
                **kept,
                "HOME": str(self._home),
                "PATH": f"{self._home}/venv/bin:/usr/bin:/bin",
                "XDG_STATE_HOME": f"{self._home}/Library/Application Support",  # as on macOS: with a blank
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def machine(built: Built, tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path, built.wheel, built.sandbox)
    yield machine
    machine.run("gpukube", "sandbox", "down")


@pytest.mark.slow  # .ci/run runs it beside the other tests
def test_wheel_when_it_is_all_there_is_then_the_main_job_passes(machine: Machine, tmp_path: Path) -> None:
    where = machine.run("python", "-c", "import gpukube, gpukube_gke; print(gpukube.__file__, gpukube_gke.__file__)")
    assert all(path.startswith(str(tmp_path)) for path in where.split())
    machine.run("gpukube", "sandbox", "up", "--speed", SPEED)
    shown = machine.run("bash", "-euc", TRY)
    assert shown.count("+ create") == 3
    assert shown.count("nvidia.com/gpu: 56 verified on 1 node") == 6, "three clouds, created and verified"
