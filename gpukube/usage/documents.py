"""The document of `pool map`. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from gpukube.engine.documents.map_sums import add_namespaces, add_stocks, map_sum
from gpukube.engine.documents.parts import error_part, gpu_part
from gpukube.usage.costs import held_by, namespace_parts, priced_part

if TYPE_CHECKING:
    from typing import Literal

    from gpukube.engine.documents.shapes.map import (
        MapCluster,
        MapDevice,
        MapDocument,
        MapNode,
        MapPool,
        MapStock,
        MapWaiting,
    )
    from gpukube.usage.world import Cluster, Device, Node, Pool, Stock, Waiting, World

CLAIMED: Final = "ResourceClaims name the devices"
COUNTED: Final = "the device plugin does not publish which pod has which device: these are counts"
_BOTH: Final = "ResourceClaims name the devices of the DRA driver; those of the device plugin are counts"


def map_document(world: World, *, by: Literal["pool", "namespace"] = "pool", free: bool = False) -> MapDocument:
    """Return the world as a document.

    Args:
        world: Clusters as they were read, with the prices of their nodes.
        by: What its picture is ordered by.
        free: Whether its picture has only nodes with free devices; the document has all.
    """
    clusters = [_cluster(cluster) for cluster in world.clusters]
    return {
        "schemaVersion": 0,
        "kind": "Map",
        "readAt": time_text(world.read_at),
        "view": {"by": by, "free": free},
        "summary": map_sum(clusters),
        "namespaces": add_namespaces(space for cluster in clusters for space in cluster["namespaces"]),
        "clusters": clusters,
    }


def time_text(seconds: float) -> str:
    """Return a time as in the API's objects."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def waiting_part(pod: Waiting) -> MapWaiting:
    """Return a pod that waits."""
    return {
        "namespace": pod.namespace,
        "name": pod.name,
        "devices": dict(pod.devices),
        "pool": pod.pool,
        "why": pod.why,
    }


def _cluster(cluster: Cluster) -> MapCluster:
    return {
        "cluster": cluster.cluster.key,
        "provider": cluster.cluster.provider,
        "region": cluster.region,
        "error": error_part(cluster.error),
        "unknown": cluster.unknown,
        "pools": [_pool(pool) for pool in cluster.pools],
        "namespaces": namespace_parts(cluster),
        "waiting": [waiting_part(pod) for pod in cluster.waiting],
    }


def _pool(pool: Pool) -> MapPool:
    nodes = [_node(node) for node in sorted(pool.nodes, key=lambda node: node.name)]
    return {
        "name": pool.name,
        "pool": pool.pool,
        "family": pool.family,
        "owner": pool.owner,
        "state": pool.state,
        "instanceType": pool.instance_type,
        "gpu": gpu_part(pool.machine),
        "nodeCount": pool.node_count,
        "starting": pool.starting,
        "stocks": add_stocks(stock for node in nodes for stock in node["stocks"]),
        "nodes": nodes,
        **priced_part(pool),
    }


def _node(node: Node) -> MapNode:
    claimable = {device.resource for device in node.devices}
    others = any(stock.resource not in claimable for stock in node.stocks)
    return {
        "name": node.name,
        "state": node.state,
        "reason": node.reason,
        "zone": node.zone,
        "gpus": node.machine.gpus if node.machine else None,
        "attribution": "devices" if node.devices else "counts",
        "why": (_BOTH if others else CLAIMED) if node.devices else COUNTED,
        "stocks": [stock_part(stock) for stock in node.stocks],
        "devices": [_device(device) for device in node.devices],
        "pods": [
            {
                "namespace": pod.namespace,
                "name": pod.name,
                "devices": dict(pod.devices),
                "trouble": pod.trouble,
                "claimOnly": pod.claim_only,
            }
            for pod in node.pods
        ],
        "heldBy": held_by(node),
    }


def stock_part(stock: Stock) -> MapStock:
    """Return the devices of one resource."""
    return {
        "resource": stock.resource,
        "kind": stock.unit.kind,
        "profile": stock.unit.profile,
        "perGpu": stock.unit.per_gpu,
        "total": stock.total,
        "held": stock.held,
        "free": stock.free,
        "unusable": stock.unusable,
        "unhealthy": stock.unhealthy,
        "notAdvertised": stock.not_advertised,
        "heldUnhealthy": stock.held_unhealthy,
    }


def _device(device: Device) -> MapDevice:
    return {
        "gpu": device.gpu,
        "name": device.name,
        "resource": device.resource,
        "profile": device.profile,
        "state": device.state,
        "reason": device.reason,
        "holders": [{"namespace": one.namespace, "pod": one.pod, "claim": one.claim} for one in device.holders],
    }
