"""Temporary directories of a run: kubeconfigs with tokens, downloaded charts, Helm's own files.

In scope: creating them, deleting them however a run ends, and deleting what a killed run left. Out of scope: their
content.

Each directory contains a file that is locked while its run is alive. The lock goes with the process, so an unlocked
file means that the run was killed. The file gets its name only after it is locked: no one ever sees it unlocked.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from types import TracebackType

Kind = Literal["kube", "helm", "chart"]
_PREFIXES: Final = tuple(f"gpukube-{kind}-" for kind in ("kube", "helm", "chart"))
_LOCK: Final = ".lock"

_guard = threading.Lock()
_living: set[Scratch] = set()


class Scratch:
    """A private directory of this user, until it is deleted.

    Args:
        kind: Its purpose.
    """

    def __init__(self, kind: Kind) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=f"gpukube-{kind}-"))
        draft = self.path / f"{_LOCK}.new"
        lock = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        with suppress(OSError):  # a file system without locks: deleted at the end, never swept
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            draft.rename(self.path / _LOCK)
        self._lock = lock
        self._removal = threading.Lock()
        with _guard:
            _living.add(self)

    def __enter__(self) -> Path:
        """Return the path."""
        return self.path

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Delete the directory."""
        self.remove()

    def remove(self) -> None:
        """Delete the directory and its content; calling it again is harmless."""
        # The second caller waits: at a second Ctrl-C one thread deletes it while another is about to exit the process.
        with self._removal:
            if self not in _living:
                return
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)
            with _guard:
                _living.discard(self)


def remove_all() -> None:
    """Delete all directories of this process, because it is exiting."""
    with _guard:
        left = tuple(_living)
    for scratch in left:
        scratch.remove()


def sweep() -> None:
    """Delete the directories of this user's killed runs; keep those of running ones and of other users."""
    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if entry.name.startswith(_PREFIXES) and _is_ours(entry):
                _remove_left(Path(entry.path))


def _is_ours(entry: os.DirEntry[str]) -> bool:
    with suppress(OSError):
        return entry.is_dir(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_uid == os.getuid()
    return False


def _remove_left(directory: Path) -> None:
    try:
        lock = os.open(directory / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return  # being created or deleted right now, or not created by gpukube
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return
    else:
        shutil.rmtree(directory, ignore_errors=True)
    finally:
        os.close(lock)
