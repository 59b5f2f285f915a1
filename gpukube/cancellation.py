"""Cancels the call that runs in this thread: every SDK checks the flag before each request.

`engine.run.calls` sets the flag. A cancelled call may wake up later, after an SDK waited out a Retry-After of an hour
or before the next of several requests; by then the report is written and nobody reads the response.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

CANCELLED: Final[ContextVar[Callable[[], bool]]] = ContextVar("CANCELLED", default=lambda: False)
"""Set in the thread of a call; returns whether that call was cancelled."""


class CancelledCallError(Exception):
    """The call was cancelled and must not send another request."""


def raise_if_cancelled(*_: object, **__: object) -> None:
    """Raise if the call was cancelled; ignores the arguments that an SDK passes to its hooks.

    Raises:
        CancelledCallError: The call was cancelled.
    """
    if CANCELLED.get()():
        raise CancelledCallError
