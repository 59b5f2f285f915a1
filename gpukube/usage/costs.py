"""What nodes cost, and what each namespace holds of them: the parts of documents that map and usage share. Pure.

A node's price is divided by the sizes of its devices: what pods hold is their part, and everything else is idle. A MIG
instance has the size of its memory, a share its part of the GPU. Prices that are unknown are in no sum, and counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.engine.documents.map_sums import add_costs, add_counts, add_namespaces
from gpukube.usage.world import WHOLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.engine.documents.shapes.map import HeldPart, NamespacePart
    from gpukube.engine.documents.shapes.prices import CostPart, PricedPart, UsdPart
    from gpukube.usage.world import Cluster, Node, Pool, Waiting

_DIGITS: Final = 6


def usd_part(node: Node, part: float) -> UsdPart:
    """Return a part of a node's price; zero if it is unknown, which is counted elsewhere."""
    usd = node.price.usd
    return {
        "min": round(usd.least * part, _DIGITS) if usd else 0.0,
        "max": round(usd.most * part, _DIGITS) if usd else 0.0,
    }


def held_by(node: Node) -> dict[str, dict[str, int]]:
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


def priced_part(pool: Pool) -> PricedPart:
    """Return what the nodes of a pool cost."""
    prices = [node.price for node in pool.nodes] or [pool.price]
    return {
        "cost": add_costs(_cost(node, reserved=pool.capacity == "reserved") for node in pool.nodes),
        "rough": any(price.rough for price in prices),
        "asOf": min((price.as_of for price in prices if price.as_of), default=""),
        "noPrice": next((price.unknown for price in prices if price.usd is None), ""),
    }


def namespace_parts(cluster: Cluster) -> list[NamespacePart]:
    """Return what the namespaces of a cluster hold and wait for, by name."""
    held = (part for pool in cluster.pools for node in pool.nodes for part in _holders(node))
    return add_namespaces([*held, *map(_waiter, cluster.waiting)])


def _cost(node: Node, *, reserved: bool) -> CostPart:
    known = node.price.usd is not None
    return {
        "held": usd_part(node, node.held_share),
        "idle": usd_part(node, 1 - node.held_share),
        "pricedNodes": int(known),
        "reservedNodes": int(not known and reserved),
        "unknownNodes": int(not known and not reserved),
    }


def _holders(node: Node) -> Iterator[NamespacePart]:
    units = {stock.resource: stock.unit for stock in node.stocks}
    for namespace, counts in held_by(node).items():
        held: list[HeldPart] = [
            {"resource": name, "kind": unit.kind, "profile": unit.profile, "count": count}
            for name, count in counts.items()
            for unit in (units.get(name, WHOLE),)
        ]
        size = sum(count * units[name].weight for name, count in counts.items() if name in units)
        yield {
            "namespace": namespace,
            "held": held,
            "unpriced": [] if node.price.usd is not None else held,
            "waiting": {},
            "pods": sum(pod.namespace == namespace for pod in node.pods),
            "heldUsdPerHour": usd_part(node, size / node.size if node.size else 0.0),
        }


def _waiter(pod: Waiting) -> NamespacePart:
    return {
        "namespace": pod.namespace,
        "held": [],
        "unpriced": [],
        "waiting": dict(pod.devices),
        "pods": 0,
        "heldUsdPerHour": {"min": 0.0, "max": 0.0},
    }
