"""Waiting for what must come: the one loop, and the one patience, of every test that looks until something is so.

In scope: waiting. Out of scope: what is waited for.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
PATIENCE_S = 60.0
"""Longer than a busy machine stalls: only what never comes fails a test. Nothing that goes well waits so long."""
_SHARE, _LONGEST_S = 0.2, 0.06
"""What comes late is looked for less often: most looks are requests, and two processes work for each."""


def wait_for(
    look: Callable[[], T], told: Callable[[], object] = lambda: "it did not become so", every_s: float = 0.01
) -> T:
    """Look until what is found is true, and give it.

    Args:
        look: Looks once. An error that it raises ends the waiting.
        told: What the failure shows when it never came: the last state, an error output.
        every_s: Seconds between two looks, at first.

    Raises:
        AssertionError: It did not come within `PATIENCE_S`.
    """
    began = time.monotonic()
    while not (found := look()):
        waited = time.monotonic() - began
        assert waited < PATIENCE_S, told()
        time.sleep(max(every_s, min(_SHARE * waited, _LONGEST_S)))
    return found
