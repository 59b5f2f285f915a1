"""Whether anybody still waits for the call that runs in this thread: what SDKs are asked before each request they send.

Lives here: that one question, for providers and the engine alike. Must not live here: who gives up (engine.calls).

A call that is given up may go on by itself: an SDK wakes from a Retry-After of an hour, or the next of several requests
is due. Nobody would look at its answer, and a report already says what is known.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

GIVEN_UP: Final[ContextVar[Callable[[], bool]]] = ContextVar("GIVEN_UP", default=lambda: False)
"""Set in the thread of a call by whoever may give it up."""


class GivenUpError(Exception):
    """Nobody waits for this call any more, so that it sends nothing more."""


def require_wanted(*_: object, **__: object) -> None:
    """End a call that was given up; takes and leaves whatever the hook of an SDK hands it.

    Raises:
        GivenUpError: It was.
    """
    if GIVEN_UP.get()():
        raise GivenUpError
