"""Prices in words, the same on the terminal and in Markdown: `?` is unknown, `~` another region's price."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from gpukube.cli.rendering.lines import plural, short
from gpukube.cli.rendering.text import Hung, Text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpukube.cli.rendering.text import Line
    from gpukube.engine.documents.shapes.prices import (
        CostPart,
        FitPricePart,
        PoolPricePart,
        PricedPart,
        PriceSum,
        UsdPart,
    )

_CENTS: Final = 0.1
"""Amount below which two significant digits are shown instead of cents."""


def usd(amount: float) -> str:
    """Format an amount without needless digits."""
    if not amount:
        return "0"
    return f"{amount:,.2f}" if amount >= _CENTS else f"{amount:.2g}"


def usd_range(part: UsdPart | None, mark: str = "") -> str:
    """Format an amount, or a range.

    Args:
        part: The range; None if unknown.
        mark: Prefix of each amount except zero.
    """
    if part is None:
        return "?"
    low, high = (f"{mark if amount else ''}{usd(amount)}" for amount in (part["min"], part["max"]))
    return low if low == high else f"{low} to {high}"


def price_change(price: PoolPricePart | FitPricePart | None) -> str:
    """Return what a pool costs now and after, for a table cell: `0 -> 43.92`."""
    if price is None:
        return "-"
    if "ifTried" in price and not any((price["usdPerHour"]["after"] or {}).values()):
        return f"0, or {tried_price(cast('PoolPricePart', price))}"
    mark = "~" if price["rough"] else ""
    was, will = (usd_range(part, mark) for part in (price["usdPerHour"]["before"], price["usdPerHour"]["after"]))
    return will if was == will else f"{was} -> {will}"


def tried_price(price: PoolPricePart) -> str:
    """Return what an alternative costs if it gets the nodes."""
    return usd_range(price.get("ifTried"), "~" if price["rough"] else "")


def price_words(price: PoolPricePart) -> str:
    """Return what a pool and each of its GPUs cost, and the source of the price."""
    mark = "~" if price["rough"] else ""
    tried = f"{tried_price(price)} USD/h if it gets the nodes" if "ifTried" in price else ""
    words = [tried or f"{price_change(price)} USD/h"]
    if price["perGpuHour"] and price["perGpuHour"] != price["usdPerHour"]["after"]:
        words.append(f"{usd_range(price['perGpuHour'], mark)} per GPU")
    if price["perDevice"] and price["perDevice"] != price["perGpuHour"]:
        words.append(f"{usd_range(price['perDevice'], mark)} per {short(price['device'])} device")
    if price["whileBothRun"]:
        words.append(f"{usd_range(price['whileBothRun'], mark)} while both run with --replace surge")
    source = _source(price)
    unknown = f": {price['unknown']}" if price["unknown"] else ""
    return ", ".join(words) + (f" ({source})" if source else "") + unknown


def fit_price_words(price: FitPricePart) -> str:
    """Return what a pool used by the workloads costs, and the source of the price."""
    mark = "~" if price["rough"] else ""
    each = f", {usd_range(price['perNode'], mark)} per node" if price["perNode"] else ""
    source = f" ({_source(price)})" if price["source"] else ""
    unknown = f": {price['unknown']}" if price["unknown"] else ""
    return f"{price_change(price)} USD/h{each}{source}{unknown}"


def _source(price: PoolPricePart | FitPricePart) -> str:
    if not price["source"]:
        return ""
    spot = "spot, " if price["spot"] else ""
    place = f"price of {price['place']}" if price["rough"] else price["place"]
    return f"{spot}{place}, {'now' if price['source'] == 'live' else price['asOf']}"


def price_line(total: PriceSum) -> str:
    """Return the totals; with unknown prices they are lower bounds, and none if no price is known."""
    mark = "~" if total["rough"] else ""
    unknown = total["unknown"]
    was = _bounded(total["usdPerHour"]["before"], mark, unknown["before"])
    will = _bounded(total["usdPerHour"]["after"], mark, unknown["after"])
    pools = max(unknown["before"], unknown["after"])
    if was == will == "?":
        return f"price: unknown for {plural(pools, 'pool')}"
    words = f"price: {was} now, {will} USD/h after"
    if pools:
        words += f", and ? for {plural(pools, 'pool')}"
    *others, last = total["leavesOut"]
    return f"{words}; without {', '.join(others)} and {last}"


def hourly_words(cost: CostPart, name: str, mark: str = "") -> str:
    """Return what nodes cost, with those that are in no sum: `USD/h: 27.20 held, 0 idle`.

    Args:
        cost: What they cost.
        name: Unit of the amounts.
        mark: Prefix of each amount except zero.
    """
    unpriced = [
        f"{plural(count, 'node')} {words}"
        for count, words in (
            (cost["reservedNodes"], "reserved: paid, without a list price"),
            (cost["unknownNodes"], "of unknown price"),
        )
        if count
    ]
    known = f"{name}: {usd_range(cost['held'], mark)} held, {usd_range(cost['idle'], mark)} idle"
    return "; ".join([*([known] if cost["pricedNodes"] or not unpriced else []), *unpriced])


def source_notes(pools: Sequence[PricedPart]) -> Iterator[str]:
    """Return what to know of the prices of pools."""
    if any(pool["rough"] for pool in pools):
        yield "some prices are those of another region; pool usage --live-prices reads the clouds'"
    yield from dict.fromkeys(pool["noPrice"] for pool in pools if pool["noPrice"])
    days = sorted({pool["asOf"] for pool in pools if pool["asOf"]})
    dates = f" of {days[0]}" + (f" to {days[-1]}" if len(days) > 1 else "") if days else ""
    yield f"list prices of machines{dates}, not a bill"


def price_notes(total: PriceSum) -> Iterator[Line]:
    """Show which prices could not be read."""
    for note in total["notes"]:
        yield Hung(Text("note: "), Text(note))


def _bounded(part: UsdPart, mark: str, unknown: int) -> str:
    if unknown and not part["max"]:
        return "?"
    return f"{'>= ' if unknown else ''}{usd_range(part, mark)}"
