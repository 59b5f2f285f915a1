"""A sandbox for the tests: the one background process of the worker, wiped before each test.

In scope: fixtures only. What they call is `gpukube_sandbox.daemon`, which the rest of the suite uses the same way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sandbox_tests.sandboxes import emptied

if TYPE_CHECKING:
    from gpukube_sandbox.daemon import SandboxInfo

SPEED = 5000.0


@pytest.fixture
def sandbox(running_sandbox: SandboxInfo) -> SandboxInfo:
    """Return the test an empty sandbox at the usual speed."""
    return emptied(running_sandbox, SPEED)
