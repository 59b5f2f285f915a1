"""The name under which a run holds a lock, and whether the run of such a name has ended.

In scope: names that tell, on the machine where they were made, whether their process still runs. Out of scope: locks.
"""

from __future__ import annotations

import os
import platform
import re
import secrets
from hashlib import sha256
from pathlib import Path
from typing import Final

_OTHER: Final = re.compile(r"[^\w.-]+")
_FORM: Final = re.compile(r".+_(?P<pid>[1-9]\d*)_(?P<place>[0-9a-f]+)_(?P<start>\d+)_[0-9a-f]+")
_GONE_STATES: Final = ("Z", "X")
"""States of a process that has ended and that its parent has not read yet (proc(5): zombie, dead)."""


def new_identity() -> str:
    """Return a name that no other run has: host, process, where the process id counts, its start, something random."""
    started = _stat(os.getpid())
    place = _place() if started else ""
    host = _OTHER.sub("-", platform.node()) or "unknown"
    return f"{host}_{os.getpid()}_{place}_{started[1] if started else ''}_{secrets.token_hex(4)}"


def has_ended(identity: str) -> bool:
    """Return whether the run of this name is known to have ended; False if its process cannot be seen from here."""
    read = _FORM.fullmatch(identity)
    if read is None or read["place"] != _place():
        return False
    pid, start = int(read["pid"]), read["start"]
    try:
        os.kill(pid, 0)  # also sees processes that a /proc mounted with hidepid does not show
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        pass  # another user's
    found = _stat(pid)
    return found is not None and (found[0] in _GONE_STATES or found[1] != start)


def _place() -> str:
    """Return what identifies the space of process ids: boot and namespaces; "" where that cannot be read.

    A start time is comparable only within one time namespace (time_namespaces(7)).
    """
    try:
        if Path("/proc/self").readlink() != Path(str(os.getpid())):  # the /proc of another namespace
            return ""
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii")
        pids, times = Path("/proc/self/ns/pid"), Path("/proc/self/ns/time")
        spaces = str(pids.readlink()), str(times.readlink()) if times.is_symlink() else ""  # times: since Linux 5.6
    except (OSError, ValueError):
        return ""
    return sha256("|".join((boot, *spaces)).encode()).hexdigest()[:12]


def _stat(pid: int) -> tuple[str, str] | None:
    """Return state and start time of a process (proc(5): fields 3 and 22 of stat); None if they cannot be read."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        return fields[0], fields[19]
    except (OSError, IndexError):
        return None
