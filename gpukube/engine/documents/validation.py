"""What is found in specs -> the document of validate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.engine.documents.parts import diagnostic_document, silenced_part
from gpukube.errors import SEVERITIES

if TYPE_CHECKING:
    from gpukube.engine.documents.shapes.report import ValidationDocument
    from gpukube.engine.plan.prepare import Validation


def validation_document(found: Validation) -> ValidationDocument:
    """Describe what is found about specs."""
    reported = {
        level: [diagnostic_document(d, found.fields) for d in found.findings if d.severity == level]
        for level in SEVERITIES
    }
    return {
        "schemaVersion": 1,
        "kind": "Validation",
        "valid": found.is_right,
        "clusters": found.clusters,
        "pools": found.pools,
        "errors": reported["error"],
        "warnings": reported["warning"],
        "hints": reported["hint"],
        "silenced": silenced_part(found.silenced, found.fields),
        "files": list(found.files),
    }
