"""The event log: JSON Lines of what happens in a run, for programs that follow it.

In scope: the writer, and combining listeners. Out of scope: rows for people (progress), the shape of a line
(engine/documents).
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from gpukube.cli.formats.data import quoted_json
from gpukube.cli.stderr import write_stderr
from gpukube.engine.documents.event import event_document

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.engine.run.events import Event, Listener


class EventLog:
    """Writes each event as one line, at once.

    A closed pipe or a full disk must not end a run that is changing clusters: the log ends, `broken` contains the
    reason, and the run continues.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self.broken = ""

    def __call__(self, event: Event) -> None:
        """Write one event."""
        line = quoted_json(event_document(event)) + "\n"
        with self._lock:
            if self.broken:
                return
            try:
                self._stream.write(line)
                self._stream.flush()
            except (OSError, ValueError) as error:  # ValueError: the stream is closed
                self.broken = str(error).lower() or type(error).__name__


def both(*listeners: Listener) -> Listener:
    """Return a listener that calls several, in this order."""

    def listen(event: Event) -> None:
        for each in listeners:
            each(event)

    return listen


@contextmanager
def logged(place: str, listener: Listener) -> Iterator[Listener]:
    """Yield a listener that also writes the event log.

    Args:
        place: A file, created for the user only (0600), or appended to if it exists, so that a resumed run continues
            its log; "-" for stdout; "" for no log.
        listener: The listener that always runs.

    Raises:
        OSError: The file cannot be written.
    """
    if not place:
        yield listener
    elif place == "-":
        log = EventLog(sys.stdout)
        yield both(listener, log)
        _report_broken(log)
    else:
        with _opened(place) as stream:
            log = EventLog(stream)
            yield both(listener, log)
            _report_broken(log)


@contextmanager
def _opened(place: str) -> Iterator[TextIO]:
    handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    stream = os.fdopen(handle, "a", encoding="utf-8")
    try:
        yield stream
    finally:
        try:
            stream.close()
        except OSError as error:  # buffered text that a full disk rejects; the run is over and reported
            write_stderr(f"the event log ends early: {str(error).lower()}")


def _report_broken(log: EventLog) -> None:
    if log.broken:
        write_stderr(f"the event log ends early: {log.broken}")
