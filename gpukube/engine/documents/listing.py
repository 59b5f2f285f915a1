"""The documents of `pool list` and `pool get`: live pools, and the devices that pods use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.cluster.state.node_drift import nodes_of_pool
from gpukube.core.fields import LEAST, MOST
from gpukube.core.jsontree import integer
from gpukube.core.live import live_machine
from gpukube.engine.documents.parts import error_part, gpu_part, plain
from gpukube.engine.plan.lookup import is_named, no_such_pool

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gpukube.cluster.kube.views import NodeView, PodView
    from gpukube.core.values import ClusterRef, Observed
    from gpukube.engine.documents.shapes.listing import (
        ListDocument,
        ListedCluster,
        LiveNode,
        LivePool,
        PoolDetail,
        PoolDocument,
    )
    from gpukube.engine.plan.planning import ClusterPlan

    Usage = Mapping[str, Mapping[str, Mapping[str, int]]]

_ENDED: Final = ("Succeeded", "Failed")
"""Phases in which a pod has released its devices (Kubernetes: docs/concepts/workloads/pods/pod-lifecycle)."""


def list_document(plans: Sequence[ClusterPlan], usage: Usage | None = None) -> ListDocument:
    """Return the live GPU pools of all owners, as a document.

    Args:
        plans: The clusters that were read.
        usage: Cluster key -> node -> devices that pods request there; clusters that were not read are absent.
    """
    return {
        "schemaVersion": 1,
        "kind": "PoolList",
        "clusters": [_cluster(plan, usage or {}) for plan in plans],
    }


def _cluster(plan: ClusterPlan, usage: Usage) -> ListedCluster:
    devices = _node_devices(plan)
    part: ListedCluster = {
        "cluster": plan.cluster.key,
        "provider": plan.cluster.provider,
        "error": error_part(plan.error),
        "unknown": plan.unknown,
        "pools": [
            _live_pool(pool, plan, usage, devices)
            for pool in plan.live
            if bool(pool.owner) or live_machine(plan.cluster.provider, pool) is not None
        ],
    }
    if _has_families(plan):
        from gpukube.engine.documents.families import listed_families  # noqa: PLC0415 - only for families

        part["families"] = list(listed_families(plan))
    return part


def _has_families(plan: ClusterPlan) -> bool:
    return any(pool.family for pool in plan.live) or any(desired.target.family for desired in plan.desired)


def pool_document(plans: Sequence[ClusterPlan], name: str, usage: Usage | None = None) -> PoolDocument:
    """Return one pool with all its fields and nodes, on every cluster that has it, as a document.

    Args:
        plans: The clusters that were read.
        name: Name in the spec, or in the cloud.
        usage: See `list_document`.

    Raises:
        SpecError: No cluster that answered has such a pool.
    """
    found = [
        _detail(pool, plan, usage or {})
        for plan in plans
        for pool in plan.live
        if is_named(name, plan.cluster.key, pool)
    ]
    failed = [failure for failure in (error_part(plan.error) for plan in plans) if failure]
    if not found and not failed:
        raise no_such_pool(name, plans)
    return {"schemaVersion": 1, "kind": "Pool", "pools": found, "errors": failed}


def _node_devices(plan: ClusterPlan) -> Mapping[str, Mapping[str, int]]:
    if plan.seen is None:
        return {}
    from gpukube.cluster.state.published import node_devices  # noqa: PLC0415 - only for a cluster whose inside was read

    return node_devices(plan.seen.nodes, plan.seen.slices)


def _detail(pool: Observed, plan: ClusterPlan, usage: Usage) -> PoolDetail:
    devices = _node_devices(plan)
    nodes: list[LiveNode] = [
        {
            "name": node.name,
            "ready": node.ready,
            "devices": dict(devices[node.name]),
            "taints": [str(t) for t in node.taints],
        }
        for node in _pool_nodes(plan, pool)
    ]
    fields = {str(path): plain(pool.fields[path]) for path in sorted(pool.fields, key=str)}
    return {**_live_pool(pool, plan, usage, devices), "fields": fields, "nodes": nodes}


def _live_pool(pool: Observed, plan: ClusterPlan, usage: Usage, devices: Mapping[str, Mapping[str, int]]) -> LivePool:
    cluster: ClusterRef = plan.cluster
    machine = live_machine(cluster.provider, pool)
    nodes = _pool_nodes(plan, pool)
    known = plan.seen is not None
    allocatable = _added(devices[node.name] for node in nodes) if known else None
    requested = usage.get(cluster.key)
    used = _added(requested.get(node.name, {}) for node in nodes) if known and requested is not None else None
    part: LivePool = {
        "cluster": cluster.key,
        "provider": cluster.provider,
        "name": pool.name,
        "pool": pool.pool,
        "owner": pool.owner,
        "status": pool.status,
        "state": pool.state,
        "failure": pool.failure,
        "instanceType": pool.instance_type,
        "gpu": gpu_part(machine),
        "nodeCount": pool.nodes,
        "autoscaling": [integer(pool.fields.get(LEAST)), integer(pool.fields.get(MOST))],
        "protected": pool.protected,
        "gpus": machine.gpus * pool.nodes if machine and pool.nodes is not None else None,
        "allocatable": allocatable,
        "used": used,
        "slicesPerGpu": _slices(allocatable, machine.gpus * len(nodes)) if machine and allocatable else None,
    }
    if _has_families(plan):
        from gpukube.engine.documents.families import live_place  # noqa: PLC0415 - only for families

        if place := live_place(pool, plan):
            part["family"] = place
    return part


def _slices(allocatable: Mapping[str, int], gpus: float) -> float | None:
    """Return devices per physical GPU; None while the nodes advertise none."""
    devices = sum(allocatable.values())
    return round(devices / gpus, 2) if gpus and devices else None


def _added(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for each in counts:
        for name, count in each.items():
            total[name] = total.get(name, 0) + count
    return total


def _pool_nodes(plan: ClusterPlan, pool: Observed) -> tuple[NodeView, ...]:
    return nodes_of_pool(plan.seen, pool) if plan.seen else ()


def used_devices(pods: Iterable[PodView], held: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    """Return the devices that pods request, and those that their claims hold, by node.

    Args:
        pods: All pods of a cluster; pods that are not placed or have ended use nothing.
        held: Node -> devices that claims hold there.

    Returns:
        Node -> resource -> devices.
    """
    used = {node: dict(counts) for node, counts in held.items()}
    for pod in pods:
        if pod.devices and pod.scheduled and pod.phase not in _ENDED:
            node = used.setdefault(pod.node, {})
            for name, count in pod.devices.items():
                node[name] = node.get(name, 0) + count
    return used
