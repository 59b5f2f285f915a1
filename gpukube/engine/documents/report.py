"""The documents of create, apply, scale, delete, wait and verify."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from gpukube.cluster.proof.outcome import step_of
from gpukube.engine.change.proving import summarise
from gpukube.engine.documents.parts import (
    WEIGHTS,
    change_part,
    counted,
    error_part,
    part_of,
    toleration_part,
)
from gpukube.engine.run.report import exit_code

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.cluster.proof.outcome import PoolProof
    from gpukube.cluster.proof.outcome import Probe as FoundProbe
    from gpukube.engine.documents.shapes.report import (
        Finding,
        PoolOutcome,
        Probe,
        Proof,
        ReportDocument,
        ReportKind,
    )
    from gpukube.engine.run.report import ClusterReport, PoolReport
    from gpukube.errors import Finding as FoundFinding


def report_document(reports: Sequence[ClusterReport], *, kind: str) -> ReportDocument:
    """Return what a command did, as a document.

    Args:
        reports: Reports of all clusters.
        kind: One of ReportKind.
    """
    return {
        "schemaVersion": 2,
        "kind": cast("ReportKind", kind),
        "exitCode": int(exit_code(reports)),
        "summary": counted(pool.outcome for report in reports for pool in report.pools),
        "clusters": [
            {
                "cluster": report.cluster.key,
                "release": report.release,
                "error": error_part(report.error),
                "pools": [_pool(pool) for pool in report.pools],
            }
            for report in reports
        ],
    }


def _pool(report: PoolReport) -> PoolOutcome:
    return {
        "pool": report.pool,
        "name": report.name,
        "outcome": report.outcome,
        "message": report.message,
        "changes": [change_part(c) for c in report.changes],
        "proof": _proof(report.proof) if report.proof else None,
        "error": error_part(report.error),
        "resume": report.resume,
        "tolerations": [toleration_part(toleration) for toleration in report.tolerations],
    }


def _proof(proof: PoolProof) -> Proof:
    return {
        "status": proof.status,
        "summary": summarise(proof),
        "expected": {name: list(bounds) for name, bounds in proof.expected.items()},
        "allocatable": dict(proof.total),
        "nodes": [
            {
                "node": node.node,
                "expected": dict(node.expected),
                "allocatable": dict(node.seen),
                "findings": [_finding(f) for f in node.findings],
                "checks": [part_of(c) for c in node.checks],
            }
            for node in proof.per_node
        ],
        "findings": [_finding(f) for f in proof.findings],
        "probe": _probe(proof.probe) if proof.probe else None,
    }


def _probe(probe: FoundProbe) -> Probe:
    return {
        "status": probe.status,
        "says": probe.message,
        "resource": probe.resource,
        "image": probe.image,
        "node": probe.node,
        "output": list(probe.output),
        "findings": [_finding(f) for f in probe.findings],
    }


def _finding(finding: FoundFinding) -> Finding:
    return {
        "where": str(finding.where),
        "step": step_of(finding),
        "weight": WEIGHTS[finding.severity],
        "seen": finding.seen,
        "means": finding.why,
        "fix": finding.fix,
    }
