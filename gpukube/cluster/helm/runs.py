"""Which of this machine's runs of Helm still live: what lets a cut-off change be repaired at once.

In scope: marks and their locks. Out of scope: Helm, releases.

A run that changes the release writes its mark into the release's record as a label, and it and its child hold a lock
on a file of that name. A record that says "pending" with a mark whose file is here and unlocked was left by a run of
this machine that has ended: killed, or by a Helm that could not close its record. Any other mark may be a run
somewhere else that is at work right now; only time tells.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from platformdirs import user_state_path

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MARK = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class Mark:
    """One run.

    Attributes:
        name: What the release's record carries.
        handle: Open file that holds the lock; a child that gets it keeps the lock after our end.
    """

    name: str
    handle: int


class RunLog:
    """The marks of this user on this machine.

    Args:
        keep_s: Seconds after which a mark is of no use: no run lasts longer.
        directory: Where they lie; below the user's state directory when not given.
    """

    def __init__(self, keep_s: float, directory: Path | None = None) -> None:
        self._keep_s = keep_s
        self._directory = directory or user_state_path("gpukube") / "runs"

    @contextmanager
    def run(self) -> Iterator[Mark | None]:
        """Mark a run; the mark stays, unlocked, when it has ended, however it did, and is swept by later runs.

        Yields:
            None where nothing can be written: the run goes on without a mark.
        """
        try:
            mark = self._begin()
        except OSError:
            yield None
            return
        try:
            yield mark
        finally:
            os.close(mark.handle)

    def is_dead(self, name: str) -> bool:
        """Return whether a mark is of a run of this machine that no longer lives."""
        if not _MARK.fullmatch(name):  # it comes from the cluster, and names a file
            return False
        try:
            handle = os.open(self._directory / name, os.O_RDWR)
        except OSError:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        finally:
            os.close(handle)
        return True

    def _begin(self) -> Mark:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._forget_old()
        name = secrets.token_hex(8)
        handle = os.open(self._directory / name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
        except OSError:
            os.close(handle)
            raise
        return Mark(name, handle)

    def _forget_old(self) -> None:
        oldest = time.time() - self._keep_s
        for path in self._directory.iterdir():
            with suppress(OSError):  # another process tidies up too
                if path.stat().st_mtime < oldest:
                    path.unlink()
