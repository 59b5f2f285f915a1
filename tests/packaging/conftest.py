"""The wheel and the sdist, built once for all tests here, with what is installed: no network."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
BUILD = """
import sys
from hatchling import build
print({"wheel": build.build_wheel, "sdist": build.build_sdist}[sys.argv[1]](sys.argv[2]))
"""
"""The build backend, called as pip calls it, in a process whose working directory is the source."""


class Built(NamedTuple):
    """Distributions of this tree.

    Attributes:
        wheel: Built from the tree.
        sdist: Built from the tree.
        rebuilt: The wheel that the sdist makes.
        sandbox: The wheel of gpukube-sandbox.
    """

    wheel: Path
    sdist: Path
    rebuilt: Path
    sandbox: Path


def build(kind: str, source: Path, directory: Path) -> Path:
    """Build a distribution of a source tree into a directory."""
    directory.mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-c", BUILD, kind, str(directory)],
        cwd=source,
        check=True,
        capture_output=True,
        text=True,
        timeout=240,
    )
    return directory / done.stdout.split()[-1]


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Build the wheel and the sdist of this tree, and a wheel of the sdist."""
    directory = tmp_path_factory.mktemp("dist")
    wheel, sdist = (build(kind, ROOT, directory) for kind in ("wheel", "sdist"))
    with tarfile.open(sdist) as archive:
        archive.extractall(directory, filter="data")
    sandbox = build("wheel", ROOT / "sandbox", directory)
    return Built(
        wheel, sdist, build("wheel", directory / sdist.name.removesuffix(".tar.gz"), directory / "rebuilt"), sandbox
    )
