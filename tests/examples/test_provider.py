"""A fourth cloud that comes as a package of its own: examples/provider, as docs/providers.md walks through it.

Its own tests run it through the contract, validate, plan, create and delete. Here it is installed as users would,
into a directory beside the three clouds, and its tests run in a process that finds it by its entry point.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "provider"


@pytest.fixture(scope="module")
def environ(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Install the package, without network; give the environment of a process that has it."""
    directory = tmp_path_factory.mktemp("nimbus")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]
    subprocess.run(
        [*pip, "--no-deps", "--no-build-isolation", "--target", str(directory), str(EXAMPLE)],
        check=True, capture_output=True, timeout=240,
    )  # fmt: skip
    path = os.pathsep.join((str(directory), str(ROOT), str(ROOT / "providers")))
    return {**os.environ, "PYTHONPATH": path}


def test_fourth_cloud_when_installed_then_it_passes_its_tests_without_an_edit(environ: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", ".", "tests"],
        cwd=EXAMPLE, env=environ, capture_output=True, text=True, check=False, timeout=280,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert re.search(r"^[45]\d passed", done.stdout, re.MULTILINE), done.stdout


BROKEN = {
    "no such class": ("gpukube_nimbus:Nimbus", "cannot be loaded"),
    "no provider": ("pathlib:Path", "cannot be used"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_provider_when_it_does_not_fit_then_its_package_is_named(
    case: str, environ: dict[str, str], tmp_path: Path
) -> None:
    value, said = BROKEN[case]
    info = tmp_path / "acme-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[gpukube.providers]\nacme = {value}\n")
    done = subprocess.run(
        [sys.executable, "-m", "gpukube", "validate", "-f", str(ROOT / "examples" / "gke-t4-n1.yaml")],
        env={**environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{environ['PYTHONPATH']}"},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode != 0
    assert f'the provider "acme" of acme {said}' in done.stderr
    assert "install a version of acme that supports this gpukube, or remove it" in done.stderr
    assert "Traceback" not in done.stderr
