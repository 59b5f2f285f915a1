"""Cases that take turns: sweeps of costly cases that go the same way through gpukube, of which each run has a part.

In scope: whose turn it is. Out of scope: which sweeps take turns: `@pytest.mark.turns(3)` at a test lets a
third of its cases run; no mark is above 9.

The turn follows from the hash of the committed tree: all runs of a tree are alike, and each new tree draws the parts
anew, so that within a hundred trees every case is run. `--turn` names another, `--full` runs everything. Each test has
at least one case in each run: a mark counts as no more than the test has cases. Tests begin with different cases, so
that those of one run are not all on the same cloud. What must be checked in each run is asserted by tests that cost
little.
"""

from __future__ import annotations

import math
import zlib
from typing import TYPE_CHECKING, Final

import pytest

from sandbox_tests import repository

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ["COUNT", "MOST", "is_chosen", "leave_out_others", "parts_of", "sweeps", "thin", "turn_of_tree"]

MOST: Final = 9
"""No mark is higher: 100 trees leave a case out with a probability of 1 in 100,000."""
THIN: Final = 3
"""Of tests that a full run has passed already, one in so many is run."""
COUNT: Final = math.lcm(*range(1, MOST + 1)) * THIN
"""How many turns there are: so many that the parts of each sweep, and of what is thinned, are equally likely."""


def turn_of_tree(root: Path) -> tuple[int, str]:
    """Return the turn of the tree that is committed in a project's root, and where it comes from.

    Turn 0 where the project is not a repository of its own, as in an unpacked archive, in whichever repository that is.
    """
    tree = repository.tree(root)
    if tree is None:
        return 0, "this directory is not the top of a git repository"
    return int(tree, 16) % COUNT, "from the hash of the committed tree"


def parts_of(mark: pytest.Mark) -> int:
    """Read how many turns a mark has.

    Raises:
        ValueError: It is not one whole number from 2 to `MOST`.
    """
    match mark.args:
        case (int(parts),) if not mark.kwargs and 2 <= parts <= MOST:
            return parts
    given = ", ".join([*map(repr, mark.args), *(f"{name}={value!r}" for name, value in mark.kwargs.items())])
    raise ValueError(f"turns({given}): expected one whole number from 2 to {MOST}")


def is_chosen(name: str, case: int, cases: int, parts: int, turn: int) -> bool:
    """Return whether a case of a test, numbered from 0, has its turn."""
    return (zlib.crc32(name.encode()) + case - turn) % min(parts, cases) == 0


def sweeps(items: Sequence[pytest.Item]) -> dict[tuple[str, int], list[pytest.Item]]:
    """Group cases by their test, those with turns only: by name and mark.

    Raises:
        pytest.UsageError: A mark is wrong.
    """
    found: dict[tuple[str, int], list[pytest.Item]] = {}
    for item in items:
        if mark := item.get_closest_marker("turns"):
            try:
                parts = parts_of(mark)
            except ValueError as error:
                raise pytest.UsageError(f"{item.nodeid}: {error}") from None
            found.setdefault((item.nodeid.partition("[")[0], parts), []).append(item)
    return found


def leave_out_others(found: Mapping[tuple[str, int], Sequence[pytest.Item]], turn: int) -> None:
    """Mark the cases of sweeps that have another turn as slow."""
    for (test, parts), items in found.items():
        name = test.rpartition("::")[2]
        for case, item in enumerate(items):
            if not is_chosen(name, case, len(items), parts, turn):
                item.add_marker(pytest.mark.slow)


def thin(items: Sequence[pytest.Item], turn: int) -> None:
    """Mark all but a third as slow; which third is independent of the cases that have their turn."""
    for item in items:
        if not is_chosen(item.nodeid, 0, THIN, THIN, turn // (COUNT // THIN)):
            item.add_marker(pytest.mark.slow)
