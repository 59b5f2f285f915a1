"""Cases that take turns: sweeps of costly cases that go the same way through gpukube, of which each run has a part.

Lives here: whose turn it is. Must not live here: which sweeps take turns: `@pytest.mark.turns(3)` at a test lets a
third of its cases run.

The turn is the number of the day: all runs of a day are alike, and within days every case is run. `--turn` names
another, `-m ""` runs everything. What must be checked in each run is asserted by tests that cost little.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["leave_out_those_of_other_turns", "turn_of_today"]


def turn_of_today() -> int:
    """Number the day; the runs of one day are alike."""
    return datetime.now(UTC).toordinal()


def leave_out_those_of_other_turns(items: Sequence[pytest.Item], turn: int) -> None:
    """Mark the cases that have another turn as slow."""
    for item in items:
        mark = item.get_closest_marker("turns")
        if mark and (_place(item) - turn) % mark.args[0]:
            item.add_marker(pytest.mark.slow)


def _place(item: pytest.Item) -> int:
    """Number a case among those of its test."""
    assert isinstance(item, pytest.Function)
    return max(item.callspec.indices.values())
