"""Checks after an upgrade: nodes run their pool's version, or what blocks it.

Out of scope: available versions (`plan.upgrades`), sending the calls (`live_pool`).
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from gpukube.cluster.state.node_drift import nodes_of_pool
from gpukube.cluster.state.snapshot import look
from gpukube.engine.change.live_pool import observe
from gpukube.engine.plan.blocked import blocked_finding, blocking_pods
from gpukube.engine.plan.upgrades import outdated_nodes, renews_nodes
from gpukube.errors import CloudError, ClusterError, Finding, GpukubeError, WaitTimeout

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.cluster.kube.views import NodeView
    from gpukube.core.upgrades import NodeMarks
    from gpukube.core.values import PoolPlan
    from gpukube.engine.run.context import Run
    from gpukube.engine.run.session import Session


@contextmanager
def naming_blockers(plan: PoolPlan, session: Session, run: Run) -> Iterator[None]:
    """Add the pods and budgets that block an upgrade now to its failure, in addition to the cloud's message."""
    try:
        yield
    except CloudError as error:
        if isinstance(error, WaitTimeout) or plan.observed is None or not renews_nodes(plan):
            raise
        if found := _blockers(plan, session, run):
            raise type(error).of((*error.diagnostics, *found), str(error)) from error
        raise


def _blockers(plan: PoolPlan, session: Session, run: Run) -> list[Finding]:
    assert plan.observed is not None  # noqa: S101 - only live pools are upgraded
    try:
        kube = session.kube()
        nodes = [node.name for node in nodes_of_pool(look(kube), plan.observed)]
        return [blocked_finding(plan.where, one, "error") for one in blocking_pods(kube, nodes, run.clock.now())]
    except GpukubeError:
        return []  # the cloud's message remains


def require_renewed(plan: PoolPlan, session: Session, run: Run) -> None:
    """Wait briefly until every node of an upgraded pool runs the pool's version; skip other pools.

    Raises:
        ClusterError: Some nodes do not: the cloud has skipped them, or stopped.
        Stopped: The run was stopped.
    """
    if renews_nodes(plan) and not run.no_wait:
        require_current(plan, session, run)


def require_current(plan: PoolPlan, session: Session, run: Run) -> None:
    """Wait briefly until every node of a pool runs the pool's version, whoever upgraded it.

    Raises:
        ClusterError: Some nodes do not: the cloud has skipped them, or stopped.
        Stopped: The run was stopped.
    """
    upgrades = session.provider.extras.upgrades
    if upgrades is None:
        return
    end = run.clock.now() + run.pace.settle_s  # a deleted node may still be listed for a moment
    while True:
        observed = observe(plan, session)
        if observed is None:
            return
        marks = upgrades.marks(observed)
        if not (old := outdated_nodes(nodes_of_pool(look(session.kube()), observed), marks)):
            return
        if run.clock.now() >= end:
            raise ClusterError.of([_outdated_finding(plan, node, marks) for node in old])
        run.report("verify", f"{len(old)} nodes do not run the new version yet", plan.cluster.key, plan.pool)
        run.clock.wait(run.pace.poll_s)


def _outdated_finding(plan: PoolPlan, node: NodeView, marks: NodeMarks) -> Finding:
    labels = ((name, node.labels.get(name), value) for name, value in marks.labels.items())
    wrong = [f"label {name} {live}, not {value}" for name, live, value in labels if live != value]
    if not node.kubelet.startswith(marks.kubelet):
        wrong.insert(0, f"kubelet {node.kubelet}, not {marks.kubelet}")
    state = " and is cordoned" if node.cordoned else ""
    return Finding(
        "node-outdated",
        plan.where,
        f"node {node.name} has {'; '.join(wrong)}{state}",
        fix="run this again: the cloud resumes where it stopped; if the node stays, drain and delete it",
        why="the cloud reports that the upgrade is done",
    )
