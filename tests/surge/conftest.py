"""One empty sandbox per test of a replacement."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.changes.world import World
from tests.sandboxes import emptied

if TYPE_CHECKING:
    from gpukube.sandbox.daemon import SandboxInfo

SPEED = 4000.0


@pytest.fixture
def world(running_sandbox: SandboxInfo) -> World:
    """Give the test an empty sandbox."""
    return World(emptied(running_sandbox, SPEED))
