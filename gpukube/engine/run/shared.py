"""One look for all who wait for the same thing: thirty pools of a cluster, coming up together, need not look each.

In scope: who looks, and who takes over what another has seen. Out of scope: what is looked at.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Seen = TypeVar("Seen")


class Shared(Generic[Seen]):
    """Looks at one thing, one after the other, numbered from 1; for threads that each look again and again."""

    def __init__(self) -> None:
        self._turn = threading.Condition()
        self._begun = 0
        self._latest: tuple[int, Seen] | None = None

    def newer(self, than: int | None, look: Callable[[], Seen]) -> tuple[int, Seen]:
        """Give a look newer than one that the caller knows; make it, unless another thread has or is making it.

        Args:
            than: Number of the caller's last look; None where only a look that begins from now on tells anything.
            look: Looks; its errors are raised in the thread that looks, and another thread's turn comes.

        Returns:
            Number of the look, and what was seen.
        """
        with self._turn:
            known = self._begun if than is None else than
            # The look that is under way may have begun too early for this caller: then the next one is its own, or that
            # of whoever wakes first.
            while True:
                done = self._latest[0] if self._latest else 0
                if self._latest and done > known:
                    return self._latest
                if self._begun == done:
                    break
                self._turn.wait()
            self._begun += 1
            number = self._begun
        try:
            seen = look()
        except BaseException:
            with self._turn:
                self._begun -= 1
                self._turn.notify_all()
            raise
        with self._turn:
            self._latest = number, seen
            self._turn.notify_all()
        return number, seen
