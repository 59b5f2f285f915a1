"""The document of a doctor run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.doctor.diagnose import doctor_exit_code
from gpukube.engine.documents.parts import counted, error_part
from gpukube.errors import SEVERITIES
from gpukube.rule_ids import rule_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.doctor.check import Examination, Found
    from gpukube.engine.documents.shapes.doctor import AilmentPart, DoctorDocument, PatientPart


def doctor_document(examinations: Sequence[Examination]) -> DoctorDocument:
    """Return the findings and the applied fixes as a document."""
    counts = counted(found.finding.severity for item in examinations for found in item.found)
    return {
        "schemaVersion": 1,
        "kind": "Doctor",
        "exitCode": int(doctor_exit_code(examinations)),
        "summary": {severity: counts[severity] for severity in SEVERITIES if severity in counts},
        "clusters": [_cluster(item) for item in examinations],
    }


def _cluster(item: Examination) -> PatientPart:
    return {
        "cluster": item.cluster.key,
        "made": item.made,
        "ailments": [_finding(found) for found in item.found],
        "skipped": [{"check": skipped.check.id, "reading": skipped.reading} for skipped in item.skipped],
        "mended": list(item.fixed),
        "unmended": error_part(item.fix_error) or [],
        "errors": [part for error in item.troubles for part in error_part(error) or ()],
    }


def _finding(found: Found) -> AilmentPart:
    finding = found.finding
    return {
        "check": finding.code,
        "rule": rule_id(found.check.rule),
        "title": found.check.title,
        "severity": "error" if finding.severity == "error" else "warning",
        "where": str(finding.where),
        "seen": finding.seen,
        "evidence": list(finding.evidence),
        "consequence": finding.why,
        "remedy": finding.fix,
        "link": found.check.link,
        "fix": str(finding.safe_fix) if finding.safe_fix else None,
    }
