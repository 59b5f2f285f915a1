"""One read shared by all threads that wait for the same thing, as for thirty pools of a cluster coming up together.

In scope: who reads, and who uses another thread's result. Out of scope: what is read.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Seen = TypeVar("Seen")


class Shared(Generic[Seen]):
    """Serialized reads of one thing, numbered from 1, for threads that each read it repeatedly."""

    def __init__(self) -> None:
        self._turn = threading.Condition()
        self._begun = 0
        self._latest: tuple[int, Seen] | None = None

    def newer(self, than: int | None, look: Callable[[], Seen]) -> tuple[int, Seen]:
        """Return a read newer than the caller's last; make it, unless another thread has done so or is doing so.

        Args:
            than: Number of the caller's last read; None if only a read that starts from now on counts.
            look: Reads; its errors are raised in the reading thread, and the next thread takes over.

        Returns:
            Number of the read, and its result.
        """
        with self._turn:
            known = self._begun if than is None else than
            # The current read may have started too early for this caller. Then the next one is its own, or made by
            # whichever thread wakes first.
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
