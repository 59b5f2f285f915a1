"""One sandbox per module, empty, whose clock is fast enough for back-offs of an autoscaler."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sandbox_tests.sandboxes import emptied
from tests.changes.world import World

if TYPE_CHECKING:
    from gpukube_sandbox.daemon import SandboxInfo

SPEED = 1000.0


@pytest.fixture
def world(running_sandbox: SandboxInfo) -> World:
    """Give the test an empty sandbox."""
    return World(emptied(running_sandbox, SPEED))
