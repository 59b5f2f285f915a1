"""One sandbox per module and Helm."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube.sandbox import daemon
from tests.e2e.stage import ENGINES, SPEED, Stage

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module", params=ENGINES)
def stage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Start a sandbox of the module's own, empty."""
    state_dir = tmp_path_factory.mktemp("e2e")
    yield Stage(daemon.up(state_dir, SPEED), request.param)
    daemon.down(state_dir)
