"""Ways to get machines for people: one table over the clouds, two lines per way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.cli.rendering.lines import number, plural
from gpukube.cli.rendering.prices import usd
from gpukube.cli.rendering.text import Hung, Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gpukube.cli.rendering.text import Line
    from gpukube.cli.rendering.view import View
    from gpukube.engine.documents.shapes.capacity import (
        CapacityDocument,
        CapacityQuotaPart,
        CapacitySourcePart,
        CapacityWayPart,
    )

TITLES: Final = ("Known", "Way", "Where", "USD/h", "Per GPU", "Quota")
_SHOWN: Final = 20
_STYLES: Final = {"free": "green", "offered": "green", "likely": "green", "unlikely": "yellow", "none": "red"}


def render_capacity(document: CapacityDocument, view: View) -> Iterator[Line]:
    """Show the ways, the best first, then what could not be read."""
    yield Text(asked_words(document), style="bold")
    rows = merged(document["ways"])
    shown = rows if view.verbose else rows[:_SHOWN]
    titles = tuple(title.upper() for title in TITLES)
    cells = [titles, *(capacity_cells(ways) for ways in shown)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    yield Text(_row(titles, widths))
    for ways, row in zip(shown, cells[1:], strict=True):
        yield Text(_row(row, widths), style=_STYLES.get(ways[0]["known"], ""))
        yield Hung(Text("  "), Text(way_words(ways[0], live=document["live"]), style="dim"))
        if ways[0]["buy"]:
            yield Hung(Text("  buy: "), Text(ways[0]["buy"]))
        yield from (Hung(Text("  quota: "), Text(text, style="yellow")) for text in _short(ways[0]["quotas"], view))
    if more := len(rows) - len(shown):
        yield Hung(Text(""), Text(f"and {plural(more, 'more way')} (-v shows all)", style="dim"))
    if not rows:
        yield Text("no place sells these machines")
    yield from (Hung(Text("note: "), Text(note)) for note in document["notes"])
    yield from (Hung(Text(prefix), Text(text)) for prefix, text in source_lines(document["sources"]))
    yield from (Hung(Text(""), Text(text, style="dim")) for text in closing_lines(document))


def asked_words(document: CapacityDocument) -> str:
    """Return the query in words."""
    asked = document["asked"]
    time = "" if asked["seconds"] is None else f", for {_time(asked['seconds'])}"
    gpus = f"{number(asked['gpu']['count'])} x {asked['gpu']['model']}"
    return f"{plural(asked['nodes'], 'node')} with {gpus}{time}"


def merged(ways: Sequence[CapacityWayPart]) -> list[list[CapacityWayPart]]:
    """Group ways that differ in nothing but the zone, in the order of the first."""
    found: dict[str, list[CapacityWayPart]] = {}
    for way in ways:
        found.setdefault(repr({**way, "zone": ""}), []).append(way)
    return list(found.values())


def capacity_cells(ways: Sequence[CapacityWayPart]) -> tuple[str, ...]:
    """Return the cells of one row of the table; see TITLES."""
    way = ways[0]
    price = way["price"]
    mark = "~" if price["rough"] else ""
    known = f"free {way['free']}" if way["free"] is not None else way["known"]
    return (
        known,
        way["kind"],
        _where(ways),
        _usd(price["usdPerHour"], mark),
        _usd(price["usdPerGpuHour"], mark),
        _quota(way),
    )


def way_words(way: CapacityWayPart, *, live: bool = True) -> str:
    """Return the machine, the cloud's own words, and what must be known of a way."""
    time = [f"from {way['start']}"] if way["start"] else []
    time += [f"until {way['end']}"] if way["end"] else []
    name = way["instanceType"] + (f" {way['id']}" if way["id"] and not way["buy"] else "")
    parts = [part for part in (way["words"], " ".join(time), way["why"] if live else "", way["note"]) if part]
    return f"{name}: {'; '.join(parts)}" if parts else name


def source_lines(sources: Iterable[CapacitySourcePart]) -> Iterator[tuple[str, str]]:
    """Return the sources that did not answer, each as a prefix and a text; failures first."""
    ordered = sorted(sources, key=lambda source: source["state"] != "failed")
    for source in ordered:
        if source["state"] == "ok":
            continue
        prefix = "not asked: " if source["state"] == "not asked" else "failed: "
        code = f" [{source['code']}]" if source["code"] else ""
        where = f" ({', '.join(source['places'])})" if source["state"] == "failed" else ""
        yield prefix, f"{source['source']}{where}{code}: {source['text']}"


def closing_lines(document: CapacityDocument) -> Iterator[str]:
    """Return what follows from the table."""
    if not document["live"]:
        yield "catalog prices only; stock, reservations, and quotas are not asked: add --live"
    if any(way["price"]["rough"] for way in document["ways"]):
        yield "~: price of another region"
    if any(way["quotas"] for way in document["ways"]):
        yield "quota: needed + used / limit"
    if document["live"] and (reasons := {way["quotaNotAsked"] for way in document["ways"]} - {""}):
        yield f"quotas are not asked: {', '.join(sorted(reasons))}"
    create = document["create"] or "gpukube pool create -f pools.yaml"
    yield f"nothing was bought; write `capacity` and `zones` of one way in the pool, then: {create}"


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    last = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
    numbers = (3, 4)
    padded = [cells[i].rjust(widths[i]) if i in numbers else cell for i, cell in enumerate(last)]
    return " ".join(padded).rstrip()


def _usd(amount: float | None, mark: str) -> str:
    if amount is None:
        return "?"
    return f"{mark}{usd(amount)}" if amount else "paid"


def _where(ways: Sequence[CapacityWayPart]) -> str:
    first, zones = ways[0], _zones([way["zone"] for way in ways])
    region = "" if zones.startswith(first["region"]) and zones else first["region"] or first["cluster"]
    return " ".join(filter(None, (first["provider"], region, zones)))


def _zones(zones: Sequence[str]) -> str:
    """Return zones with their common start written once: us-east-1a,b,d."""
    first, *others = zones
    same = [all(letter == other for other in at) for letter, *at in zip(*zones, strict=False)]
    start = [*same, False].index(False) if others else 0
    return ",".join([first, *(zone[start:] for zone in others)])


def _quota(way: CapacityWayPart) -> str:
    quotas = sorted(way["quotas"], key=lambda quota: (not quota["short"], quota["limit"] is not None))
    if not quotas:
        return "not asked" if way["quotaNotAsked"] else "-"
    quota = quotas[0]
    return f"{number(quota['needed'])}+{_known(quota['used'])}/{_known(quota['limit'])}"


def _known(value: float | None) -> str:
    return "?" if value is None else number(value)


def _short(quotas: Iterable[CapacityQuotaPart], view: View) -> Iterator[str]:
    for quota in quotas:
        if quota["short"]:
            fix = f"; {quota['fix']}" if view.verbose else ""
            yield f"{quota['title']} is too low: needs {number(quota['needed'])} {quota['unit']}{fix}"
        elif quota["unknown"] and view.verbose:
            yield f"{quota['title']}: {quota['unknown']}"


def _time(seconds: int) -> str:
    hours = seconds // 3600
    return plural(hours // 24, "day") if hours % 24 == 0 else plural(hours, "hour")
