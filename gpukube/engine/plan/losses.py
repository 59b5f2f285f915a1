"""Cost of a change: a pool's affected live nodes, GPUs, and pods, and its current devices. Counted, not predicted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gpukube.cluster.kube.draining import drained_pods
from gpukube.cluster.state.node_drift import nodes_of_pool
from gpukube.core.fields import COUNT, MOST
from gpukube.core.live import live_machine
from gpukube.core.values import Loss

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.cluster.kube.client import Kube
    from gpukube.cluster.kube.views import NodeView
    from gpukube.cluster.state.snapshot import Snapshot
    from gpukube.core.values import PoolPlan


def costs_something(plan: PoolPlan) -> bool:
    """Return whether the plan restarts or evicts running pods."""
    return plan.observed is not None and (plan.action in ("replace", "delete") or plan.disturbs)


def with_costs(plans: Sequence[PoolPlan], seen: Snapshot | None, kube: Kube | None) -> tuple[PoolPlan, ...]:
    """Add to each plan its cost and the pool's current devices.

    Args:
        plans: Plans of one cluster.
        seen: State of the cluster; None if unknown.
        kube: Lists the pods on the nodes of affected pools, if there are any; None if it cannot be reached.

    Raises:
        AccessError: Pods may not be listed.
        ClusterError: The API did not answer.
    """
    suffering = [plan.observed for plan in plans if plan.observed and costs_something(plan)]
    nodes = [node.name for observed in suffering for node in nodes_of_pool(seen, observed)] if seen else []
    pods = drained_pods(kube, nodes) if kube else None
    return tuple(_with_cost(plan, seen, pods) for plan in plans)


def _with_cost(plan: PoolPlan, seen: Snapshot | None, pods: Mapping[str, Sequence[str]] | None) -> PoolPlan:
    if plan.observed is None:
        return plan
    nodes = nodes_of_pool(seen, plan.observed) if seen else ()
    capacity = _allocatable(nodes, seen) if seen else None
    if not costs_something(plan):
        return replace(plan, capacity=capacity)
    live = len(nodes) if seen else plan.observed.nodes
    count = _affected_nodes(plan, live)
    machine = live_machine(plan.cluster.provider, plan.observed)
    gpus = machine.gpus * count if machine and count is not None else None
    named = None if pods is None else tuple(sorted(pod for node in nodes for pod in pods.get(node.name, ())))
    return replace(plan, capacity=capacity, loss=Loss(count, gpus, named, None if count == live else live))


def _affected_nodes(plan: PoolPlan, live: int | None) -> int | None:
    """Count the live nodes that the plan deletes or disrupts; if a pool only shrinks, those beyond its new size."""
    smaller = plan.action == "update" and all(c.change.field[0] == "nodes" for c in plan.disruptive)
    if not smaller or live is None:
        return live
    sizes = [c.change.new for c in plan.changes if c.change.field in (COUNT, MOST)]
    most = plan.desired.target.nodes.maximum if plan.desired else next((n for n in sizes if isinstance(n, int)), live)
    return max(0, live - most)


def _allocatable(nodes: Sequence[NodeView], seen: Snapshot) -> dict[str, int]:
    from gpukube.cluster.state.published import node_devices  # noqa: PLC0415 - only if clusters were read

    total: dict[str, int] = {}
    for devices in node_devices(nodes, seen.slices).values():
        for name, count in devices.items():
            total[name] = total.get(name, 0) + count
    return total
