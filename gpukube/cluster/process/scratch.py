"""Temporary directories of a run: kubeconfigs with tokens, fetched charts, Helm's own files.

In scope: making them, removing them however a run ends, and removing what a killed run left. Out of scope: what
is put in.

Each directory holds a locked file as long as its run lives. The lock goes with the process, so that an unlocked file
says that the run was killed. The file gets its name when it is locked already: nobody sees it unlocked before.
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
    """A directory that only we can read, until it is removed.

    Args:
        kind: What it is for.
    """

    def __init__(self, kind: Kind) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=f"gpukube-{kind}-"))
        draft = self.path / f"{_LOCK}.new"
        lock = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        with suppress(OSError):  # a file system without locks: the directory is removed at the end, and never swept
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            draft.rename(self.path / _LOCK)
        self._lock = lock
        self._removal = threading.Lock()
        with _guard:
            _living.add(self)

    def __enter__(self) -> Path:
        """Return its path."""
        return self.path

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove it."""
        self.remove()

    def remove(self) -> None:
        """Remove it with all it holds; once is enough, and more do no harm."""
        # Who comes second waits: at a second Ctrl-C one thread removes it while another is about to end the process.
        with self._removal:
            if self not in _living:
                return
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)
            with _guard:
                _living.discard(self)


def remove_all() -> None:
    """Remove all directories of this process: it ends, and nobody comes back to them."""
    with _guard:
        left = tuple(_living)
    for scratch in left:
        scratch.remove()


def sweep() -> None:
    """Remove the directories of this user whose run was killed; those of living runs and of others stay."""
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
        return  # being made or removed at this moment, or not made by us
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return
    else:
        shutil.rmtree(directory, ignore_errors=True)
    finally:
        os.close(lock)
