"""The real SDKs against the sandbox over real sockets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sandbox_tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpukube.core.values import Operation, Progress
    from gpukube.provider import Cloud


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
