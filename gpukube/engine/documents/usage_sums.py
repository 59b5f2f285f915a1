"""Sums of usage, computed from the parts of clusters, so that those of merged shards equal those of one run. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.engine.documents.map_sums import add_counts, add_devices

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gpukube.engine.documents.shapes.prices import UsdPart
    from gpukube.engine.documents.shapes.usage import (
        UsageCluster,
        UsageCost,
        UsageGroup,
        UsageNamespace,
        UsagePool,
        UsageStock,
        UsageSum,
    )

_DIGITS: Final = 4


def usage_sums(
    clusters: Sequence[UsageCluster],
) -> tuple[UsageSum, list[UsageGroup], list[UsageGroup], list[UsageNamespace]]:
    """Return the sums over clusters: of all, by pool, by owner, and by namespace."""
    pools = [(cluster, pool) for cluster in clusters for pool in cluster["pools"]]
    waiting: dict[str, int] = {}
    for cluster in clusters:
        for pod in cluster["waiting"]:
            waiting = add_counts(waiting, pod["devices"])
    total: UsageSum = {
        "clusters": len(clusters),
        "unread": sum(bool(cluster["error"] or cluster["unknown"]) for cluster in clusters),
        "nodes": sum(pool["nodes"] for _, pool in pools),
        "starting": sum(pool["starting"] for _, pool in pools),
        "gpus": _rounded(pool["gpus"] for _, pool in pools),
        "stocks": add_priced(stock for _, pool in pools for stock in pool["stocks"]),
        "waiting": waiting,
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
    waiting: dict[str, int] = {}
    keys = {id(cluster): cluster for cluster, _ in pools}
    for cluster in keys.values():
        names = {one for its, pool in pools if its is cluster for one in (pool["name"], pool["pool"], pool["group"])}
        for pod in cluster["waiting"]:
            if pod["pool"] and pod["pool"] in names:
                waiting = add_counts(waiting, pod["devices"])
    return {
        "owner": owner,
        "group": name,
        "clusters": [cluster["cluster"] for cluster in keys.values()],
        "nodes": sum(pool["nodes"] for _, pool in pools),
        "gpus": _rounded(pool["gpus"] for _, pool in pools),
        "stocks": add_priced(stock for _, pool in pools for stock in pool["stocks"]),
        "waiting": waiting,
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


def add_costs(costs: Iterable[UsageCost]) -> UsageCost:
    """Add up what nodes cost."""
    known = list(costs)
    return {
        "held": add_usd(cost["held"] for cost in known),
        "idle": add_usd(cost["idle"] for cost in known),
        "pricedNodes": sum(cost["pricedNodes"] for cost in known),
        "reservedNodes": sum(cost["reservedNodes"] for cost in known),
        "unknownNodes": sum(cost["unknownNodes"] for cost in known),
    }


def add_usd(parts: Iterable[UsdPart]) -> UsdPart:
    """Add up amounts."""
    known = list(parts)
    return {"min": _rounded(part["min"] for part in known), "max": _rounded(part["max"] for part in known)}


def add_namespaces(spaces: Iterable[UsageNamespace]) -> list[UsageNamespace]:
    """Add up namespaces of the same name, in the order of the names."""
    found: dict[str, UsageNamespace] = {}
    for space in spaces:
        if (known := found.get(space["namespace"])) is None:
            found[space["namespace"]] = {**space}
            continue
        known["held"] = add_counts(known["held"], space["held"])
        known["unpriced"] = add_counts(known["unpriced"], space["unpriced"])
        known["waiting"] = add_counts(known["waiting"], space["waiting"])
        known["pods"] += space["pods"]
        known["heldUsdPerHour"] = add_usd((known["heldUsdPerHour"], space["heldUsdPerHour"]))
    return [found[name] for name in sorted(found)]


def _rounded(amounts: Iterable[float]) -> float:
    return round(sum(amounts), _DIGITS)
