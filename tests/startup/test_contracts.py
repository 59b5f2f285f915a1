"""The import contracts hold, and they bite: what they forbid is planted in a copy of the tree, all at once, and found.

That the tree as it is keeps them is the same run's answer: nothing but the plants is found.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
LINTER = "from importlinter.cli import lint_imports_command; lint_imports_command()"

CIRCLE = "no import goes in a circle"
CLUSTER = "wings of cluster"
CORE = "gpukube knows no provider"
DOORS = "the live half of a provider"
INDEPENDENT = "no provider knows another"
LAYERS = "layers of gpukube"
PURE = "pure modules import neither"
SANDBOX = "the sandbox is independent"
SEAM = "providers import the seam"
WINGS = "wings of a provider"


class Plant(NamedTuple):
    """A forbidden import, and the contracts that refuse it.

    Attributes:
        module: Where it is planted; made anew where there is none.
        line: The import.
        target: What it is reported as.
        contracts: How the names of the contracts begin.
    """

    module: str
    line: str
    target: str
    contracts: tuple[str, ...]


def imports(module: str, target: str, *contracts: str) -> Plant:
    """Plant an import at the end of a module; a third-party package is reported as a whole."""
    top = target.partition(".")[0]
    return Plant(module, f"import {target}", target if top.startswith("gpukube") else top, contracts)


def for_types(plant: Plant) -> Plant:
    """Plant it for type checkers alone."""
    return plant._replace(line=f"from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    {plant.line}")


def in_function(plant: Plant) -> Plant:
    """Plant it in a function."""
    return plant._replace(line=f"def _planted() -> None:\n    {plant.line}")


PLANTS = {
    # nine that the contracts of the first months kept
    "a provider in another": imports("gpukube_aks.rules.checks", "gpukube_eks", INDEPENDENT, PURE),
    "the doctor in a provider": imports("gpukube_aks.rules.checks", "gpukube.doctor.check", SEAM),
    "a process in a provider's pure half": imports(
        "gpukube_gke.pool.sizes", "subprocess", PURE, "processes are started"
    ),
    "the environment there": imports("gpukube_gke.facts.prices", "os", PURE),
    "a clock there": imports("gpukube_gke.facts.prices", "time", PURE),
    "HTTP in the engine": imports("gpukube.engine.change.live_pool", "httpx2", "lightkube and its transport"),
    "the sandbox in the catalog": imports(
        "gpukube.catalog.filters", "gpukube_sandbox.clock", "nothing knows the sandbox"
    ),
    "the engine in the core, for types": for_types(
        imports("gpukube.core.replacing", "gpukube.engine.run.wait", LAYERS)
    ),
    "the live half in the pure one": imports(
        "gpukube_gke.rules.checks", "gpukube_gke.live.client", DOORS, WINGS, CIRCLE
    ),
    # and one of each other kind
    "an SDK in the core": imports("gpukube.core.replacing", "azure.core", PURE, "Azure's SDK"),
    "an SDK in a provider's pure half": imports("gpukube_aks.rules.checks", "azure.core", PURE, "Azure's SDK"),
    "an SDK of another cloud": in_function(imports("gpukube_aks.live.client", "boto3", "AWS's SDK")),
    "Google's SDK in the engine": imports("gpukube.engine.run.wait", "google.auth", "Google's SDK"),
    "a provider in the engine": imports("gpukube.engine.run.wait", "gpukube_aks.pool.limits", CORE),
    "a provider's pure module that is new": imports("gpukube_aks.planted", "socket", PURE),
    "a provider's room that is new": Plant("gpukube_aks.planted", "", "", (WINGS,)),
    "a room that is new": Plant("gpukube.planted", "", "", (LAYERS,)),
    "a circle, for types": for_types(imports("gpukube.gpu.attached", "gpukube.gpu.machines", CIRCLE)),
    "a circle, in a function": in_function(imports("gpukube_eks.live.failures", "gpukube_eks.live.market", CIRCLE)),
    "a lower wing that climbs": imports("gpukube.cluster.kube.views", "gpukube.cluster.proof.probe", CLUSTER, CIRCLE),
    "a process in the engine": imports("gpukube.engine.run.context", "subprocess", "processes are started"),
    "Helm's library in the engine": imports("gpukube.engine.run.context", "helm_python", "the embedded Helm"),
    "pydantic in the engine": imports("gpukube.engine.run.context", "pydantic", "pydantic only in spec"),
    "rich in the engine": imports("gpukube.engine.run.context", "rich", "typer and rich"),
    "pytest in the engine": imports("gpukube.engine.run.context", "pytest", "pytest only"),
    "a server in the engine": imports("gpukube.engine.run.context", "uvicorn", "servers and certificates"),
    "our data in the sandbox": imports("gpukube_sandbox.clock", "gpukube.gpu", SANDBOX),
}


def test_contracts_when_forbidden_imports_are_planted_then_these_and_no_others_are_refused(tmp_path: Path) -> None:
    for name in ("gpukube", "providers", "sandbox"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "charts", "data"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for plant in PLANTS.values():
        root = {"gpukube": "", "gpukube_sandbox": "sandbox"}.get(plant.module.partition(".")[0], "providers")
        path = tmp_path / root / plant.module.replace(".", "/")
        path = path.with_suffix(".py")
        path.write_text((path.read_text("utf-8") if path.exists() else "") + f"\n{plant.line}\n", "utf-8")
    done = subprocess.run(
        [sys.executable, "-c", LINTER, "--no-cache"],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(str(tmp_path / part) for part in ("", "providers", "sandbox")),
            "COLUMNS": "200",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 1, done.stderr
    sections = broken_contracts(done.stdout)
    expected = {(plant, contract) for plant in PLANTS.values() for contract in plant.contracts}
    missed = [(plant, contract) for plant, contract in expected if not is_reported(plant, sections.get(contract, ""))]
    assert not missed, done.stdout
    planted = {(plant.module, plant.target) for plant in PLANTS.values()}
    others = set(re.findall(r"([\w.]+) -> ([\w.]+) \(", done.stdout)) - planted
    assert not [found for found in others if not found[0].startswith(".")], (
        done.stdout
    )  # a circle: .listings -> .market


def broken_contracts(report: str) -> dict[str, str]:
    """Take apart what the linter reports: how the name of a broken contract begins -> what it says of it."""
    parts = re.split(r"^(.+)\n-+\n", report.partition("Broken contracts")[2], flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    known = {contract for plant in PLANTS.values() for contract in plant.contracts}
    assert all(any(title.startswith(name) for name in known) for title in sections), list(sections)
    return {name: text for name in known for title, text in sections.items() if title.startswith(name)}


def is_reported(plant: Plant, section: str) -> bool:
    """Whether the linter's section on a contract names the planted import; of a circle it names one of its imports."""
    if not plant.target:
        return f"- {plant.module}\n" in section
    importer, imported = plant.module, plant.target
    if "No cycles are allowed" in section:
        # siblings below the common ancestor: modules of one wing, or the wings themselves
        ours, theirs = importer.split("."), imported.split(".")
        at = next(index for index, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b)
        ends = [f".{ours[at]}", f".{theirs[at]}"]
        return any(f"- {a} -> {b} " in section for a, b in (ends, reversed(ends)))
    return f"{importer} -> {imported} (" in section
