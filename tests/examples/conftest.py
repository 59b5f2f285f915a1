"""An empty sandbox, with no cluster in it: a spec's clusters are made by --sandbox. And a machine for pipelines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube import guard
from sandbox_tests.sandboxes import emptied
from tests.chaos.stage import Forge
from tests.cli.harness import Gpukube
from tests.examples.shop import Shop

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gpukube_sandbox.daemon import SandboxInfo

SPEED = 2000.0


@pytest.fixture
def gpukube(
    running_sandbox: SandboxInfo,
    quiet_environment: None,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Gpukube:
    emptied(running_sandbox, SPEED)
    monkeypatch.setenv("GPUKUBE_SANDBOX_STATE", running_sandbox.state_dir)
    monkeypatch.setattr(guard, "refuse_non_loopback", lambda: None)  # the audit hook would outlive the test
    return Gpukube(running_sandbox, capsys)


@pytest.fixture(scope="session")
def forge() -> Iterator[Forge]:
    """Start the process that the gpukube of pipelines is a fork of."""
    made = Forge()
    yield made
    made.close()


@pytest.fixture
def shop(running_sandbox: SandboxInfo, forge: Forge, tmp_path: Path) -> Iterator[Shop]:
    """Return the test a machine whose gpukube works in an empty sandbox."""
    emptied(running_sandbox, SPEED)
    environ = {"GPUKUBE_SANDBOX": "1", "GPUKUBE_SANDBOX_STATE": running_sandbox.state_dir, "NO_COLOR": "1"}
    directory = tmp_path / "shop"
    directory.mkdir()
    made = Shop(forge, directory, environ)
    yield made
    made.close()
