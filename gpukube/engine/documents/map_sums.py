"""Sums of the map, computed from its parts, so that those of merged shards equal those of one run. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gpukube.engine.documents.shapes.map import MapCluster, MapStock, MapSum


def map_sum(clusters: Sequence[MapCluster]) -> MapSum:
    """Return the sums over clusters."""
    pools = [pool for cluster in clusters for pool in cluster["pools"]]
    nodes = [node for pool in pools for node in pool["nodes"]]
    waiting: dict[str, int] = {}
    for cluster in clusters:
        for pod in cluster["waiting"]:
            waiting = add_counts(waiting, pod["devices"])
    return {
        "clusters": len(clusters),
        "unread": sum(bool(cluster["error"] or cluster["unknown"]) for cluster in clusters),
        "nodes": len(nodes),
        "starting": sum(pool["starting"] for pool in pools),
        "gpus": round(sum(node["gpus"] or 0.0 for node in nodes), 4),
        "stocks": add_stocks(stock for pool in pools for stock in pool["stocks"]),
        "waiting": waiting,
    }


def add_stocks(stocks: Iterable[MapStock]) -> list[MapStock]:
    """Add up devices that are of one resource and one kind, in the order of their names."""
    found: dict[tuple[str, str, str], MapStock] = {}
    for stock in stocks:
        key = stock["resource"], stock["kind"], stock["profile"]
        if (known := found.get(key)) is None:
            found[key] = {**stock}
            continue
        add_devices(known, stock)
    return [found[key] for key in sorted(found)]


def add_devices(known: MapStock, stock: MapStock) -> None:
    """Add the devices of a stock to a known one of the same resource and kind."""
    known["perGpu"] = known["perGpu"] if known["perGpu"] == stock["perGpu"] else None
    known["total"] += stock["total"]
    known["held"] += stock["held"]
    known["free"] += stock["free"]
    known["unusable"] += stock["unusable"]
    known["unhealthy"] += stock["unhealthy"]
    known["notAdvertised"] += stock["notAdvertised"]
    known["heldUnhealthy"] += stock["heldUnhealthy"]


def add_counts(counts: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    """Add up counts, in the order of the names."""
    return {name: counts.get(name, 0) + more.get(name, 0) for name in sorted({**counts, **more})}
