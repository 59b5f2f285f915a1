"""An event of a run as a line of the event log."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpukube.engine.documents.shapes.report import EventDocument
    from gpukube.engine.run.events import Event


def event_document(event: Event) -> EventDocument:
    """Return the document of one event."""
    moment = datetime.fromtimestamp(event.at, UTC).isoformat(timespec="milliseconds")
    return {
        "schemaVersion": 1,
        "kind": "Event",
        "at": moment.replace("+00:00", "Z"),
        "cluster": event.cluster,
        "pool": event.pool or None,
        "phase": event.phase,
        "message": event.message,
    }
