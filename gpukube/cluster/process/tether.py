"""Runs a command that ends when its starter does: the process between gpukube and a child.

In scope: no import of gpukube, so that it starts as a bare script. Out of scope: deadlines (child).

The starter keeps the write end of a pipe open and never writes. When the starter is gone, for whatever reason, the read
end reports it, and the command's whole process group is ended, including what the command started. A parent-death
signal (prctl) would reach only the command, is lost across set-user-id programs, exists only on Linux, and follows the
thread that forked, not the process.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

GRACE_S = 2.0
"""Seconds between SIGTERM, at which Helm records that it was ended, and SIGKILL."""
_NOT_STARTED = 127  # a shell's exit code for a command that it cannot run


def main(lifeline: int, command: list[str]) -> None:
    """Run the command until it exits, then exit the same way."""
    child = os.fork()
    if child == 0:
        os.close(lifeline)
        _become(command)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the group gets it, but this process must still report the exit
    threading.Thread(target=_watch, args=(lifeline,), daemon=True).start()
    for stream in (0, 1, 2):
        os.close(stream)  # the starter reads until the command closes them, not this process
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code < 0:
        if -code != signal.SIGKILL:  # its handler cannot be changed, not even to the default
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _become(command: list[str]) -> None:
    try:
        os.execv(command[0], command)  # noqa: S606 -- intentionally without a shell
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
        os._exit(_NOT_STARTED)


def _watch(lifeline: int) -> None:
    while os.read(lifeline, 1):
        pass
    os.killpg(0, signal.SIGTERM)
    time.sleep(GRACE_S)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
