"""Human-readable placement: each workload with its pods, then the nodes with their remaining room."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

from gpukube.cli.rendering.lines import device_words, plural, short
from gpukube.cli.rendering.prices import fit_price_words, price_line, price_notes, usd
from gpukube.cli.rendering.text import Hung, Table, Text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.cli.rendering.text import Line
    from gpukube.cli.rendering.view import View
    from gpukube.engine.documents.shapes.fit import FilledNodePart, FitDocument, FittedPart

_STATES: Final = {
    "now": ("=", "green"),
    "after-scale-up": ("+", "yellow"),
    "never": ("x", "bold red"),
    "unknown": ("?", "bold yellow"),
    "elsewhere": ("?", "cyan"),
}
_REASONS_SHOWN: Final = 3
_NO_GPU: Final = "a CPU node outside the spec"


def render_fit(document: FitDocument, view: View) -> Iterator[Line]:
    """Show the workloads, then the nodes."""
    for part in document["workloads"]:
        yield from _workload(part, view)
    for item in document["notPlaced"]:
        sign, style = _STATES["never" if item["hasPods"] else "elsewhere"]
        name = f"{item['object']}, group {item['group']}" if item["group"] else item["object"]
        yield Hung(Text.assemble((f"{sign} ", style)), Text.assemble((name, "bold"), f": {item['why']}"))
    if not document["workloads"] and not document["notPlaced"]:
        yield "no pods in these files"
    if document["nodes"]:
        yield ""
        yield from _nodes(document, view)


def _workload(part: FittedPart, view: View) -> Iterator[Line]:
    sign, style = _STATES[part["state"]]
    name = f"{part['object']}, group {part['group']}" if part["group"] else part["object"]
    role = " head" if part["role"] == "ray-head" else ""
    counts = [
        (part["now"], "now"),
        (part["afterScaleUp"], "after scale-up"),
        (part["never"], "never"),
        (part["unknown"], "unknown"),
        (part["elsewhere"], f"on {_NO_GPU}"),
    ]
    words = ", ".join(f"{count} {word}" for count, word in counts if count) or "no pods"
    yield Hung(
        Text.assemble((f"{sign} ", style)), Text.assemble((f"{name}{role}", "bold"), f" on {part['cluster']}: {words}")
    )
    requests = part["requests"]
    amounts = {"cpu": requests["cpu"], "memory": requests["memory"], **requests["devices"]}
    claimed = [f"claim {name}" for name in requests["claims"]]
    each = ", ".join([*(f"{name} {amount}" for name, amount in amounts.items() if str(amount) != "0"), *claimed])
    yield _fact("pods", f"{_range(part)}, each {each}" if each else _range(part))
    shown = part["reasons"] if view.verbose or view.wide else part["reasons"][:_REASONS_SHOWN]
    for reason in shown:
        yield _fact("why", f"{reason['pool']}: {'; '.join(reason['why'])}")
    if len(shown) < len(part["reasons"]):
        yield _fact("", f"and {plural(len(part['reasons']) - len(shown), 'pool')} more (-o wide)")
    if edit := part["edit"]:
        yield _fact("fix", f"{edit['where']}: {edit['text']}")
    elif part["never"]:
        yield _fact("fix", "no single change would place every pod")
    if (roll_out := part["rollOut"]) and roll_out["blocked"]:
        yield _fact("update", f"needs {plural(roll_out['pods'], 'more pod')} but has room for {roll_out['places']}")
        yield _fact("", roll_out["fix"])


def _range(part: FittedPart) -> str:
    least, most = part["least"], part["most"]
    if part["role"] == "daemon":
        return "one per node"
    if most is None:
        return f"{least} or more"
    return str(least) if least == most else f"{least} to {most}"


def _fact(name: str, text: str) -> Line:
    return Hung(Text.assemble("    ", (f"{name + ':' if name else '':<8}", "dim")), Text(text))


def _nodes(document: FitDocument, view: View) -> Iterator[Line]:
    table = Table(("NODE", "PODS", "LEFT", "BINDS", "USD/H"))
    rough = {(part["cluster"], part["pool"]) for part in document["prices"] if part["rough"]}
    for _, alike in groupby(document["nodes"], key=lambda node: repr({**node, "name": "", "zone": ""})):
        nodes = list(alike)
        table.add_row(*_cells(nodes, view, rough=(nodes[0]["cluster"], nodes[0]["pool"]) in rough))
    yield table
    for node in document["nodes"]:
        if node["stranded"]:
            devices = {short(name): count for name, count in node["stranded"].items()}
            yield Hung(
                Text(f"{node['name']}: "), Text(f"{device_words(devices)} unused: {node['binds'] or 'nothing'} binds")
            )
    new = sum(node["new"] for node in document["nodes"])
    started = f", {new} to start" if new else ""
    yield Text(f"{plural(len(document['nodes']), 'node')}{started}", style="bold")
    used = {(node["cluster"], node["pool"]) for node in document["nodes"]}
    for part in document["prices"]:
        if view.verbose or view.wide or (part["cluster"], part["pool"]) in used:
            yield Hung(Text(f"{part['cluster']}/{part['pool']}: "), Text(fit_price_words(part)))
    yield Hung(Text(""), Text(price_line(document["price"])))
    yield from price_notes(document["price"])


def _cells(nodes: list[FilledNodePart], view: View, *, rough: bool) -> tuple[str, ...]:
    first, left = nodes[0], nodes[0]["left"]
    name = first["name"] if len(nodes) == 1 else f"{first['name']} to {nodes[-1]['name'].rpartition('-')[2]}"
    zones = sorted({node["zone"] for node in nodes if node["zone"]})
    cluster = f"{first['cluster']}/" if view.wide else ""
    where = f" ({', '.join(zones)})" if zones and view.wide else ""
    pods = [f"{part['pods']} {part['object']}{'/' + part['group'] if part['group'] else ''}" for part in first["pods"]]
    pods += [f"{first['others']} others"] if first["others"] else []
    room = [f"{short(name)} {count}" for name, count in left["devices"].items()]
    room += [f"cpu {left['cpu'] or '?'}", left["memory"] or "?"]
    return (
        f"{'+ ' if first['new'] else '= '}{cluster}{name}{where}",
        ", ".join(pods),
        ", ".join(room),
        short(first["binds"]) or "-",
        "?" if first["usdPerHour"] is None else f"{'~' if rough else ''}{usd(first['usdPerHour'])}",
    )
