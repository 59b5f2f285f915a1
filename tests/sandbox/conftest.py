"""A sandbox for the tests: one background process per session, wiped before each test.

Lives here: fixtures only. What they call is `gpukube.sandbox.daemon`, which the rest of the suite uses the same way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube.sandbox import daemon

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.sandbox.daemon import SandboxInfo

SPEED = 5000.0


@pytest.fixture(scope="session")
def running_sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxInfo]:
    """Start the process; it stops with the session. Its clusters are emulated even where real ones could be."""
    state_dir = tmp_path_factory.mktemp("sandbox")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("KUBEBUILDER_ASSETS", raising=False)
        info = daemon.up(state_dir, SPEED)
    yield info
    daemon.down(state_dir)


@pytest.fixture
def sandbox(running_sandbox: SandboxInfo) -> SandboxInfo:
    """Give the test an empty sandbox at the usual speed."""
    daemon.reset(running_sandbox)
    daemon.configure(running_sandbox, speed=SPEED)
    return running_sandbox
