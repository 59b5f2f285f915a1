"""One empty sandbox per module."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sandbox_tests.sandboxes import emptied
from tests.changes.world import World

if TYPE_CHECKING:
    from gpukube_sandbox.daemon import SandboxInfo

SPEED = 4000.0


@pytest.fixture(scope="module")
def world(running_sandbox: SandboxInfo) -> World:
    """Give the module an empty sandbox; what its tests make stays until the module ends."""
    return World(emptied(running_sandbox, SPEED))
