"""One sandbox per module and Helm."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sandbox_tests.sandboxes import emptied
from tests.e2e.stage import ENGINES, SPEED, Stage

if TYPE_CHECKING:
    from gpukube_sandbox.daemon import SandboxInfo


@pytest.fixture(scope="module", params=ENGINES)
def stage(request: pytest.FixtureRequest, running_sandbox: SandboxInfo) -> Stage:
    """Give the module an empty sandbox; what its tests make stays until the module ends."""
    return Stage(emptied(running_sandbox, SPEED), request.param)
