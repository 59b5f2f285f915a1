"""How a call of an API is made: with a limit that the caller of this room sets.

In scope: the protocol, and calling without any limit. Out of scope: limits and stops (engine.calls).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_T = TypeVar("_T")


class Caller(Protocol):
    """Makes calls; may give one up before it has an answer."""

    def __call__(self, where: str, doing: str, work: Callable[[], _T], *, changes: bool = False) -> _T:
        """Make a call.

        Args:
            where: The API or cluster, for messages.
            doing: What the call is about: "listing nodes".
            work: The call.
            changes: Whether it changes something, so that giving it up leaves open whether it had an effect.
        """

    def cleaning(self) -> Caller:
        """Give a caller for the last calls of a run, which a stop or its timeout do not keep back; it has seconds."""


class _Unlimited:
    """Waits for every answer."""

    def __call__(self, where: str, doing: str, work: Callable[[], _T], *, changes: bool = False) -> _T:
        """See Caller."""
        del where, doing, changes
        return work()

    def cleaning(self) -> Caller:
        """See Caller."""
        return self


UNLIMITED: Caller = _Unlimited()
