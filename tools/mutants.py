"""Mutate the rules or the GPU knowledge, and count how many mutants the tests kill.

Needs mutmut 3, in a virtual environment that also sees the project's dependencies (docs/testing.md). Works on a copy of
the committed tree, in which the packages of the providers are next to `gpukube`: mutmut names mutants by path.
"""

from __future__ import annotations

import argparse
import io
import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
PROVIDERS: Final = ("gpukube_eks", "gpukube_aks", "gpukube_gke")


class Room(NamedTuple):
    """What is mutated, and the tests that have to notice."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]


ROOMS: Final = {
    "rules": Room(
        modules=(
            "gpukube/core/resolve.py",
            "gpukube/spec/*rules.py",
            "gpukube_*/*rules.py",
            "gpukube_*/combinations.py",
            "gpukube_aks/rules/capacity.py",
            "gpukube_aks/facts/images.py",
            "gpukube_aks/rules/labels.py",
            "gpukube_aks/rules/upgrades.py",
            "gpukube_gke/pool/counts.py",
            "gpukube_gke/facts/local_ssd.py",
            "gpukube_gke/rules/versions.py",
        ),
        tests=(
            "tests/unit/core",
            "tests/unit/spec/test_rules.py",
            *(f"tests/unit/{provider}" for provider in PROVIDERS),
            "tests/unit/test_messages.py",
            "tests/specs",
        ),
    ),
    "capacity": Room(
        modules=("gpukube/gpu/mig*.py", "gpukube/gpu/capacity.py", "gpukube/gpu/sharing.py"),
        tests=("tests/unit/gpu",),
    ),
}
CONFIG: Final = """
[tool.mutmut]
source_paths = ["gpukube", "gpukube_eks", "gpukube_aks", "gpukube_gke"]
only_mutate = {modules}
pytest_add_cli_args_test_selection = {tests}
pytest_add_cli_args = ["-p", "no:cacheprovider"]
also_copy = ["tests", "tools", "docs", "examples"]
track_dependencies = false
use_git_change_detection = false
"""


def copy_tree(into: Path, room: Room) -> None:
    """Write the committed tree in the form that mutmut takes."""
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True)  # noqa: S607
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tree:
        tree.extractall(into, filter="data")
    for provider in PROVIDERS:
        shutil.move(into / "providers" / provider, into / provider)
    config = into / "pyproject.toml"
    settings = CONFIG.format(modules=json.dumps(room.modules), tests=json.dumps(room.tests))
    config.write_text(config.read_text("utf-8").replace('[".", "providers"]', '["."]') + settings, "utf-8")


def main() -> None:
    """Mutate one room and print what became of its mutants."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("room", choices=ROOMS)
    parser.add_argument("directory", type=Path, help="an empty directory to work in")
    parser.add_argument("--mutmut", default="mutmut", help="the command (default: the one on PATH)")
    parser.add_argument("--only", default=[], nargs="*", help="names of mutants, globs: gpukube_aks.rules.checks*")
    asked = parser.parse_args()
    copy_tree(asked.directory, ROOMS[asked.room])
    for words in (["run", *asked.only], ["export-cicd-stats"]):
        ended = subprocess.run([asked.mutmut, *words], cwd=asked.directory, check=False)  # noqa: S603 - the given one
        if ended.returncode:
            sys.exit(ended.returncode)
    found = json.loads((asked.directory / "mutants" / "mutmut-cicd-stats.json").read_text("utf-8"))
    noticed = found["killed"] + found["timeout"]
    judged = noticed + found["survived"] + found["no_tests"]  # with --only the others are not looked at
    print(f"{noticed} of {judged} mutants noticed, {noticed / (judged or 1):.0%}; mutmut results lists the others")


if __name__ == "__main__":
    main()
