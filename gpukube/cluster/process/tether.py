"""Runs a command that ends when its starter does: the process between gpukube and a child.

In scope: nothing of gpukube, so that it starts as a bare script. Out of scope: deadlines (child).

The starter holds the writing end of a pipe and never writes. When it is gone, however it went, the reading end says so,
and the whole group of the command is ended: what it started, too. A parent-death signal (prctl) would reach the command
alone, is lost across set-user-id programs, and exists on Linux only; and it follows the thread that forked, not the
process.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

GRACE_S = 2.0
"""Between SIGTERM, at which Helm notes in its record that it was ended, and SIGKILL."""
_NOT_STARTED = 127  # what a shell answers for a command that it cannot run


def main(lifeline: int, command: list[str]) -> None:
    """Run the command to its end, and end as it did."""
    child = os.fork()
    if child == 0:
        os.close(lifeline)
        _become(command)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it is sent to the group, and the command's end is still to be told
    threading.Thread(target=_watch, args=(lifeline,), daemon=True).start()
    for stream in (0, 1, 2):
        os.close(stream)  # the starter reads until the command, not this process, has closed them
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code < 0:
        if -code != signal.SIGKILL:  # nobody may handle it, so that nobody may set its default either
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _become(command: list[str]) -> None:
    try:
        os.execv(command[0], command)  # noqa: S606 -- no shell is what is wanted
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
