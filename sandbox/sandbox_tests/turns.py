"""Cases that take turns: sweeps of costly cases that go the same way through gpukube, of which each run has a part.

Lives here: whose turn it is. Must not live here: which sweeps take turns: `@pytest.mark.turns(3)` at a test lets a
third of its cases run.

The turn is the number of the day on which the commit was made: all runs of a commit are alike, and within days of
work every case is run. `--turn` names another, `-m ""` runs everything. A test with as many cases as turns has one of
them in each run; tests begin with different cases, so that those of one run are not all on the same cloud. What must be
checked in each run is asserted by tests that cost little.
"""

from __future__ import annotations

import subprocess
import zlib
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["leave_out_those_of_other_turns", "turn_of_commit"]


def turn_of_commit() -> int:
    """Number the day of the commit that is checked out; of today where there is no repository (an unpacked archive)."""
    here = Path(__file__).parent
    asked = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=here, capture_output=True, text=True, check=False)
    made = asked.stdout.strip()
    return (datetime.fromtimestamp(int(made), UTC) if made.isdigit() else datetime.now(UTC)).toordinal()


def leave_out_those_of_other_turns(items: Sequence[pytest.Item], turn: int) -> None:
    """Mark the cases that have another turn as slow; a test without cases is always run."""
    for item in items:
        mark = item.get_closest_marker("turns")
        if mark and hasattr(item, "callspec") and (_place(item) - turn) % mark.args[0]:
            item.add_marker(pytest.mark.slow)


def _place(item: pytest.Item) -> int:
    """Number a case among those of its test, from a number that depends on the test's name."""
    assert isinstance(item, pytest.Function)
    return zlib.crc32(item.originalname.encode()) + max(item.callspec.indices.values())
