"""Cancellation of the call that runs in this thread: every SDK checks it before each request.

Lives here: the flag and the check, for providers and the engine. Must not live here: who cancels (engine.run.calls).

A cancelled call may wake up later: an SDK returns from a Retry-After of an hour, or the next of several requests is
due. Nobody reads its answer, and the report is already written.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

CANCELLED: Final[ContextVar[Callable[[], bool]]] = ContextVar("GIVEN_UP", default=lambda: False)
"""Set in the thread of a call: returns whether the call was cancelled."""


class CancelledCallError(Exception):
    """The call was cancelled and must not send another request."""


def raise_if_cancelled(*_: object, **__: object) -> None:
    """Raise if the call was cancelled; ignores the arguments that an SDK passes to its hooks.

    Raises:
        CancelledCallError: The call was cancelled.
    """
    if CANCELLED.get()():
        raise CancelledCallError
