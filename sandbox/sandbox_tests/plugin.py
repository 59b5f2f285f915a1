"""What every test stands on: a home of its own, no cloud variables, no network but loopback, plain output.

A plugin of pytest, which conftest.py at the top loads for the tests of the sandbox and for those of gpukube.
"""

from __future__ import annotations

import gc
import os
from dataclasses import asdict, dataclass
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from botocore.loaders import JSONFileLoader
from hypothesis import HealthCheck, settings

from gpukube_sandbox import daemon
from sandbox_tests import full_run
from sandbox_tests.clients import client
from sandbox_tests.turns import leave_out_others, sweeps, thin, turn_of_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube_sandbox.daemon import SandboxInfo

CLOUD_PREFIXES = ("AWS_", "AZURE_", "ARM_", "GOOGLE_", "CLOUDSDK_", "GPUKUBE_", "HELM_", "IDENTITY_", "MSI_")

PACELESS = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("steady", settings.get_profile("default"), max_examples=50, derandomize=True, **PACELESS)
settings.register_profile(
    "wander", settings.get_profile("default"), max_examples=200, derandomize=False, print_blob=True, **PACELESS
)
settings.load_profile("steady")
"""The same examples in each run, at any pace, as more of the same find nothing; `wander` draws more, and new ones."""

_model = cache(JSONFileLoader().load_file)
JSONFileLoader.load_file = lambda self, file_path: _model(file_path)  # type: ignore[method-assign]  # noqa: ARG005
"""The models of AWS's services are read once: moto and each client of a test would read megabytes of JSON again."""

OWN = Path("sandbox", "sandbox_tests")
"""The tests of the sandbox, below the project's root."""
FLAKY = 7
"""How pytest-rerunfailures ends a run with --fail-on-flaky."""
PROCESSES = ("clients", "kube")
"""Marks of tests that start processes."""
SWEEPS = pytest.StashKey[dict[tuple[str, int], int]]()
"""Tests that take turns, by name and mark: how many cases of them were collected."""


@dataclass(frozen=True)
class Part:
    """What of the tests is run.

    Attributes:
        turn: Number of the turn.
        source: Where it comes from.
        whole: Why the sandbox's own tests are not thinned; empty if they are.
        state: The sandbox that a full run began with, if it is one that can be recorded.
    """

    turn: int
    source: str
    whole: str
    state: str | None


PART = pytest.StashKey[Part]()


def pytest_configure(config: pytest.Config) -> None:
    """Choose what is run, once: workers are told."""
    option = config.option
    if option.full:
        settings.load_profile("wander")
        option.markexpr = "" if option.markexpr == "not slow" else option.markexpr
        option.fail_on_flaky = True
    if told := getattr(config, "workerinput", {}).get("part"):
        config.stash[PART] = Part(**told)
        return
    root = config.rootpath
    turn, source = turn_of_tree(root) if option.turn is None else (option.turn, "from --turn")
    whole = "by --full" if option.full else "named" if option.file_or_dir else full_run.missing(root)
    config.stash[PART] = Part(turn, source, whole, full_run.state(root) if option.full else None)


def pytest_configure_node(node: Any) -> None:  # noqa: ANN401 - xdist's, which ships no types
    """Tell a worker what is run."""
    node.workerinput["part"] = asdict(node.config.stash[PART])


def lines(config: pytest.Config) -> list[str]:
    """Return which part is run."""
    part = config.stash[PART]
    own = f"the whole turn ({part.whole})" if part.whole else f"a third of the turn ({full_run.RECORD} holds)"
    turn = "all (--full)" if config.option.full else f"{part.turn}, {part.source}; again by --turn {part.turn}"
    return [f"turn: {turn}", f"sandbox's own tests: {own}"]


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Return which part is run."""
    return lines(config)


@pytest.hookimpl(tryfirst=True)  # before `-m "not slow"` is applied
def pytest_collection_modifyitems(items: list[pytest.Item], config: pytest.Config) -> None:
    """Leave out what has another turn, and let what needs other processes run once more, as machines stall."""
    found = sweeps(items)
    config.stash[SWEEPS] = {test: len(cases) for test, cases in found.items()}
    part = config.stash[PART]
    leave_out_others(found, part.turn)
    if not part.whole:
        own = config.rootpath / OWN
        thin([item for item in items if item.path.is_relative_to(own)], part.turn)
    for item in items:
        if needs_processes(item):
            item.add_marker(pytest.mark.flaky(reruns=1))


def needs_processes(item: pytest.Item) -> bool:
    """Return whether a test declares another process: the sandbox, an official command, a real control plane."""
    return "running_sandbox" in getattr(item, "fixturenames", ()) or any(map(item.get_closest_marker, PROCESSES))


def pytest_collection_finish() -> None:
    """Keep the garbage collector from walking over all tests again and again: what collecting made stays to the end."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)  # searched for a hundredth as often: 8 % of the unit tests' time


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --update: rewrite expected texts and requests instead of comparing; the review reads the difference."""
    parser.addoption("--update", action="store_true", help="rewrite tests/messages and tests/golden")
    parser.addoption("--turn", type=int, help="part of the long sweeps to run; default: by the hash of the tree")
    parser.addoption(
        "--full",
        action="store_true",
        help="run every case, slow ones too, and new examples; a test that passes only when repeated fails the run",
    )


@pytest.hookimpl(trylast=True)  # when all others have judged the run
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run with reruns if that was asked for, as the plugin cannot among workers; note a full one that passed."""
    config, option = session.config, session.config.option
    if hasattr(config, "workerinput") or session.exitstatus != pytest.ExitCode.OK:
        return
    if option.fail_on_flaky and rerun(config):
        session.exitstatus = FLAKY
    root, state = config.rootpath, config.stash[PART].state
    narrowed = option.keyword or option.deselect or option.ignore or option.markexpr or getattr(option, "lf", False)
    named = [Path(name).resolve() for name in option.file_or_dir]
    everything = not narrowed and (not named or any((root / OWN).is_relative_to(name) for name in named))
    if session.exitstatus == pytest.ExitCode.OK and everything and state and state == full_run.state(root):
        full_run.record(root, state)


def rerun(config: pytest.Config) -> list[str]:
    """Name the tests that were run once more."""
    reporter: Any = config.pluginmanager.getplugin("terminalreporter")
    return [report.nodeid for report in reporter.stats.get("rerun", ())]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Return which part was run, as the header is not shown in quiet runs, and count what was repeated."""
    repeated = rerun(config)
    for line in (*lines(config), f"reruns: {len(repeated)}", *(f"  {name}" for name in repeated)):
        terminalreporter.write_line(line)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose official commands are not there, before anything is started for it."""
    for mark in item.iter_markers("clients"):
        for name in mark.args:
            client(name)


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Name one new home after the other: `mktemp` looks at all former ones to find a name, at each test's start."""
    directory = tmp_path_factory.mktemp("homes")
    return (directory / str(number) for number in count())


@pytest.fixture(autouse=True)
def quiet_environment(homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Return the test a home of its own and hide the developer's credentials, terminal and kubeconfig."""
    home = next(homes)
    home.mkdir()
    for name in list(os.environ):
        if name.startswith(CLOUD_PREFIXES):
            monkeypatch.delenv(name)
    for name in ("KUBECONFIG", "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "CI", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(home))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture(scope="session")
def running_sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxInfo]:
    """Start the one sandbox of this worker: whoever takes it, for a test or for a module, wipes it and sets its speed.

    Its clusters are emulated even where real ones could be.
    """
    state_dir = tmp_path_factory.mktemp("sandbox")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("KUBEBUILDER_ASSETS", raising=False)
        info = daemon.up(state_dir)
    yield info
    daemon.down(state_dir)
