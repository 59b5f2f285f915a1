"""The real SDKs against the sandbox over real sockets: one process for all clouds of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube.sandbox import daemon
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpukube.core.values import Operation, Progress
    from gpukube.provider import Cloud
    from gpukube.sandbox.daemon import SandboxInfo


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
        seen: list[Progress] = []

        def ended() -> Progress | None:
            seen[:] = [cloud.poll(operation)]
            return seen[0] if seen[0].done or seen[0].error else None

        found = wait_for(ended, lambda: seen, every_s=0.02)
        assert found is not None
        return found

    return _follow
