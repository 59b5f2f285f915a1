"""Sums of usage, computed from the parts of clusters, so that those of merged shards equal those of one run. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.engine.documents.map_sums import add_costs, add_counts, add_devices, add_namespaces, add_usd, rounded

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gpukube.engine.documents.shapes.map import MapWaiting, NamespacePart
    from gpukube.engine.documents.shapes.usage import (
        UsageCluster,
        UsageGroup,
        UsagePool,
        UsageStock,
        UsageSum,
    )


def usage_sums(
    clusters: Sequence[UsageCluster],
) -> tuple[UsageSum, list[UsageGroup], list[UsageGroup], list[NamespacePart]]:
    """Return the sums over clusters: of all, by pool, by owner, and by namespace."""
    pools = [(cluster, pool) for cluster in clusters for pool in cluster["pools"]]
    total: UsageSum = {
        "clusters": len(clusters),
        "unread": sum(bool(cluster["error"] or cluster["unknown"]) for cluster in clusters),
        "nodes": sum(pool["nodes"] for _, pool in pools),
        "starting": sum(pool["starting"] for _, pool in pools),
        "gpus": rounded(pool["gpus"] for _, pool in pools),
        "stocks": add_priced(stock for _, pool in pools for stock in pool["stocks"]),
        "waiting": add_counts(*(pod["devices"] for cluster in clusters for pod in cluster["waiting"])),
        "stuck": sum(len(cluster["stuck"]) for cluster in clusters),
        "cost": add_costs(pool["cost"] for _, pool in pools),
    }
    groups: dict[tuple[str, str], list[tuple[UsageCluster, UsagePool]]] = {}
    owners: dict[str, list[tuple[UsageCluster, UsagePool]]] = {}
    for cluster, pool in pools:
        groups.setdefault((pool["owner"], pool["group"]), []).append((cluster, pool))
        owners.setdefault(pool["owner"], []).append((cluster, pool))
    return (
        total,
        [_group(owner, name, groups[owner, name]) for owner, name in sorted(groups)],
        [_group(owner, "", owners[owner]) for owner in sorted(owners)],
        add_namespaces(space for cluster in clusters for space in cluster["namespaces"]),
    )


def _group(owner: str, name: str, pools: Sequence[tuple[UsageCluster, UsagePool]]) -> UsageGroup:
    waiting: list[MapWaiting] = []
    keys = {id(cluster): cluster for cluster, _ in pools}
    for cluster in keys.values():
        names = {one for its, pool in pools if its is cluster for one in (pool["name"], pool["pool"], pool["group"])}
        waiting += [pod for pod in cluster["waiting"] if pod["pool"] and pod["pool"] in names]
    return {
        "owner": owner,
        "group": name,
        "clusters": [cluster["cluster"] for cluster in keys.values()],
        "nodes": sum(pool["nodes"] for _, pool in pools),
        "gpus": rounded(pool["gpus"] for _, pool in pools),
        "stocks": add_priced(stock for _, pool in pools for stock in pool["stocks"]),
        "waiting": add_counts(*(pod["devices"] for pod in waiting)),
        "cost": add_costs(pool["cost"] for _, pool in pools),
    }


def add_priced(stocks: Iterable[UsageStock]) -> list[UsageStock]:
    """Add up devices that are of one resource and one kind, and their prices."""
    found: dict[tuple[str, str, str], UsageStock] = {}
    for stock in stocks:
        key = stock["resource"], stock["kind"], stock["profile"]
        if (known := found.get(key)) is None:
            found[key] = {**stock}
            continue
        add_devices(known, stock)
        known["price"] = {
            "held": add_usd((known["price"]["held"], stock["price"]["held"])),
            "idle": add_usd((known["price"]["idle"], stock["price"]["idle"])),
        }
    return [found[key] for key in sorted(found)]
