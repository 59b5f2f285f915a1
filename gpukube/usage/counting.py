"""The document of `pool usage`: counts and prices of clusters. Pure.

A node's price is divided by the sizes of its devices: what pods hold is their part, and everything else is idle. A MIG
instance has the size of its memory, a share its part of the GPU. Prices that are unknown are in no sum, and counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.engine.documents.map_sums import add_counts
from gpukube.engine.documents.parts import error_part
from gpukube.engine.documents.usage_sums import add_costs, add_namespaces, add_priced, usage_sums
from gpukube.usage.advising import advise_layouts
from gpukube.usage.documents import stock_part, time_text, waiting_part

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpukube.engine.documents.shapes.prices import UsdPart
    from gpukube.engine.documents.shapes.usage import (
        UsageCluster,
        UsageCost,
        UsageDocument,
        UsageNamespace,
        UsagePool,
        UsageStock,
        UsageStuck,
    )
    from gpukube.usage.world import Cluster, Node, Pool, World

_DIGITS: Final = 6


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


def held_by_namespace(node: Node) -> dict[str, dict[str, int]]:
    """Return the devices that each namespace holds on a node; those that several pods of it share count once."""
    named = {device.resource for device in node.devices}
    found: dict[str, dict[str, int]] = {}
    for pod in node.pods:
        counted = {name: count for name, count in pod.devices.items() if name not in named}
        found[pod.namespace] = add_counts(found.get(pod.namespace, {}), counted)
    for device in node.devices:
        for namespace in {holder.namespace for holder in device.holders}:
            found[namespace] = add_counts(found.get(namespace, {}), {device.resource: 1})
    return {name: counts for name, counts in sorted(found.items()) if counts}


def _cluster(cluster: Cluster) -> UsageCluster:
    nodes = [(pool, node) for pool in cluster.pools for node in pool.nodes]
    waits: list[UsageNamespace] = [
        _namespace(pod.namespace, {}, waiting=pod.devices) for pod in cluster.waiting
    ]  # fmt: skip
    return {
        "cluster": cluster.cluster.key,
        "provider": cluster.cluster.provider,
        "region": cluster.region,
        "error": error_part(cluster.error),
        "unknown": cluster.unknown,
        "pools": [_pool(pool) for pool in cluster.pools],
        "namespaces": add_namespaces([*(space for _, node in nodes for space in _namespaces(node)), *waits]),
        "waiting": [waiting_part(pod) for pod in cluster.waiting],
        "stuck": sorted(
            (part for pool, node in nodes for part in _stuck(pool, node)),
            key=lambda one: (one["namespace"], one["name"], one["node"]),
        ),
        "advice": advise_layouts(cluster),
    }


def _pool(pool: Pool) -> UsagePool:
    prices = [node.price for node in pool.nodes] or [pool.price]
    unknown = next((price.unknown for price in prices if price.usd is None), "")
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
        "cost": add_costs(_cost(node, reserved=pool.capacity == "reserved") for node in pool.nodes),
        "rough": any(price.rough for price in prices),
        "asOf": min((price.as_of for price in prices if price.as_of), default=""),
        "unknown": unknown,
    }


def _stocks(node: Node) -> Iterator[UsageStock]:
    everything = node.size
    for stock in node.stocks:
        size = stock.unit.weight / everything if everything else 0.0
        yield {
            **stock_part(stock),
            "price": {
                "held": _usd(node, stock.held * size),
                "idle": _usd(node, (stock.total - stock.held) * size),
            },
        }


def _cost(node: Node, *, reserved: bool) -> UsageCost:
    known = node.price.usd is not None
    return {
        "held": _usd(node, node.held_share),
        "idle": _usd(node, 1 - node.held_share),
        "pricedNodes": int(known),
        "reservedNodes": int(not known and reserved),
        "unknownNodes": int(not known and not reserved),
    }


def _usd(node: Node, part: float) -> UsdPart:
    """Return a part of a node's price; zero if it is unknown, which is counted elsewhere."""
    usd = node.price.usd
    return {
        "min": round(usd.least * part, _DIGITS) if usd else 0.0,
        "max": round(usd.most * part, _DIGITS) if usd else 0.0,
    }


def _namespaces(node: Node) -> Iterator[UsageNamespace]:
    weights = {stock.resource: stock.unit.weight for stock in node.stocks}
    for namespace, held in held_by_namespace(node).items():
        size = sum(count * weights.get(name, 0.0) for name, count in held.items())
        part = _namespace(namespace, held)
        part["pods"] = sum(pod.namespace == namespace for pod in node.pods)
        part["unpriced"] = {} if node.price.usd is not None else dict(held)
        part["heldUsdPerHour"] = _usd(node, size / node.size if node.size else 0.0)
        yield part


def _namespace(name: str, held: Mapping[str, int], waiting: Mapping[str, int] = {}) -> UsageNamespace:
    return {
        "namespace": name,
        "held": dict(held),
        "unpriced": {},
        "waiting": dict(waiting),
        "pods": 0,
        "heldUsdPerHour": {"min": 0.0, "max": 0.0},
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
