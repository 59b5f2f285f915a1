"""An empty sandbox for each test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sandbox_tests.sandboxes import emptied
from tests.alternatives.stage import SPEED, Families

if TYPE_CHECKING:
    from gpukube_sandbox.daemon import SandboxInfo


@pytest.fixture
def world(running_sandbox: SandboxInfo) -> Families:
    """Give the test an empty sandbox."""
    return Families(emptied(running_sandbox, SPEED))
