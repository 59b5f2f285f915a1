"""The command against one sandbox per worker, wiped before each test."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gpukube import guard
from gpukube.cli import stage
from gpukube.engine.run.context import QUICK
from gpukube_sandbox import daemon
from sandbox_tests.sandboxes import emptied
from tests.builders import SUBSCRIPTION
from tests.cli.harness import ROOT, Cluster, Gpukube

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from gpukube_sandbox.daemon import SandboxInfo

SPEED = 2000.0


@pytest.fixture
def sandbox(running_sandbox: SandboxInfo, quiet_environment: None, monkeypatch: pytest.MonkeyPatch) -> SandboxInfo:
    """Return the test a sandbox that holds the cluster of the examples and nothing else."""
    emptied(running_sandbox, SPEED)
    daemon.add_cluster(running_sandbox, SUBSCRIPTION, "ml", "train")
    monkeypatch.setenv("GPUKUBE_SANDBOX_STATE", running_sandbox.state_dir)
    return running_sandbox


@pytest.fixture
def gpukube(sandbox: SandboxInfo, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Gpukube:
    """Run the command in this process."""
    # The audit hook stays for good and would speak for the tests that follow; those of processes keep it.
    monkeypatch.setattr(guard, "refuse_non_loopback", lambda: None)
    # Time is 33 times as fast here as in a user's sandbox: what has no machines for a moment has none.
    monkeypatch.setattr(stage, "QUICK", replace(QUICK, quiet_s=0.3))
    return Gpukube(sandbox, capsys)


@pytest.fixture
def impatient(gpukube: Gpukube, monkeypatch: pytest.MonkeyPatch) -> None:
    """Believe after a moment that what is broken stays so, instead of waiting whether it recovers."""
    monkeypatch.setattr(stage, "QUICK", replace(QUICK, quiet_s=0.3, settle_s=0.5))


@pytest.fixture
def cluster(sandbox: SandboxInfo) -> Iterator[Cluster]:
    """The inside of the cluster of the examples."""
    inside = Cluster(sandbox)
    yield inside
    inside.close()


@pytest.fixture
def claims(gpukube: Gpukube, sandbox: SandboxInfo) -> Iterator[Cluster]:
    """Create the AKS pool of the example with the DRA driver, in a version that keeps taints of devices."""
    daemon.add_cluster(sandbox, SUBSCRIPTION, "ml", "claims", kubernetes_version="1.36.1")
    gpukube.made("-f", ROOT / "examples" / "aks-dra.yaml")
    inside = Cluster(sandbox, "claims")
    yield inside
    inside.close()


@pytest.fixture
def doctor(ward: SandboxInfo, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Gpukube:
    """Run the command in this process in a test module's own sandbox, its ward."""
    monkeypatch.setenv("GPUKUBE_SANDBOX_STATE", ward.state_dir)
    monkeypatch.setattr(guard, "refuse_non_loopback", lambda: None)
    return Gpukube(ward, capsys)


HIDE = """
import sys
from importlib.machinery import PathFinder


class Hiding(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in {names!r} else super().find_spec(name, path, target)


sys.meta_path[:] = [Hiding if finder is PathFinder else finder for finder in sys.meta_path]
"""


@pytest.fixture
def without(tmp_path: Path) -> Callable[..., str]:
    """Hide installed libraries from a process: gives its PYTHONPATH."""

    def _without(*names: str) -> str:
        (tmp_path / "sitecustomize.py").write_text(HIDE.format(names=set(names)))
        return os.pathsep.join((str(tmp_path), str(ROOT), str(ROOT / "providers")))

    return _without
