"""The import contracts hold, and they do bite: what they forbid is planted in a copy and found."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINTER = "from importlinter.cli import lint_imports_command; lint_imports_command()"

PLANTS = {
    "an SDK in the core": ("gpukube/core/diff.py", "import azure.core", "the core knows no cloud"),
    "a provider in the engine": ("gpukube/engine/wait.py", "import gpukube_aks", "the core knows no cloud"),
    "the engine in the core": ("gpukube/core/plan.py", "import gpukube.engine.wait", "layers of gpukube"),
    "the engine in a provider": ("providers/gpukube_aks/rules.py", "import gpukube.engine", "providers build on"),
    "an SDK in a provider's pure half": ("providers/gpukube_aks/rules.py", "import azure.core", "cloud SDKs only"),
    "pydantic in the engine": ("gpukube/engine/run.py", "import pydantic", "pydantic only in spec"),
    "rich in the engine": ("gpukube/engine/run.py", "import rich", "typer only in cli"),
    "our data in the sandbox": ("gpukube/sandbox/clock.py", "import gpukube.gpu", "the sandbox is independent"),
    "the sandbox in the engine": ("gpukube/engine/run.py", "import gpukube.sandbox", "only cli.sandbox knows"),
    "a clock in the core": ("gpukube/core/diff.py", "import time", "pure rooms touch no clock"),
}


def copy_of_the_tree(directory: Path) -> Path:
    """Copy what the linter reads."""
    for name in ("gpukube", "providers"):
        shutil.copytree(ROOT / name, directory / name, ignore=shutil.ignore_patterns("__pycache__", "charts", "data"))
    shutil.copy(ROOT / "pyproject.toml", directory)
    return directory


def lint(directory: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter on a tree; its cache stays in there."""
    path = os.pathsep.join((str(directory), str(directory / "providers")))
    return subprocess.run(
        [sys.executable, "-c", LINTER, "--no-cache"],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


def broken_contracts(said: str) -> list[str]:
    """Read the names of the contracts that are broken."""
    return [line.partition(" BROKEN")[0] for line in said.splitlines() if " BROKEN" in line]


def test_contracts_when_the_tree_is_as_it_is_then_all_kept(tmp_path: Path) -> None:
    done = lint(copy_of_the_tree(tmp_path))
    assert done.returncode == 0, done.stdout
    assert broken_contracts(done.stdout) == []


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Plant all the forbidden imports at once and give what the linter says."""
    directory = copy_of_the_tree(tmp_path_factory.mktemp("planted"))
    for file, line, _ in PLANTS.values():
        path = directory / file
        path.write_text(path.read_text("utf-8") + f"\n{line}\n", "utf-8")
    done = lint(directory)
    assert done.returncode == 1, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", PLANTS)
def test_contract_when_its_forbidden_import_is_planted_then_broken_and_the_line_named(name: str, planted: str) -> None:
    file, line, contract = PLANTS[name]
    assert any(told.startswith(contract) for told in broken_contracts(planted)), planted
    module = file.removeprefix("providers/").removesuffix(".py").replace("/", ".")
    target = line.removeprefix("import ")
    told = [row for row in planted.splitlines() if row.strip().startswith(f"- {module} -> ") or f"{module} -> " in row]
    assert any(target.startswith(row.split(" -> ")[1].split()[0].rstrip(".")) for row in told), told
