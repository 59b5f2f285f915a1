"""gpukube beside the clouds' own clients, in one sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube import guard
from gpukube_sandbox.kube.autoscaler.scaler import FASTEST
from sandbox_tests.referees.conftest import referee, world
from sandbox_tests.sandboxes import emptied
from tests.cli.harness import Gpukube

if TYPE_CHECKING:
    from gpukube_sandbox.daemon import SandboxInfo

__all__ = ["referee", "world"]


@pytest.fixture
def gpukube(
    running_sandbox: SandboxInfo, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Gpukube:
    """Run gpukube in this process, in a sandbox that has nothing yet."""
    monkeypatch.setenv("GPUKUBE_SANDBOX_STATE", running_sandbox.state_dir)
    monkeypatch.setattr(guard, "refuse_non_loopback", lambda: None)  # it would stay for the tests that follow
    return Gpukube(emptied(running_sandbox, FASTEST), capsys)
