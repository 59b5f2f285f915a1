"""The document of `pool usage`: counts and prices of clusters. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.engine.documents.parts import error_part
from gpukube.engine.documents.usage_sums import add_priced, usage_sums
from gpukube.usage.advising import advise_layouts
from gpukube.usage.costs import namespace_parts, priced_part, usd_part
from gpukube.usage.documents import stock_part, time_text, waiting_part

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.engine.documents.shapes.usage import (
        UsageCluster,
        UsageDocument,
        UsagePool,
        UsageStock,
        UsageStuck,
    )
    from gpukube.usage.world import Cluster, Node, Pool, World


def usage_document(world: World) -> UsageDocument:
    """Return the usage of a world whose nodes have prices."""
    clusters = [_cluster(cluster) for cluster in world.clusters]
    total, groups, owners, namespaces = usage_sums(clusters)
    return {
        "schemaVersion": 0,
        "kind": "Usage",
        "readAt": time_text(world.read_at),
        "summary": total,
        "groups": groups,
        "owners": owners,
        "namespaces": namespaces,
        "clusters": clusters,
        "notes": list(dict.fromkeys(world.notes)),
    }


def _cluster(cluster: Cluster) -> UsageCluster:
    nodes = [(pool, node) for pool in cluster.pools for node in pool.nodes]
    return {
        "cluster": cluster.cluster.key,
        "provider": cluster.cluster.provider,
        "region": cluster.region,
        "error": error_part(cluster.error),
        "unknown": cluster.unknown,
        "pools": [_pool(pool) for pool in cluster.pools],
        "namespaces": namespace_parts(cluster),
        "waiting": [waiting_part(pod) for pod in cluster.waiting],
        "stuck": sorted(
            (part for pool, node in nodes for part in _stuck(pool, node)),
            key=lambda one: (one["namespace"], one["name"], one["node"]),
        ),
        "advice": advise_layouts(cluster),
    }


def _pool(pool: Pool) -> UsagePool:
    return {
        "name": pool.name,
        "pool": pool.pool,
        "group": pool.group,
        "owner": pool.owner,
        "instanceType": pool.instance_type,
        "capacity": pool.capacity,
        "nodes": len(pool.nodes),
        "starting": pool.starting,
        "gpus": round(sum(node.machine.gpus for node in pool.nodes if node.machine), 4),
        "stocks": add_priced(stock for node in pool.nodes for stock in _stocks(node)),
        **priced_part(pool),
    }


def _stocks(node: Node) -> Iterator[UsageStock]:
    everything = node.size
    for stock in node.stocks:
        size = stock.unit.weight / everything if everything else 0.0
        yield {
            **stock_part(stock),
            "price": {
                "held": usd_part(node, stock.held * size),
                "idle": usd_part(node, (stock.total - stock.held) * size),
            },
        }


def _stuck(pool: Pool, node: Node) -> Iterator[UsageStuck]:
    for pod in node.pods:
        if pod.trouble:
            yield {
                "namespace": pod.namespace,
                "name": pod.name,
                "claimOnly": pod.claim_only,
                "pool": pool.name,
                "node": node.name,
                "devices": dict(pod.devices),
                "trouble": pod.trouble,
            }
