"""Sums of the map, computed from its parts, so that those of merged shards equal those of one run. Pure.

Those of costs and namespaces are also usage's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gpukube.engine.documents.shapes.map import (
        HeldPart,
        MapCluster,
        MapStock,
        MapSum,
        NamespacePart,
    )
    from gpukube.engine.documents.shapes.prices import CostPart, UsdPart

_DIGITS: Final = 4


def map_sum(clusters: Sequence[MapCluster]) -> MapSum:
    """Return the sums over clusters."""
    pools = [pool for cluster in clusters for pool in cluster["pools"]]
    nodes = [node for pool in pools for node in pool["nodes"]]
    return {
        "clusters": len(clusters),
        "unread": sum(bool(cluster["error"] or cluster["unknown"]) for cluster in clusters),
        "nodes": len(nodes),
        "starting": sum(pool["starting"] for pool in pools),
        "gpus": rounded(node["gpus"] or 0.0 for node in nodes),
        "stocks": add_stocks(stock for pool in pools for stock in pool["stocks"]),
        "waiting": add_counts(*(pod["devices"] for cluster in clusters for pod in cluster["waiting"])),
        "cost": add_costs(pool["cost"] for pool in pools),
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


def add_counts(*counts: Mapping[str, int]) -> dict[str, int]:
    """Add up counts, in the order of the names."""
    total: dict[str, int] = {}
    for one in counts:
        for name, count in one.items():
            total[name] = total.get(name, 0) + count
    return dict(sorted(total.items()))


def add_held(parts: Iterable[HeldPart]) -> list[HeldPart]:
    """Add up devices that are of one resource and one kind, in the order of their names."""
    found: dict[tuple[str, str, str], HeldPart] = {}
    for part in parts:
        key = part["resource"], part["kind"], part["profile"]
        before = found[key]["count"] if key in found else 0
        found[key] = {**part, "count": before + part["count"]}
    return [found[key] for key in sorted(found)]


def add_costs(costs: Iterable[CostPart]) -> CostPart:
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
    return {"min": rounded(part["min"] for part in known), "max": rounded(part["max"] for part in known)}


def add_namespaces(spaces: Iterable[NamespacePart]) -> list[NamespacePart]:
    """Add up namespaces of the same name, in the order of the names."""
    found: dict[str, NamespacePart] = {}
    for space in spaces:
        if (known := found.get(space["namespace"])) is None:
            found[space["namespace"]] = {**space}
            continue
        known["held"] = add_held([*known["held"], *space["held"]])
        known["unpriced"] = add_held([*known["unpriced"], *space["unpriced"]])
        known["waiting"] = add_counts(known["waiting"], space["waiting"])
        known["pods"] += space["pods"]
        known["heldUsdPerHour"] = add_usd((known["heldUsdPerHour"], space["heldUsdPerHour"]))
    return [found[name] for name in sorted(found)]


def rounded(amounts: Iterable[float]) -> float:
    """Add up amounts, without the noise of binary fractions."""
    return round(sum(amounts), _DIGITS)
