"""What each way of starting loads: by the names of modules, so that a slow machine changes nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "aks-mig-single.yaml"
HEAVY = frozenset(
    {"pydantic", "pydantic_core", "rich", "azure", "yaml", "lightkube", "httpx2", "msgspec", "helm_python"}
)
SERVERS = frozenset({"starlette", "uvicorn", "cryptography"})

REPORT = """
import atexit, gc, os, sys

def report():
    with open(os.environ["MODULES"], "w") as file:
        file.write("\\n".join(sorted(sys.modules)))
    with open(os.environ["MODULES"] + ".frozen", "w") as file:
        file.write(str(gc.get_freeze_count()))

atexit.register(report)
"""


@pytest.fixture
def loaded(tmp_path: Path) -> Loader:
    return Loader(tmp_path)


class Loader:
    """Runs gpukube in a process of its own and says what it loaded.

    Args:
        directory: For the files of the run.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        (directory / "sitecustomize.py").write_text(REPORT)

    def __call__(self, *words: str, exit_code: int = 0, environ: Mapping[str, str] | None = None) -> set[str]:
        """Run, and give the names of all modules at the end."""
        path = os.pathsep.join((str(self._directory), str(ROOT), str(ROOT / "providers")))
        listing = self._directory / "modules"
        done = subprocess.run(
            [sys.executable, "-m", "gpukube", *words],
            env={**os.environ, "PYTHONPATH": path, "MODULES": str(listing), **(environ or {})},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == exit_code, done.stderr
        self.out = done.stdout
        self.frozen = int(listing.with_suffix(".frozen").read_text())
        return set(listing.read_text().split())


def of(modules: set[str], package: str) -> set[str]:
    """Pick the modules of a package."""
    return {name for name in modules if name == package or name.startswith(f"{package}.")}


def packages(modules: set[str]) -> set[str]:
    """Return the top-level names."""
    return {name.partition(".")[0] for name in modules}


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_version_when_asked_for_then_nothing_is_loaded_but_the_front_door(flag: str, loaded: Loader) -> None:
    modules = loaded(flag)
    assert loaded.out.startswith("gpukube ")
    assert of(modules, "gpukube") == {"gpukube"}  # __main__ runs under that name
    assert not packages(modules) & {"typer", "click", "argparse", "dataclasses", "importlib_metadata", *HEAVY}


HELP = {
    "top": ("--help",),
    "group": ("pool", "--help"),
    "command": ("pool", "create", "--help"),
    "nested": ("pool", "plan", "diff", "--help"),
    "validate": ("validate", "-h"),
    "sandbox": ("sandbox", "up", "--help"),
    "init": ("init", "--help"),
    "explain": ("explain", "--help"),
    "docs": ("docs", "--help"),
    "field": ("explain", "pools.gpu", "--help"),
}


@pytest.mark.parametrize("name", HELP)
def test_help_when_shown_then_no_spec_no_screen_no_cloud(name: str, loaded: Loader) -> None:
    modules = loaded(*HELP[name])
    assert "Usage: gpukube" in loaded.out
    assert not packages(modules) & (HEAVY | SERVERS)
    assert packages(of(modules, "gpukube") | of(modules, "gpukube_aks")) == {"gpukube"}
    rooms = {module.split(".")[1] for module in of(modules, "gpukube") if "." in module}
    assert rooms == {"cli", "errors", "rule_ids", "visible"}


@pytest.mark.parametrize("words", [("docs",), ("docs", "sharing")], ids=["list", "page"])
def test_docs_when_listed_or_piped_then_nothing_is_drawn(words: tuple[str, ...], loaded: Loader) -> None:
    assert not packages(loaded(*words)) & (HEAVY | SERVERS)


def test_help_when_it_lists_commands_then_imports_none_of_them(loaded: Loader) -> None:
    assert of(loaded("--help"), "gpukube.cli.commands") == set()


SHELLS = {
    "bash": ({"_GPUKUBE_COMPLETE": "complete_bash", "COMP_WORDS": "gpukube pool cr", "COMP_CWORD": "2"}, "create"),
    "zsh": ({"_GPUKUBE_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "gpukube pool cr"}, "create"),
    "fish": (
        {
            "_GPUKUBE_COMPLETE": "complete_fish",
            "_TYPER_COMPLETE_ARGS": "gpukube pool cr",
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        },
        "create",
    ),
    "options": (
        {"_GPUKUBE_COMPLETE": "complete_bash", "COMP_WORDS": "gpukube pool create --par", "COMP_CWORD": "3"},
        "--parallelism",
    ),
    "fields": (
        {"_GPUKUBE_COMPLETE": "complete_bash", "COMP_WORDS": "gpukube explain sharing.", "COMP_CWORD": "2"},
        "sharing.mig",
    ),
    "fixed words": (
        {"_GPUKUBE_COMPLETE": "complete_bash", "COMP_WORDS": "gpukube pool export --to e", "COMP_CWORD": "4"},
        "eksctl",
    ),
    "topics": (
        {"_GPUKUBE_COMPLETE": "complete_bash", "COMP_WORDS": "gpukube docs mig", "COMP_CWORD": "2"},
        "migrate",
    ),
    "rules": (
        {"_GPUKUBE_COMPLETE": "complete_bash", "COMP_WORDS": "gpukube workload lint --explain g", "COMP_CWORD": "4"},
        "gpu-fraction",
    ),
}
READING_TABS = {
    "pools": ({"COMP_WORDS": "gpukube pool get a", "COMP_CWORD": "3"}, "a100mig"),
    "formats": ({"COMP_WORDS": "gpukube pool plan -o t", "COMP_CWORD": "4"}, "terraform-json"),
}


@pytest.mark.parametrize("name", SHELLS)
def test_completion_when_asked_by_a_shell_then_answered_without_loading_anything(name: str, loaded: Loader) -> None:
    environ, expected = SHELLS[name]
    modules = loaded(environ=environ)
    assert expected in loaded.out
    assert not packages(modules) & (HEAVY | SERVERS)


@pytest.mark.parametrize("name", READING_TABS)
def test_completion_when_it_reads_the_spec_then_yaml_alone_is_loaded(name: str, loaded: Loader) -> None:
    environ, expected = READING_TABS[name]
    modules = loaded(environ={"_GPUKUBE_COMPLETE": "complete_bash", "GPUKUBE_FILE": str(EXAMPLE), **environ})
    assert expected in loaded.out.split()
    assert not packages(modules) & ((HEAVY - {"yaml"}) | SERVERS)
    assert not of(modules, "gpukube.spec.model") | of(modules, "gpukube.provider") | of(modules, "gpukube.engine")


def test_field_when_explained_then_rules_of_clouds_but_no_sdk_no_cluster_client(loaded: Loader) -> None:
    modules = loaded("explain", "pools.sharing.mig")
    assert not packages(modules) & ({"azure", "lightkube", "httpx2", "helm_python", "boto3", "google"} | SERVERS)
    assert of(modules, "gpukube_gke")


def test_validate_when_run_then_no_sdk_no_cluster_client_no_server(loaded: Loader) -> None:
    modules = loaded("validate", "-f", str(EXAMPLE), "-o", "json")
    assert not packages(modules) & ({"azure", "lightkube", "httpx2", "helm_python", "boto3", "google"} | SERVERS)
    assert not of(modules, "gpukube_sandbox")
    assert of(modules, "gpukube_aks")  # the pure half has spoken
    assert not of(modules, "gpukube.doctor")


OFFLINE = {
    "cli": {
        "advice",
        "app",
        "command_lists",
        "commands",
        "completion",
        "deferred",
        "formats",
        "kinds",
        "lazy",
        "options",
        "output",
        "rendering",
        "stderr",
    },
    "cli.commands": {"spec"},
    "cluster": {"names", "release"},
    "cluster.release": {"chart_settings", "offline_checks"},
    "engine": {"documents", "offline", "plan"},
    "engine.documents": {"parts", "summary", "validation"},
    "engine.plan": {"fidelity", "ownership", "prepare", "silencing"},
    "catalog": {"learning", "place"},
}
LOOKING = {
    "cli.bodies": {"plan_prices", "pool_views"},
    "cli.commands": {"pool"},
    "cluster": {"helm", "kube", "names", "process", "proof", "release", "state"},
    "cluster.helm": {"chart", "servers"},
    "cluster.kube": {"draining", "limits"},
    "cluster.process": {"child", "scratch", "tether"},
    "cluster.proof": {"outcome"},
    "cluster.release": {"chart_settings", "offline_checks"},
    "cluster.state": {"node_drift"},
    "engine": {"documents", "looking", "offline", "plan", "run"},
    "engine.documents": {
        "event",
        "listing",
        "parts",
        "plan",
        "plan_parts",
        "prices",
        "summary",
    },
    "engine.plan": {
        "fidelity",
        "lookup",
        "losses",
        "ownership",
        "planning",
        "prepare",
        "price_limits",
        "regions",
        "silencing",
        "upgrades",
    },
    "engine.run": {"calls", "clock", "context", "events", "fanout", "sent", "session", "shared", "wait"},
    "catalog": {"learning", "place", "prices"},
}
"""Room -> the modules of it that a command loads; what is missing here is for other commands, and costs each run."""


def rooms(modules: set[str], named: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """List what is loaded of some rooms, one level deep."""
    starts = {room: f"gpukube.{room}." for room in named}
    return {
        room: {name.removeprefix(start).partition(".")[0] for name in modules if name.startswith(start)}
        for room, start in starts.items()
    }


def beyond(modules: set[str], named: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """List what is loaded of some rooms and not named."""
    return {room: more for room, found in rooms(modules, named).items() if (more := found - named[room])}


def test_validate_when_it_prints_a_line_then_nothing_that_makes_plans_or_draws_screens(loaded: Loader) -> None:
    modules = loaded("validate", "-f", str(ROOT / "examples" / "eks-timeslicing.yaml"))
    assert beyond(modules, OFFLINE) == {}
    assert not packages(modules) & {"rich", "msgspec", "concurrent"}
    assert loaded.frozen > len(modules)  # so that the interpreter frees nothing one by one at its end


LINTING = {
    "cli": {
        "advice",
        "app",
        "bodies",
        "command_lists",
        "commands",
        "completion",
        "deferred",
        "formats",
        "kinds",
        "lazy",
        "options",
        "output",
        "rendering",
        "stderr",
    },
    "cli.bodies": {"workload_lint"},
    "cli.commands": {"workload"},
    "engine": {"documents", "workloads"},
    "engine.documents": {"parts", "summary", "validation"},
    "spec": {"kubesyntax", "source", "wording"},
    "workload": {
        "cel",
        "claims",
        "devices",
        "fit",
        "lint",
        "manifests",
        "offers",
        "quantity",
        "requests",
        "selectors",
        "templates",
    },
    "workload.fit": {"allocation", "claiming", "nodes", "pods", "predicates"},
}


def test_lint_when_no_spec_is_given_then_no_models_no_clouds_no_sdk(loaded: Loader) -> None:
    modules = loaded("workload", "lint", str(ROOT / "examples" / "pods"))
    assert beyond(modules, LINTING) == {}
    assert not packages(modules) & {"pydantic", "rich", "msgspec", "lightkube", "httpx2", "concurrent", *SERVERS}
    assert of_clouds(modules) == rules_of_clouds(modules) == dict.fromkeys(SDKS, False)


def test_fit_when_no_cluster_is_read_then_no_sdk_and_nothing_that_looks_there(loaded: Loader, tmp_path: Path) -> None:
    pod = tmp_path / "pod.yaml"
    pod.write_text("{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: main}]}}")
    modules = loaded("workload", "fit", str(pod), "-f", str(EXAMPLE))
    assert not packages(modules) & {"rich", "lightkube", "httpx2", "helm_python", *SERVERS}
    assert not {name for name in modules if name.startswith(("gpukube.cli.stage", "gpukube.cluster.kube"))}
    assert of_clouds(modules) == dict.fromkeys(SDKS, False)


def test_diff_when_no_cluster_is_looked_into_then_nothing_that_looks_there_or_changes_anything(loaded: Loader) -> None:
    spec = str(ROOT / "examples" / "eks-timeslicing.yaml")
    modules = loaded("pool", "plan", "diff", "-f", spec, "--skip-cluster", exit_code=1, environ=ENDPOINTS)
    assert beyond(modules, LOOKING) == {}
    assert not packages(modules) & {"lightkube", "httpx2", "helm_python", "rich"}


@pytest.mark.parametrize("command", ["map", "usage"])
def test_map_when_nothing_can_be_read_then_nothing_that_changes_draws_or_asks_for_prices(
    command: str, loaded: Loader
) -> None:
    spec = str(ROOT / "examples" / "eks-timeslicing.yaml")
    modules = loaded("pool", command, "-f", spec, exit_code=1, environ=ENDPOINTS)
    assert not packages(modules) & {"rich", "prometheus_client", *SERVERS}
    unused = ("engine.change", "engine.commands", "cli.watching", "catalog.live_prices", "workload.cel")
    assert not [name for name in unused if of(modules, f"gpukube.{name}")]


def test_wrong_usage_when_told_then_no_sdk(loaded: Loader) -> None:
    assert not packages(loaded("pool", "creat", exit_code=4)) & HEAVY


SDKS = {"eks": {"boto3", "botocore"}, "aks": {"azure"}, "gke": {"google", "grpc"}}
SPECS = {"eks": "eks-timeslicing", "aks": "aks-mig-single", "gke": "gke-t4-n1"}
ENDPOINTS = {f"GPUKUBE_{cloud.upper()}_ENDPOINT": "http://127.0.0.1:9" for cloud in SDKS}


def of_clouds(modules: set[str]) -> dict[str, bool]:
    """Say for every cloud whether any of its SDK is loaded."""
    return {cloud: bool(packages(modules) & names) for cloud, names in SDKS.items()}


CHEAP = {"", ".provider", ".facts", ".facts.machines", ".spec", ".facts.in_cluster"}
"""What of a package is loaded wherever clouds are listed: the models of the spec are built from all of them."""


def rules_of_clouds(modules: set[str]) -> dict[str, bool]:
    """Say for every cloud whether more of its package is loaded than that it exists."""
    return {cloud: bool(of(modules, f"gpukube_{cloud}") - {f"gpukube_{cloud}{end}" for end in CHEAP}) for cloud in SDKS}


@pytest.mark.parametrize("cloud", SDKS)
def test_validate_when_run_then_the_sdk_of_no_cloud(cloud: str, loaded: Loader) -> None:
    modules = loaded("validate", "-f", str(ROOT / "examples" / f"{SPECS[cloud]}.yaml"))
    assert of_clouds(modules) == dict.fromkeys(SDKS, False)
    assert rules_of_clouds(modules) == {other: other == cloud for other in SDKS}


@pytest.mark.turns(3)
@pytest.mark.parametrize("cloud", SDKS)
def test_plan_when_run_then_the_sdk_of_its_cloud_alone_and_no_server(cloud: str, loaded: Loader) -> None:
    spec = str(ROOT / "examples" / f"{SPECS[cloud]}.yaml")
    modules = loaded("pool", "plan", "-f", spec, "--skip-cluster", exit_code=1, environ=ENDPOINTS)
    assert of_clouds(modules) == {other: other == cloud for other in SDKS}
    assert rules_of_clouds(modules) == {other: other == cloud for other in SDKS}
    assert not packages(modules) & {"helm_python", "starlette", "uvicorn"}
    assert not modules & {"azure.identity", "msal"}  # nobody signs in to an emulated Azure
    assert not of(modules, "gpukube_sandbox") | of(modules, "gpukube.doctor")
