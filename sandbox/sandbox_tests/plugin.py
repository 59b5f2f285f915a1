"""What every test stands on: a home of its own, no cloud variables, no network but loopback, plain output.

A plugin of pytest, which conftest.py at the top loads for the tests of the sandbox and for those of gpukube.
"""

from __future__ import annotations

import gc
import os
from functools import cache
from itertools import count
from typing import TYPE_CHECKING

import pytest
from botocore.loaders import JSONFileLoader
from hypothesis import HealthCheck, settings

from gpukube_sandbox import daemon
from sandbox_tests.clients import client
from sandbox_tests.turns import leave_out_those_of_other_turns, turn_of_commit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

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

ALONE = frozenset({"fuzz", "golden", "screens", "specs", "unit"})
"""Folders whose tests work in their own process, but for a few."""


def pytest_configure(config: pytest.Config) -> None:
    """Fix the turn before workers start, so that they agree even at midnight."""
    if config.option.turn is None:
        config.option.turn = turn_of_commit()


def pytest_report_header(config: pytest.Config) -> str:
    """Say which part of the long sweeps is run."""
    return f"turn: {config.option.turn} (sandbox/sandbox_tests/turns.py)"


@pytest.hookimpl(tryfirst=True)  # before `-m "not slow"` is applied
def pytest_collection_modifyitems(items: list[pytest.Item], config: pytest.Config) -> None:
    """Let a test that starts processes run once more, as machines stall; the end of the run lists those that did.

    One that needs it twice is broken.
    """
    leave_out_those_of_other_turns(items, config.option.turn)
    for item in items:
        if not ALONE.intersection(item.path.parts):
            item.add_marker(pytest.mark.flaky(reruns=1))


def pytest_collection_finish() -> None:
    """Keep the garbage collector from walking over all tests again and again: what collecting made stays to the end."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)  # searched for a hundredth as often: 8 % of the unit tests' time


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --update: rewrite expected texts and requests instead of comparing; the review reads the difference."""
    parser.addoption("--update", action="store_true", help="rewrite tests/messages and tests/golden")
    parser.addoption("--turn", type=int, help="part of the long sweeps to run; default: by the day of the commit")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say how to have the same part again: the header is not shown in quiet runs."""
    terminalreporter.write_line(
        f"turn {config.option.turn}: to run the same part of the long sweeps, --turn {config.option.turn}"
    )


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
    """Give the test a home of its own and hide the developer's credentials, terminal and kubeconfig."""
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
