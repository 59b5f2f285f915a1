"""A cluster in the sandbox, and the real SDK that talks to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube_sandbox import daemon
from sandbox_tests.aks.arm import GROUP, NAME, SUBSCRIPTION, Arm

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube_sandbox.daemon import SandboxInfo


@pytest.fixture
def arm(sandbox: SandboxInfo) -> Iterator[Arm]:
    """One AKS cluster and a client for it."""
    daemon.add_cluster(sandbox, SUBSCRIPTION, GROUP, NAME)
    with Arm(sandbox) as client:
        yield client
