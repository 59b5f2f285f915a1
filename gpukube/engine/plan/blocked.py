"""Pods whose disruption budgets would block a cloud's upgrade of their nodes now.

Out of scope: the rules (cluster.drain.judge).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gpukube.cluster.drain.reading import read_occupants
from gpukube.cluster.state.node_drift import nodes_of_pool
from gpukube.engine.plan.upgrades import renews_nodes
from gpukube.errors import AccessError, Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.cluster.drain.judge import Verdict
    from gpukube.cluster.kube.client import Kube
    from gpukube.cluster.state.snapshot import Snapshot
    from gpukube.core.values import PoolPlan
    from gpukube.errors import Severity, Where


def with_blockers(plan: PoolPlan, seen: Snapshot, kube: Kube, now: float) -> PoolPlan:
    """Add the pods that block an upgrade to its plan; return it unchanged if budgets may not be listed.

    Args:
        plan: Plan of one pool.
        seen: State of its cluster.
        kube: The cluster.
        now: Seconds since the epoch.

    Raises:
        ClusterError: The API did not answer.
    """
    if plan.observed is None or plan.upgrade is None or not plan.disturbs or not renews_nodes(plan):
        return plan
    nodes = [node.name for node in nodes_of_pool(seen, plan.observed)]
    try:
        found = tuple(blocking_pods(kube, nodes, now))
    except AccessError:
        return plan
    outlook = replace(plan.upgrade, blocked=tuple(str(verdict.pod) for verdict in found))
    findings = (blocked_finding(plan.where, verdict, "warning") for verdict in found)
    return replace(plan, upgrade=outlook, diagnostics=(*plan.diagnostics, *findings))


def blocking_pods(kube: Kube, nodes: list[str], now: float) -> Iterator[Verdict]:
    """Find the pods on these nodes that cannot be evicted, however long the cloud waits.

    Annotations for other tools do not count: clouds ignore them.

    Raises:
        AccessError: Pods or budgets may not be listed.
        ClusterError: The API did not answer.
    """
    occupants = read_occupants(kube, nodes, now, allow_disruption=True)
    return (verdict for verdict in occupants.verdicts if verdict.way == "never")


def blocked_finding(where: Where, verdict: Verdict, severity: Severity) -> Finding:
    """Return the finding on a pod that blocks an upgrade, with its budget and the fix."""
    seen = f"pod {verdict.pod} on node {verdict.pod.node} cannot be evicted"
    return Finding("upgrade-blocked", where, seen, fix=verdict.fix, why=verdict.why, severity=severity)
