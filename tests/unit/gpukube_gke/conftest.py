"""The live half for tests of what is asked of the SDK."""

from __future__ import annotations

import pytest

from tests.unit.gpukube_gke.live import Live


@pytest.fixture
def live() -> Live:
    return Live()
