"""The protocol for running API calls under a limit that the caller sets.

In scope: the protocol, and running calls without any limit. Out of scope: limits and stops (engine.calls).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_T = TypeVar("_T")


class Caller(Protocol):
    """Runs calls; may abandon one before it has an answer."""

    def __call__(self, where: str, doing: str, work: Callable[[], _T], *, changes: bool = False) -> _T:
        """Run a call.

        Args:
            where: The API or cluster, for messages.
            doing: What the call does: "listing nodes".
            work: The call.
            changes: Whether it changes something; if so, abandoning it leaves its effect unknown.
        """

    def cleaning(self) -> Caller:
        """Return a caller for cleanup, which gets a few seconds despite a stop or the run's timeout."""


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
