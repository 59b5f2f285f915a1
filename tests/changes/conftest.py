"""One sandbox per module."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube.sandbox import daemon
from tests.changes.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

SPEED = 4000.0


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Start a sandbox of the module's own: that of other tests is wiped before each of them."""
    state_dir = tmp_path_factory.mktemp("world")
    yield World(daemon.up(state_dir, SPEED))
    daemon.down(state_dir)
