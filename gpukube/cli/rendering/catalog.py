"""Human-readable catalog: types in tables by date and region of their prices, and search and refresh results."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from gpukube.cli.rendering.lines import finding_lines, number, plural
from gpukube.cli.rendering.text import Hung, Table, Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gpukube.cli.rendering.text import Line
    from gpukube.cli.rendering.view import View
    from gpukube.engine.documents.shapes.catalog import (
        CatalogFindDocument,
        CatalogListDocument,
        CatalogRefreshDocument,
        CatalogSlicesDocument,
        CatalogTypeDocument,
        FoundPart,
        MachinePart,
        NetworkPart,
        PricePart,
        ProfilePart,
        RefreshedPart,
        SlicePart,
        StockPart,
    )

    Column = tuple[str, Callable[[MachinePart], str]]
    Group = tuple[str, str, str]

_FACT: Final = 11
"""Width of the names of facts."""
_REJECTED_SHOWN: Final = 3
_NEAR_SHOWN: Final = 3
_FRACTIONS_BELOW: Final = 10
_ATTACHED: Final = "n1-"


def render_types(document: CatalogListDocument, view: View) -> Iterator[Line]:
    """Show types, in a table for each cloud and each date and region of prices."""
    for (provider, region, date), machines in _grouped(document["machines"]).items():
        prices = f"USD/h in {region} on {date}" if region else "price unknown"
        yield Text(f"{provider}  {prices}", style="bold")
        yield from _table(machines, view)
        yield ""
    yield from _footnotes(document)


def render_find(document: CatalogFindDocument, view: View) -> Iterator[Line]:
    """Show the clouds' machines side by side, the reason for each, and the closest match if a cloud has none."""
    query = document["asked"]
    yield Text(f"{number(query['count'])} x {query['model']}", style="bold")
    yield from _side_by_side(document["clouds"], view)
    for cloud in document["clouds"]:
        yield from _found(cloud, view)
    yield from _data(document["embedded"], document["refreshed"])


def render_slices(document: CatalogSlicesDocument, view: View) -> Iterator[Line]:
    """Show devices, two lines each: the device with its price, and the cheapest machine that has it."""
    del view
    yield Text(f"at least {number(document['atLeastGB'])} GB, smallest first", style="bold")
    heads = [_slice_head(found) for found in document["slices"]]
    widths = [max(map(len, column)) for column in zip(*heads, strict=True)] if heads else []
    for found, head in zip(document["slices"], heads, strict=True):
        cells = (cell.ljust(width) for cell, width in zip(head, widths, strict=True))
        yield Hung(Text("  "), Text(" ".join(cells).rstrip()))
        machine, price = found["machine"], found["price"]
        place = f"{machine['instanceType']}: {found['perNode']} per node as {' or '.join(found['resources'].values())}"
        place += f" ({price['region']}, {price['date']})" if price else ""
        yield Hung(Text(" " * 10), Text(place, style="dim"))
    if any(found["machine"]["instanceType"].startswith(_ATTACHED) for found in document["slices"]):
        yield Hung(Text(""), Text("+: plus the price of the machine", style="dim"))
    yield Hung(Text(""), Text("sizes come from the names; usable memory is slightly less", style="dim"))
    yield from _data(document["embedded"], document["refreshed"])


def render_type(document: CatalogTypeDocument, view: View) -> Iterator[Line]:
    """Show one type in full."""
    first = document["machines"][0]
    yield Text(f"{first['provider']} {first['instanceType']}", style="bold")
    if len(document["machines"]) > 1:
        yield from _table(document["machines"], view)
    else:
        yield from _facts(document)
        yield from _profiles(document["profiles"], view)
        yield from _mixes(document["mixes"], view)
    for fact in document["facts"]:
        source = f" ({fact['source']})" if view.verbose else ""
        yield Hung(Text(f"  {'note':<{_FACT}} "), Text(fact["text"] + source))
    yield from _data(document["embedded"], document["refreshed"])


def render_refresh(document: CatalogRefreshDocument, view: View) -> Iterator[Line]:
    """Show the result for each region."""
    del view
    for cloud in document["clouds"]:
        yield from _refreshed(cloud)
    if any(cloud["refreshed"] for cloud in document["clouds"]):
        yield Hung(Text(""), Text(f"saved in {document['file']}", style="dim"))


def _grouped(machines: Sequence[MachinePart]) -> dict[Group, list[MachinePart]]:
    """Group types by cloud, date, and region of their prices; types without a price join the cloud's largest group."""
    counts = Counter(group for machine in machines if (group := _own_group(machine)))
    found: dict[Group, list[MachinePart]] = {}
    for machine in machines:
        near = [group for group in counts if group[0] == machine["provider"]]
        usual = max(near, key=lambda group: counts[group]) if near else (machine["provider"], "", "")
        found.setdefault(_own_group(machine) or usual, []).append(machine)
    return dict(sorted(found.items()))


def _own_group(machine: MachinePart) -> Group | None:
    price = machine["price"]
    return (machine["provider"], price["region"], price["date"]) if price else None


def _gpus(machine: MachinePart) -> str:
    return f"{number(machine['gpu']['count'])}x {machine['gpu']['model']}"


def _usd(price: PricePart | None) -> str:
    return "-" if price is None else f"{price['usdPerHour']:.2f}"


def _known(value: float | None) -> str:
    return "-" if value is None else number(value)


def _gib(value: float | None) -> str:
    """Format an amount of memory or disk; fractions only for small amounts."""
    if value is None:
        return "-"
    return number(value) if value < _FRACTIONS_BELOW else f"{value:.0f}"


def _yes(value: bool | None) -> str:  # noqa: FBT001 - three values; "-" is one of them
    return {True: "yes", False: "no", None: "?"}[value]


_ALWAYS: Final[tuple[Column, ...]] = (
    ("TYPE", lambda m: m["instanceType"]),
    ("GPUS", _gpus),
    ("MIG", lambda m: _yes(m["mig"])),
    ("STATUS", lambda m: "barred" if m["restricted"] else m["status"]),
    ("USD/H", lambda m: _usd(m["price"])),
)
_ROOMY: Final[tuple[Column, ...]] = (
    ("VCPU", lambda m: _known(m["vcpus"])),
    ("GIB", lambda m: _gib(m["memoryGiB"])),
    ("ARCH", lambda m: m["arch"]),
    ("SPOT", lambda m: _usd(m["spot"])),
)
"""Columns that are shown, in this order, while there is room."""
_WIDE: Final[tuple[Column, ...]] = (
    ("GPU GIB", lambda m: _gib(m["gpuMemoryGiB"])),
    ("SSD GIB", lambda m: _gib(m["localSsdGiB"])),
    ("ACCELERATOR", lambda m: m["accelerator"] or "-"),
    ("OF", lambda m: f"{m['source']} {m['date']}"),
    ("NOTES", lambda m: m["notes"] or "-"),
)


def _table(machines: Sequence[MachinePart], view: View) -> Iterator[Line]:
    columns = list(_ALWAYS)
    for column in (*_ROOMY, *(_WIDE if view.wide else ())):
        if not view.width or view.wide or _width([*columns, column], machines) <= view.width:
            columns.append(column)
    table = Table([title for title, _ in columns], padding=1)
    for machine in machines:
        style = "yellow" if machine["status"] in ("retired", "unknown") or machine["restricted"] else ""
        table.add_row(*(Text(cell(machine), style=style) for _, cell in columns))
    yield table


def _width(columns: Sequence[Column], machines: Sequence[MachinePart]) -> int:
    return sum(1 + max([len(title), *(len(cell(m)) for m in machines)]) for title, cell in columns)


def _footnotes(document: CatalogListDocument) -> Iterator[Line]:
    count = plural(len(document["machines"]), "type") if document["machines"] else "no GPU instance type matches"
    left = ", ".join(f"{number} {reason}" for reason, number in document["leftOut"].items())
    yield Hung(Text(""), Text(count + (f"; omitted: {left}" if left else "")))
    if any(machine["restricted"] for machine in document["machines"]):
        yield Hung(Text(""), Text("barred: unavailable to the account that refreshed (see catalog show)"))
    yield from _data(document["embedded"], document["refreshed"])


def _data(embedded: str, refreshed: Sequence[StockPart]) -> Iterator[Line]:
    """Return the source of the data."""
    live = ", ".join(f"{s['provider']} {s['region']} from {s['date']}" for s in refreshed)
    text = f"data: embedded table from {embedded}" + (f"; refreshed: {live}" if live else "")
    yield Hung(Text(""), Text(text, style="dim"))


_COMPARED: Final[tuple[Column, ...]] = (
    ("TYPE", lambda m: m["instanceType"]),
    ("USD/H", lambda m: _usd(m["price"])),
    ("IN", lambda m: m["price"]["region"] if m["price"] else "-"),
    ("ON", lambda m: m["price"]["date"] if m["price"] else "-"),
)
_COMPARED_TOO: Final[tuple[Column, ...]] = (
    ("VCPU", lambda m: _known(m["vcpus"])),
    ("GIB", lambda m: _gib(m["memoryGiB"])),
    ("MIG", lambda m: _yes(m["mig"])),
    ("STATUS", lambda m: m["status"]),
    ("ARCH", lambda m: m["arch"]),
    ("SPOT", lambda m: _usd(m["spot"])),
)
"""Columns that are shown, in this order, while there is room."""


def _side_by_side(clouds: Sequence[FoundPart], view: View) -> Iterator[Line]:
    machines = [machine for cloud in clouds if (machine := cloud["machine"])]
    if not machines:
        return
    columns = list(_COMPARED)
    for column in _COMPARED_TOO:
        if not view.width or _width([*columns, column], machines) + len("CLOUD ") <= view.width:
            columns.append(column)
    table = Table(["CLOUD", *(title for title, _ in columns)], padding=1)
    for cloud in clouds:
        machine = cloud["machine"]
        table.add_row(cloud["provider"], *(cell(machine) if machine else "-" for _, cell in columns))
    yield table


def _found(cloud: FoundPart, view: View) -> Iterator[Line]:
    yield Hung(Text(f"  {cloud['provider']:<5}"), Text(cloud["why"], style="" if cloud["machine"] else "red"))
    if (machine := cloud["machine"]) and machine["notes"]:
        yield Hung(Text(" " * 7 + "note: "), Text(machine["notes"]))
    for near in cloud["candidates"][: None if view.verbose else _NEAR_SHOWN]:
        yield Hung(Text(" " * 7 + "near: "), Text(f"{near['instanceType']}  {_gpus(near)}  {_price_words(near)}"))
    shown = cloud["rejected"] if view.verbose else cloud["rejected"][:_REJECTED_SHOWN]
    for other in shown:
        yield Hung(Text(" " * 7 + "not: "), Text(f"{other['instanceType']} {other['why']}", style="dim"))
    if more := len(cloud["rejected"]) - len(shown):
        yield Hung(Text(" " * 7), Text(f"and {more} more (-v shows all)", style="dim"))


def _price_words(machine: MachinePart) -> str:
    price = machine["price"]
    if price is None:
        return "price unknown"
    alone = " for the GPUs alone" if machine["accelerator"] and machine["instanceType"].startswith(_ATTACHED) else ""
    return f"{_usd(price)} USD/h{alone} ({price['region']}, {price['date']})"


def _shape(machine: MachinePart) -> str:
    parts = [
        f"{_known(machine['vcpus'])} vCPU",
        f"{_gib(machine['memoryGiB'])} GiB",
        machine["arch"],
        {True: "MIG", False: "no MIG", None: "MIG unconfirmed"}[machine["mig"]],
    ]
    return ", ".join([*parts, *([machine["status"]] if machine["status"] != "current" else [])])


def _slice_head(found: SlicePart) -> tuple[str, str, str, str, str]:
    what = {"mig": found["profile"], "gpu": "whole GPU", "share": "share"}[found["kind"]]
    alone = "+" if found["machine"]["instanceType"].startswith(_ATTACHED) else ""
    price = f"{found['price']['usdPerHour']:.3f}{alone} USD/h" if found["price"] else "price unknown"
    machine = found["machine"]
    return f"{number(found['memoryGB'])} GB", what, machine["gpu"]["model"], machine["provider"], price


def _facts(document: CatalogTypeDocument) -> Iterator[Line]:
    (machine,) = document["machines"]
    status = machine["status"] + (f": use {machine['successor']}" if machine["successor"] else "")
    shown = ", ".join(f"{name}: {count}" for name, count in document["resources"].items())
    spot = machine["spot"]
    each = f"{number(machine['gpuMemoryGiB'])} GiB each, compute capability {document['computeCapability']}"
    facts: Mapping[str, str] = {
        "gpus": f"{number(machine['gpu']['count'])} x {machine['gpu']['model']}, {each}",
        "machine": _shape(machine).removesuffix(f", {machine['status']}"),
        "disks": _disks(document),
        "network": _network(document["network"]),
        "accelerator": machine["accelerator"],
        "price": _price_words(machine),
        "spot": f"{_usd(spot)} USD/h ({spot['region']}, {spot['date']})" if spot else "",
        "status": status.replace("no-image", "no image of the cloud has its driver yet"),
        "shows": f"{shown} per node, without MIG or sharing",
        "notes": machine["notes"],
        "restricted": machine["restricted"],
        "regions": _regions(machine),
    }
    for name, text in facts.items():
        if text:
            yield Hung(Text(f"  {name:<{_FACT}} "), Text(text))


def _disks(document: CatalogTypeDocument) -> str:
    size, disks = document["machines"][0]["localSsdGiB"], document["disks"]
    if not size:
        return ""
    each = f" ({disks['count']} x {disks['sizeGB']} GB)" if disks else ""
    return f"{_gib(size)} GiB local{each}"


def _network(network: NetworkPart | None) -> str:
    if network is None:
        return ""
    number = str(network["interfaces"] or "") and f" {network['interfaces']}"
    return f"{network['kind']}{number}" + (f" ({plural(network['cards'], 'card')})" if network["cards"] else "")


def _regions(machine: MachinePart) -> str:
    missing = f"; not in {', '.join(machine['missing'])}" if machine["missing"] else ""
    return f"{', '.join(machine['regions']) or 'none'}{missing}" if machine["regions"] or missing else ""


def _profiles(profiles: Sequence[ProfilePart], view: View) -> Iterator[Line]:
    """Show MIG profiles; those that the cloud does not support only with -v."""
    shown = [p for p in profiles if p["available"] or view.verbose]
    if not shown:
        if profiles:
            yield Hung(Text(f"  {'mig':<{_FACT}} "), Text("no MIG on this machine"))
        return
    yield ""
    table = Table(["PROFILE", "GB", "PER GPU", "PER NODE", "STRATEGY single", "mixed"], padding=1)
    for profile in shown:
        resources = profile["resources"]
        cells = ("-", "-") if not profile["available"] else (resources["single"], resources.get("mixed", "-"))
        counts = (profile["memoryGB"], profile["perGpu"], profile["perNode"])
        table.add_row(profile["name"], *map(str, counts), *cells)
    yield table
    if hidden := len(profiles) - len(shown):
        yield Text(f"{plural(hidden, 'profile')} of the GPU are not available here (-v shows all)", style="dim")
    yield ""


def _mixes(mixes: Sequence[Sequence[str]], view: View) -> Iterator[Line]:
    if mixes and view.verbose:
        counted = (" + ".join(f"{mix.count(name)}x {name}" for name in dict.fromkeys(mix)) for mix in mixes)
        yield Hung(Text(f"  {'full mixes':<{_FACT}} "), Text("; ".join(counted)))
    elif mixes:
        yield Hung(Text(f"  {'full mixes':<{_FACT}} "), Text(f"{len(mixes)} of one GPU (-v shows them)"))


def _refreshed(cloud: RefreshedPart) -> Iterator[Line]:
    place = f"{cloud['provider']} {cloud['region']}"
    if cloud["refreshed"]:
        text = f"{plural(cloud['types'], 'GPU type')}, {plural(cloud['prices'], 'price')}"
        yield Hung(Text(f"{place}  "), Text(text, style="green"))
        if cloud["added"]:
            yield Hung(Text("  new: "), Text(", ".join(cloud["added"])))
    else:
        kept = f"keeping the data from {cloud['kept']}" if cloud["kept"] else "keeping the embedded data"
        yield Hung(Text(f"{place}  "), Text(f"not refreshed; {kept}", style="red"))
    for note in cloud["notes"]:
        yield Hung(Text("  note: "), Text(note))
    yield from finding_lines(cloud["errors"])
