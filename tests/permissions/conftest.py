"""The command against an empty sandbox of this worker, as in tests/examples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube import guard
from sandbox_tests.sandboxes import emptied
from tests.cli.harness import Gpukube

if TYPE_CHECKING:
    from gpukube_sandbox.daemon import SandboxInfo

SPEED = 5000.0


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
