"""Usage for people: what is held and free, by pool and namespace, what it costs, and who waits or is stuck."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.cli.rendering.lines import finding_lines, plural
from gpukube.cli.rendering.map import (
    COST_UNIT,
    NO_POOL,
    counts_words,
    held_price,
    held_words,
    read_time,
    stock_name,
    sum_lines,
    why_words,
)
from gpukube.cli.rendering.prices import hourly_words, source_notes, usd_range
from gpukube.cli.rendering.text import Hung, Table, Text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpukube.cli.rendering.text import Line
    from gpukube.cli.rendering.view import View
    from gpukube.engine.documents.shapes.map import MapWaiting, NamespacePart
    from gpukube.engine.documents.shapes.prices import CostPart, UsdPart
    from gpukube.engine.documents.shapes.usage import (
        UsageAdvice,
        UsageDocument,
        UsageGroup,
        UsageStuck,
    )

POOL_TITLES: Final = ("Pool", "Owner", "Devices", "Held", "Free", "Other", "Waits", "Held USD/h", "Idle USD/h")
SPACE_TITLES: Final = ("Namespace", "Pods", "Holds", "Waits", "Held USD/h")
_FEW: Final = 10
_NARROW: Final = 100


def render_usage(document: UsageDocument, view: View) -> Iterator[Line]:
    """Show sums, then pools, namespaces, and what needs attention."""
    yield Text(head_words(document), style="bold")
    yield from sum_lines(document["summary"])
    narrow = 0 < view.width < _NARROW
    for titles, rows in (
        (POOL_TITLES, [row for group in document["groups"] for row in pool_rows(group)]),
        (SPACE_TITLES, [space_row(space) for space in document["namespaces"]]),
    ):
        if rows:
            yield ""
            kept = [place for place, title in enumerate(titles) if not (narrow and title in ("Owner", "Other"))]
            table = Table([titles[place].upper() for place in kept], padding=1 if narrow else 2)
            for row in rows:
                table.add_row(*(row[place] for place in kept))
            yield table
    if len(document["owners"]) > 1:
        yield ""
        for owner in document["owners"]:
            yield Hung(Text(f"owner {owner['owner'] or '-'}: "), Text(owner_words(owner)))
    for cluster in document["clusters"]:
        key = cluster["cluster"]
        if cluster["error"]:
            yield from finding_lines(cluster["error"])
        elif cluster["unknown"]:
            yield Hung(Text(""), Text(f"{key}: nodes and pods unknown: {cluster['unknown']}", style="yellow"))
        yield from _some([stuck_words(key, pod) for pod in cluster["stuck"]], "stuck: ", "red", view)
        yield from _some([waiting_words(key, pod) for pod in cluster["waiting"]], "waits: ", "yellow", view)
        yield from (Hung(Text("layout: ", style="cyan"), Text(advice_words(key, one))) for one in cluster["advice"])
    for note in closing_notes(document):
        yield Hung(Text("note: ", style="dim"), Text(note, style="dim"))


def _some(lines: Sequence[str], prefix: str, style: str, view: View) -> Iterator[Line]:
    shown = lines if view.verbose or not view.width else lines[:_FEW]
    yield from (Hung(Text(prefix, style=style), Text(line)) for line in shown)
    if more := len(lines) - len(shown):
        yield Text(f"{prefix}and {more} more (-v shows all)", style="dim")


def head_words(document: UsageDocument) -> str:
    """Return what was read, and when."""
    total = document["summary"]
    where = f"{plural(total['nodes'], 'node')} of {plural(total['clusters'], 'cluster')}"
    return f"{plural(total['gpus'], 'GPU')} on {where}, {read_time(document)}"


def pool_rows(group: UsageGroup) -> Iterator[tuple[str, ...]]:
    """Yield a row for each kind of device of a group; see POOL_TITLES."""
    name = group["group"] or NO_POOL
    waits = counts_words(group["waiting"]) or "-"
    for place, stock in enumerate(group["stocks"]):
        other = stock["unusable"] + stock["unhealthy"] + stock["notAdvertised"]
        yield (
            "" if place else name,
            "" if place else group["owner"] or "-",
            stock_name(stock),
            str(stock["held"]),
            str(stock["free"]),
            str(other),
            "" if place else waits,
            _amount(stock["price"]["held"], group["cost"]),
            _amount(stock["price"]["idle"], group["cost"]),
        )
    if not group["stocks"]:
        yield (name, group["owner"] or "-", "-", "-", "-", "-", waits, "-", "-")


def _amount(part: UsdPart, cost: CostPart) -> str:
    """Return an amount, and that there are nodes which it leaves out."""
    parts = ((usd_range(part), "pricedNodes"), ("paid", "reservedNodes"), ("?", "unknownNodes"))
    return " + ".join(words for words, key in parts if cost[key])  # type: ignore[literal-required]  # one of its keys


def space_row(space: NamespacePart) -> tuple[str, ...]:
    """Return the cells of a namespace; see SPACE_TITLES."""
    waits = counts_words(space["waiting"]) or "-"
    return (space["namespace"], str(space["pods"]), held_words(space["held"]) or "-", waits, held_price(space))


def owner_words(owner: UsageGroup) -> str:
    """Return what the pools of an owner have."""
    counts = [f"{stock['held']} of {stock['total']} {stock_name(stock)} held" for stock in owner["stocks"]]
    return "; ".join([plural(owner["gpus"], "GPU"), *counts, hourly_words(owner["cost"], COST_UNIT)])


def stuck_words(cluster: str, pod: UsageStuck) -> str:
    """Return a pod that holds devices and does not use them."""
    what = "claim " if pod["claimOnly"] else ""
    where = f"{cluster}/{pod['pool']}" if pod["pool"] else cluster
    return f"{what}{pod['namespace']}/{pod['name']} holds {counts_words(pod['devices'])} on {where}: {pod['trouble']}"


def waiting_words(cluster: str, pod: MapWaiting) -> str:
    """Return a pod that waits for devices."""
    why = f": {why}" if (why := why_words(pod)) else ""
    return f"{pod['namespace']}/{pod['name']} for {counts_words(pod['devices'])} on {cluster}{why}"


def advice_words(cluster: str, advice: UsageAdvice) -> str:
    """Return the layout that would let waiting pods run."""
    missing = ", ".join(f"{count} x {profile}" for profile, count in advice["instances"].items())
    layouts = "; ".join(
        f"{plural(layout['gpus'], 'GPU')} as {_instances(layout['instances'])}" for layout in advice["layouts"]
    )
    rooms = ", ".join(f"{room['pool'] or NO_POOL} has {room['gpus']}" for room in advice["rooms"])
    room = f"nobody holds: {rooms}" if rooms else "no GPU of that model is free"
    end = "; that is too few" if rooms and not advice["enough"] else ""
    return f"{cluster}: pods lack {missing} on {advice['model']}: {layouts} would do; {room}{end}"


def _instances(names: Sequence[str]) -> str:
    counts = {name: names.count(name) for name in dict.fromkeys(names)}
    return " + ".join(f"{count} x {name}" if count > 1 else name for name, count in counts.items())


def closing_notes(document: UsageDocument) -> Iterator[str]:
    """Return what to know of the numbers."""
    if any(cluster["advice"] for cluster in document["clusters"]):
        yield "a layout is set in the spec of a pool (sharing.mig), for all of its GPUs; nothing was changed"
    yield from document["notes"]
    yield from source_notes([pool for cluster in document["clusters"] for pool in cluster["pools"] if pool["nodes"]])
