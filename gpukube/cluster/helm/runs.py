"""Tracks which of this machine's Helm runs are alive, so that an interrupted change can be repaired immediately.

In scope: marks and their locks. Out of scope: Helm, releases.

A run that changes the release writes its mark into the release's record as a label, and the run and its child hold a
lock on a file of that name. If a record is "pending" and its mark's file exists here unlocked, the run on this machine
has ended: it was killed, or its Helm could not complete the record. Any other mark may belong to a run that is working
elsewhere right now; only time tells.
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
        name: Label value in the release's record.
        handle: Open, locked file; a child that inherits it keeps the lock after this process ends.
    """

    name: str
    handle: int


class RunLog:
    """The marks of this user on this machine.

    Args:
        keep_s: Seconds after which a mark can be deleted: no run lasts longer.
        directory: Where the marks are; by default below the user's state directory.
    """

    def __init__(self, keep_s: float, directory: Path | None = None) -> None:
        self._keep_s = keep_s
        self._directory = directory or user_state_path("gpukube") / "runs"

    @contextmanager
    def run(self) -> Iterator[Mark | None]:
        """Mark a run; when it has ended, however it did, the mark stays unlocked until later runs sweep it.

        Yields:
            None if nothing can be written: the run continues without a mark.
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
        """Return whether a mark belongs to a run of this machine that has ended."""
        if not _MARK.fullmatch(name):  # it comes from the cluster, and becomes a file name
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
            with suppress(OSError):  # another process sweeps too
                if path.stat().st_mtime < oldest:
                    path.unlink()
