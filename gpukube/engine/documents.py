"""What the engine found and did, as plain data: one shape for tables, JSON and YAML.

`schemaVersion` is 0: unstable until its schema is published. Nothing secret is in here: requests carry no
credentials, and native answers are not included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.core.values import OWNER_LABEL, POOL_LABEL
from gpukube.engine.fidelity import inexact
from gpukube.engine.proving import summarise
from gpukube.engine.report import exit_code
from gpukube.errors import SpecError, Where
from gpukube.gpu.catalogue import find_machine
from gpukube.provider import load_provider

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.cluster.proof import Finding, PoolProof
    from gpukube.cluster.release_plan import ReleasePlan
    from gpukube.cluster.views import NodeView
    from gpukube.core.values import Change, ClassifiedChange, ClusterRef, Desired, Nodes, Observed, PoolPlan, Request
    from gpukube.engine.planning import ClusterPlan
    from gpukube.engine.prepare import Prepared
    from gpukube.engine.report import ClusterReport, PoolReport
    from gpukube.errors import Diagnostic, GpukubeError

__all__ = [
    "Document",
    "diagnostic_document",
    "list_document",
    "plan_document",
    "pool_document",
    "report_document",
    "validation_document",
]

Document = dict[str, object]
SCHEMA_VERSION = 0


def plan_document(plans: Sequence[ClusterPlan], warnings: Sequence[Diagnostic], *, kind: str = "Plan") -> Document:
    """Describe a plan, or with kind "Diff" the differences."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        "kind": kind,
        "differs": any(plan.differs for plan in plans),
        "clusters": [_cluster(plan) for plan in plans],
        "warnings": [diagnostic_document(d) for d in warnings],
    }


def validation_document(prepared: Prepared) -> Document:
    """Describe a spec that is right, with its warnings."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        "kind": "Validation",
        "clusters": len(prepared.clusters),
        "pools": sum(len(pools) for pools in prepared.desired.values()),
        "warnings": [diagnostic_document(d) for d in prepared.warnings],
    }


def report_document(reports: Sequence[ClusterReport], *, kind: str) -> Document:
    """Describe what create, delete or verify did."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        "kind": kind,
        "exitCode": int(exit_code(reports)),
        "clusters": [
            {
                "cluster": report.cluster.key,
                "release": report.release,
                "error": _error(report.error),
                "pools": [_pool_report(pool) for pool in report.pools],
            }
            for report in reports
        ],
    }


def list_document(plans: Sequence[ClusterPlan]) -> Document:
    """Describe the live GPU pools of all owners."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        "kind": "PoolList",
        "clusters": [
            {
                "cluster": plan.cluster.key,
                "provider": plan.cluster.provider,
                "error": _error(plan.error),
                "unknown": plan.unknown,
                "pools": [_live_pool(plan.cluster, pool, plan) for pool in plan.live if _has_gpus(plan, pool)],
            }
            for plan in plans
        ],
    }


def pool_document(plans: Sequence[ClusterPlan], name: str) -> Document:
    """Describe one pool with all its fields and nodes, on every cluster that has it.

    Args:
        plans: Clusters as they were looked at.
        name: In the spec, or the cloud's.

    Raises:
        SpecError: No cluster that answered has such a pool.
    """
    found = [
        _live_pool(plan.cluster, pool, plan)
        | {"fields": {k: _plain(v) for k, v in sorted(pool.fields.items())}, "nodes": _nodes_of(plan, pool)}
        for plan in plans
        for pool in plan.live
        if name in (pool.pool, pool.name)
    ]
    failed = [_error(plan.error) for plan in plans if plan.error]
    if not found and not failed:
        raise SpecError(
            f'no pool "{name}" is live on {", ".join(plan.cluster.key for plan in plans)}',
            where=Where(name),
            fix="gpukube pool list shows what is there",
            code="no-pool",
        )
    return {"schemaVersion": SCHEMA_VERSION, "kind": "Pool", "pools": found, "errors": failed}


def diagnostic_document(diagnostic: Diagnostic) -> Document:
    """Describe one finding."""
    return {
        "severity": diagnostic.severity,
        "code": diagnostic.code,
        "where": str(diagnostic.where),
        "message": diagnostic.message,
        "why": diagnostic.why,
        "fix": diagnostic.fix,
    }


def _cluster(plan: ClusterPlan) -> Document:
    facts = plan.facts
    return {
        "cluster": plan.cluster.key,
        "provider": plan.cluster.provider,
        "name": plan.cluster.name,
        "kubernetesVersion": facts.kubernetes_version if facts else None,
        "location": facts.location if facts else None,
        "status": facts.status if facts else None,
        "error": _error(plan.error),
        "unknown": plan.unknown,
        "release": _release(plan.release),
        "pools": [_pool(pool) for pool in plan.pools],
        "undeclared": [{"name": o.name, "pool": o.pool, "owner": o.owner} for o in plan.undeclared],
        "diagnostics": [diagnostic_document(d) for d in plan.diagnostics],
    }


def _release(plan: ReleasePlan | None) -> Document | None:
    if plan is None:
        return None
    return {
        "action": plan.action,
        "why": plan.reason,
        "name": plan.name,
        "namespace": plan.namespace,
        "chart": plan.chart,
        "version": plan.version,
        "entries": list(plan.keys),
        "changes": [{"path": c.path, "old": c.old, "new": c.new} for c in plan.changes],
    }


def _pool(plan: PoolPlan) -> Document:
    return {
        "pool": plan.pool,
        "name": plan.name,
        "action": plan.action,
        "why": plan.why,
        **(_wanted(plan.desired) if plan.desired else {}),
        "changes": [_change(c) for c in plan.changes],
        "requests": [_request(r) for r in plan.requests],
        "diagnostics": [diagnostic_document(d) for d in plan.diagnostics],
    }


def _wanted(desired: Desired) -> Document:
    target, promise, owner = desired.target, desired.promise, desired.ownership
    return {
        "instanceType": target.machine.name,
        "gpu": {"model": str(target.machine.model), "count": target.machine.gpus},
        "nodes": _node_range(target.nodes),
        "zones": list(target.zones),
        "devices": {
            "perNode": dict(promise.per_node),
            "min": promise.total(target.nodes.minimum),
            "max": promise.total(target.nodes.maximum),
        },
        "driver": owner.driver,
        "devicePlugin": owner.advertiser,
        "configEntry": owner.config_key,
        "ownership": owner.reason,
        "fidelity": {
            feature: {"fidelity": ability.fidelity, "substitute": ability.substitute, "reason": ability.reason}
            for feature, ability in inexact(target, load_provider(target.cluster.provider).abilities()).items()
        },
    }


def _node_range(nodes: Nodes) -> Document:
    return {"count": nodes.count, "min": nodes.minimum, "max": nodes.maximum, "autoscaled": nodes.autoscaled}


def _change(classified: ClassifiedChange) -> Document:
    change: Change = classified.change
    return {
        "field": change.field,
        "old": _plain(change.old),
        "new": _plain(change.new),
        "kind": classified.row.kind,
        "sentence": classified.row.sentence,
    }


def _request(request: Request) -> Document:
    return {"service": request.service, "operation": request.operation, "params": _plain(request.params)}


def _pool_report(report: PoolReport) -> Document:
    return {
        "pool": report.pool,
        "name": report.name,
        "outcome": report.outcome,
        "message": report.message,
        "changes": [_change(c) for c in report.changes],
        "proof": _proof(report.proof),
        "error": _error(report.error),
        "resume": report.resume,
    }


def _proof(proof: PoolProof | None) -> Document | None:
    if proof is None:
        return None
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
            }
            for node in proof.per_node
        ],
        "findings": [_finding(f) for f in proof.findings],
    }


def _finding(finding: Finding) -> Document:
    return {
        "where": finding.where,
        "step": finding.step,
        "weight": finding.weight,
        "seen": finding.seen,
        "means": finding.means,
        "fix": finding.fix,
    }


def _error(error: GpukubeError | None) -> list[Document] | None:
    return [diagnostic_document(d) for d in error.diagnostics] if error else None


def _live_pool(cluster: ClusterRef, pool: Observed, plan: ClusterPlan) -> Document:
    machine = find_machine(cluster.provider, pool.instance_type)
    return {
        "cluster": cluster.key,
        "name": pool.name,
        "pool": pool.pool,
        "owner": pool.owner,
        "status": pool.status,
        "state": pool.state,
        "failure": pool.failure,
        "instanceType": pool.instance_type,
        "gpu": {"model": str(machine.model), "count": machine.gpus} if machine else None,
        "nodeCount": pool.nodes,
        "autoscaling": [pool.fields.get("nodes.autoscaling.min"), pool.fields.get("nodes.autoscaling.max")],
        "protected": pool.protected,
        "allocatable": _allocatable(plan, pool),
    }


def _allocatable(plan: ClusterPlan, pool: Observed) -> dict[str, int] | None:
    if plan.seen is None or not pool.owner:
        return None
    total: dict[str, int] = {}
    for node in _pool_nodes(plan, pool):
        for name, count in node.devices.items():
            total[name] = total.get(name, 0) + count
    return total


def _nodes_of(plan: ClusterPlan, pool: Observed) -> list[Document]:
    if plan.seen is None:
        return []
    return [
        {"name": node.name, "ready": node.ready, "devices": node.devices, "taints": [str(t) for t in node.taints]}
        for node in _pool_nodes(plan, pool)
    ]


def _pool_nodes(plan: ClusterPlan, pool: Observed) -> tuple[NodeView, ...]:
    """Find the live nodes of a pool of gpukube by our marks, which the cloud puts on every node of the pool."""
    nodes = plan.seen.nodes if plan.seen else ()
    marks = (pool.owner, pool.pool)
    return tuple(n for n in nodes if (n.labels.get(OWNER_LABEL), n.labels.get(POOL_LABEL)) == marks)


def _has_gpus(plan: ClusterPlan, pool: Observed) -> bool:
    return bool(pool.owner) or find_machine(plan.cluster.provider, pool.instance_type) is not None


def _plain(value: object) -> object:
    """Turn tuples and mappings of any kind into lists and dicts."""
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    return value
