"""Hourly prices of pools as document parts. Pure; gpukube.core.prices chooses the price that applies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gpukube.core.prices import HOURS_PER_MONTH, NOTHING, Usd, after, before

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gpukube.core.prices import NodePrice, PriceBook, Side
    from gpukube.core.values import Desired, PoolPlan
    from gpukube.engine.documents.shapes.prices import FitPricePart, PoolPricePart, PriceSum, UsdPart
    from gpukube.workload.offers import PoolOffer

LEFT_OUT: Final = ("disks", "network", "control planes", "taxes", "discounts")
"""What no price here includes."""


class Prices(NamedTuple):
    """Prices of a pool; None is unknown."""

    before: Usd | None
    after: Usd | None
    rough: bool


def price_part(plan: PoolPlan, region: str, book: PriceBook) -> PoolPricePart | None:
    """Return what a pool costs before and after; None for a pool of another owner.

    Args:
        plan: Plan of the pool.
        region: Region of its cluster.
        book: Prices.
    """
    if plan.action == "conflict":
        return None
    there, desired = before(plan), after(plan)
    sides = [*there, *([desired] if desired else [])]
    nodes = [side.node(book, region) for side in sides]
    totals = [side.total(node) for side, node in zip(sides, nodes, strict=True)]
    was = _all_of(totals[: len(there)])
    stands_by = plan.action == "standby"  # what it costs now, and goes on to cost, are only live nodes
    will = was if stands_by else totals[-1] if desired else NOTHING
    shown, machine = nodes[-1], sides[-1].machine
    device, per_device = _device(plan.desired, shown)
    part: PoolPricePart = {
        "usdPerHour": {"before": usd_part(was), "after": usd_part(will)},
        "whileBothRun": usd_part(_all_of([totals[0], will])) if _surges(plan) else None,
        "perNode": usd_part(shown.usd),
        "perGpuHour": usd_part(shown.usd.per(machine.gpus) if shown.usd and machine else None),
        "perDevice": usd_part(per_device),
        "device": device,
        "spot": shown.spot,
        "source": shown.source,
        "asOf": shown.as_of,
        "place": shown.place,
        "rough": any(node.rough for node in nodes),
        "unknown": _unknown(sides, nodes),
    }
    if stands_by:
        part["ifTried"] = usd_part(totals[-1])
    return part


def price_sum(parts: Iterable[PoolPricePart | FitPricePart | None], book: PriceBook, *, unplanned: int = 0) -> PriceSum:
    """Add up the prices of pools.

    Args:
        parts: Prices of the pools; None for pools of other owners, which are skipped.
        book: Source of the prices.
        unplanned: Number of pools on clusters that could not be read.
    """
    known = [part for part in parts if part is not None]
    found = [
        Prices(_usd(part["usdPerHour"]["before"]), _usd(part["usdPerHour"]["after"]), part["rough"]) for part in known
    ]
    return add_prices([*found, *[Prices(None, None, rough=False)] * unplanned], book.notes)


def add_prices(found: Sequence[Prices], notes: Sequence[str]) -> PriceSum:
    """Add up the known prices, and count the unknown ones."""
    was, will = _total(price.before for price in found), _total(price.after for price in found)
    return {
        "usdPerHour": {"before": _part(was), "after": _part(will)},
        "usdPerMonth": {"before": _monthly(was), "after": _monthly(will)},
        "unknown": {
            "before": sum(price.before is None for price in found),
            "after": sum(price.after is None for price in found),
        },
        "rough": any(price.rough for price in found),
        "leavesOut": list(LEFT_OUT),
        "notes": list(notes),
    }


def fit_price(cluster: str, offer: PoolOffer, up: int, needed: int) -> FitPricePart:
    """Return what a pool that runs workloads costs.

    Args:
        cluster: Key of its cluster.
        offer: The pool.
        up: Nodes that are up.
        needed: Nodes that it needs in the end.
    """
    node = offer.price

    def total(count: int) -> Usd | None:
        return node.usd.of(count, count) if node.usd else None if count else NOTHING

    return {
        "cluster": cluster,
        "pool": offer.desired.target.pool,
        "nodes": {"before": up, "after": needed},
        "usdPerHour": {"before": usd_part(total(up)), "after": usd_part(total(needed))},
        "perNode": usd_part(node.usd),
        "spot": node.spot,
        "source": node.source,
        "asOf": node.as_of,
        "place": node.place,
        "rough": node.rough,
        "unknown": node.unknown,
    }


def usd_part(usd: Usd | None) -> UsdPart | None:
    """Return an amount as a document part; None if unknown."""
    return None if usd is None else _part(usd)


def _part(usd: Usd) -> UsdPart:
    return {"min": usd.least, "max": usd.most}


def _usd(part: UsdPart | None) -> Usd | None:
    return None if part is None else Usd(part["min"], part["max"])


def _total(prices: Iterable[Usd | None]) -> Usd:
    return sum((price for price in prices if price is not None), start=NOTHING)


def _monthly(usd: Usd) -> UsdPart:
    return {"min": round(usd.least * HOURS_PER_MONTH, 2), "max": round(usd.most * HOURS_PER_MONTH, 2)}


def _all_of(prices: Sequence[Usd | None]) -> Usd | None:
    """Add up prices; None if one of them is unknown."""
    return None if None in prices else _total(prices)


def _surges(plan: PoolPlan) -> bool:
    """Return whether a second pool can replace the live one, or is about to."""
    return plan.action == "replace" and plan.replacement is not None and not plan.replacement.obstacles


def _device(desired: Desired | None, node: NodePrice) -> tuple[str, Usd | None]:
    """Return the only kind of device that nodes should advertise, and its price."""
    promised = dict(desired.promise.per_node) if desired and desired.managed else {}
    if node.usd is None or len(promised) != 1:
        return "", None
    ((name, count),) = promised.items()
    return (name, node.usd.per(count)) if count else ("", None)


def _unknown(sides: Sequence[Side], nodes: Sequence[NodePrice]) -> str:
    """Return why a price is unknown, checking the declared state before the live one."""
    for side, node in reversed(list(zip(sides, nodes, strict=True))):
        if side.total(node) is None:
            return node.unknown or "the number of nodes is unknown"
    return ""
