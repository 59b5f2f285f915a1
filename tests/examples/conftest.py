"""A sandbox of its own, with no cluster in it: a spec's clusters are made by --sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube.sandbox import daemon, guard
from tests.cli.harness import Gpukube

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.sandbox.daemon import SandboxInfo

SPEED = 2000.0


@pytest.fixture(scope="session")
def running_sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxInfo]:
    state_dir = tmp_path_factory.mktemp("sandbox")
    yield daemon.up(state_dir, SPEED)
    daemon.down(state_dir)


@pytest.fixture
def gpukube(
    running_sandbox: SandboxInfo,
    quiet_environment: None,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Gpukube:
    daemon.reset(running_sandbox)
    monkeypatch.setenv("GPUKUBE_SANDBOX_STATE", running_sandbox.state_dir)
    monkeypatch.setattr(guard, "refuse_non_loopback", lambda: None)  # the audit hook would outlive the test
    return Gpukube(running_sandbox, capsys)
