"""The documents of `validate` and `workload lint`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.engine.documents.parts import diagnostic_document, silenced_part
from gpukube.errors import SEVERITIES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.engine.documents.shapes.parts import Diagnostic
    from gpukube.engine.documents.shapes.report import LintDocument, ValidationDocument
    from gpukube.engine.plan.prepare import Validation
    from gpukube.errors import Finding, Severity, Where
    from gpukube.workload.lint.check import Linted


def validation_document(found: Validation) -> ValidationDocument:
    """Return the findings on specs as a document."""
    reported = _by_severity(found.findings, found.fields)
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


def lint_document(found: Linted) -> LintDocument:
    """Return the findings on manifests as a document."""
    reported = _by_severity(found.findings, found.fields)
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
        "silenced": silenced_part(found.ignored, found.fields),
        "files": list(found.files),
    }


def _by_severity(findings: Sequence[Finding], fields: Mapping[Where, str]) -> dict[Severity, list[Diagnostic]]:
    return {
        level: [diagnostic_document(one, fields) for one in findings if one.severity == level] for level in SEVERITIES
    }
