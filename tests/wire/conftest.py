"""The real SDKs against the sandbox over real sockets: one process for all clouds of a session."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from gpukube.sandbox import daemon

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpukube.core.values import Operation, Progress
    from gpukube.provider import Cloud
    from gpukube.sandbox.daemon import SandboxInfo

DEADLINE_S = 20.0


@pytest.fixture(scope="session")
def running_sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxInfo]:
    """Start the process; it stops with the session. Each cloud's own fixture wipes it and sets its speed."""
    state_dir = tmp_path_factory.mktemp("sandbox")
    yield daemon.up(state_dir)
    daemon.down(state_dir)


@pytest.fixture
def follow() -> Callable[[Cloud, Operation], Progress]:
    """Poll an operation to its end, as fast as the sandbox's clock."""

    def _follow(cloud: Cloud, operation: Operation) -> Progress:
        until = time.monotonic() + DEADLINE_S
        progress = cloud.poll(operation)
        while not progress.done and progress.error is None:
            assert time.monotonic() < until, progress
            time.sleep(0.02)
            progress = cloud.poll(operation)
        return progress

    return _follow
