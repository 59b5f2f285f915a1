"""Reads the clouds' pools and the clusters once, in parallel, for the pictures of them.

Changes nothing. Clusters that fail do not stop the others: their error, or why their inside is unknown, is part of the
result.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from gpukube.cluster.kube.api_types import PODS, RESOURCE_CLAIMS
from gpukube.engine.looking import plan_clusters, survey_exit_code
from gpukube.engine.run.fanout import run_all
from gpukube.engine.run.session import open_sessions
from gpukube.errors import GpukubeError
from gpukube.gpu.claims import DRIVER
from gpukube.usage.building import build_cluster
from gpukube.usage.pods import Pods, read_pods
from gpukube.usage.world import World

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.cluster.kube.client import Kube
    from gpukube.cluster.state.snapshot import Snapshot
    from gpukube.engine.plan.planning import ClusterPlan
    from gpukube.engine.plan.prepare import Prepared
    from gpukube.engine.run.context import Run
    from gpukube.errors import ExitCode


def read_world(prepared: Prepared, run: Run) -> tuple[World, tuple[ClusterPlan, ...]]:
    """Read all clusters.

    Args:
        prepared: The selected clusters, and the pools that the specs declare on them.
        run: The run.

    Returns:
        The world, and the plans with the errors of clusters that could not be read.
    """
    with open_sessions(prepared.clusters.values(), run) as sessions:
        plans = plan_clusters(prepared, sessions, run)
        now = run.clock.now()
        tasks = {
            plan.cluster.key: partial(_read_pods, plan.seen, sessions[plan.cluster.key].kube(), now)
            for plan in plans
            if plan.seen
        }
        found = run_all(tasks, run.parallelism)
    plans = tuple(_with_failure(plan, found.get(plan.cluster.key)) for plan in plans)
    clusters = []
    for plan in plans:
        pods = found.get(plan.cluster.key)
        read = pods if isinstance(pods, Pods) else Pods()
        clusters.append(build_cluster(plan, read, now, prepared.filters.pools))
    return World(tuple(clusters), now), plans


def world_exit_code(plans: Sequence[ClusterPlan]) -> ExitCode:
    """Return 0 if everything could be read, 3 if only a part, else the cause's own code."""
    return survey_exit_code([replace(plan, error=plan.error or plan.unreachable) for plan in plans])


def _read_pods(seen: Snapshot, kube: Kube, now: float) -> Pods:
    """Read pods, and claims where the DRA driver publishes devices."""
    claims = kube.objects(RESOURCE_CLAIMS) or () if any(item.driver == DRIVER for item in seen.slices) else ()
    return read_pods(kube.objects(PODS) or (), claims, now)


def _with_failure(plan: ClusterPlan, pods: Pods | GpukubeError | None) -> ClusterPlan:
    """Return a plan without its inside if the pods could not be read: nobody knows then which devices are free."""
    if not isinstance(pods, GpukubeError):
        return plan
    return replace(plan, seen=None, unknown=str(pods), unreachable=pods)
