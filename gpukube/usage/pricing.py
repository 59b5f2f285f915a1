"""Adds prices to the nodes of a world. Pure.

Machines that were reserved are paid whether they run pods or not, and have no list price: their price is unknown here,
and the reason names it. Nodes of no pool have no known purchase, so no price.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gpukube.core.prices import NodePrice, Side

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.core.prices import PriceBook
    from gpukube.core.values import ClusterRef
    from gpukube.gpu.machine import Machine
    from gpukube.usage.world import Cluster, Node, Pool, World

_NO_POOL: Final = NodePrice(unknown="the node is in no pool, so it is unknown how it is bought")


def sides(world: World) -> Iterator[tuple[ClusterRef, str, Side]]:
    """Yield each machine of a pool in its region, with how it is bought."""
    for cluster in world.clusters:
        for pool in cluster.pools:
            found = dict.fromkeys((node.machine, node.zone) for node in pool.nodes)
            if pool.name:
                for machine, zone in found or {(pool.machine, ""): None}:
                    yield cluster.cluster, cluster.region, _side(pool, machine, zone)


def with_prices(world: World, book: PriceBook) -> World:
    """Return the world with the price of each node.

    Args:
        world: Clusters as they were read.
        book: Known prices.
    """
    clusters = tuple(
        replace(cluster, pools=tuple(_priced(pool, cluster, book) for pool in cluster.pools))
        for cluster in world.clusters
    )
    return replace(world, clusters=clusters, notes=(*world.notes, *book.notes))


def _priced(pool: Pool, cluster: Cluster, book: PriceBook) -> Pool:
    if not pool.name:
        return replace(pool, nodes=tuple(replace(node, price=_NO_POOL) for node in pool.nodes))
    known: dict[tuple[str, str], NodePrice] = {}  # nodes of a pool differ in zone and machine, if at all

    def price(node: Node) -> NodePrice:
        key = node.machine.name if node.machine else "", node.zone
        if key not in known:
            known[key] = _side(pool, node.machine, node.zone).node(book, cluster.region)
        return known[key]

    nodes = tuple(replace(node, price=price(node)) for node in pool.nodes)
    return replace(pool, nodes=nodes, price=_side(pool, pool.machine, "").node(book, cluster.region))


def _side(pool: Pool, machine: Machine | None, zone: str) -> Side:
    return Side(machine, pool.instance_type, pool.capacity, (zone,) if zone else (), pool.node_count, pool.node_count)
