"""What is found in manifests -> the document of `workload lint`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.engine.documents.parts import diagnostic_document
from gpukube.errors import SEVERITIES

if TYPE_CHECKING:
    from gpukube.engine.documents.shapes.report import LintDocument
    from gpukube.workload.lint.check import Linted


def lint_document(found: Linted) -> LintDocument:
    """Describe what is found in manifests."""
    reported = {
        level: [diagnostic_document(one, found.fields) for one in found.findings if one.severity == level]
        for level in SEVERITIES
    }
    return {
        "schemaVersion": 1,
        "kind": "Lint",
        "valid": found.is_right,
        "manifests": found.manifests,
        "templates": found.templates,
        "resources": found.resources,
        "notJudged": list(found.unjudged),
        "errors": reported["error"],
        "warnings": reported["warning"],
        "hints": reported["hint"],
        "silenced": [
            {"finding": diagnostic_document(one.finding, found.fields), "reason": one.reason} for one in found.ignored
        ],
        "files": list(found.files),
    }
