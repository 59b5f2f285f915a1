"""The map for people: a cell for each GPU, MIG instance, or share, by node; or who holds what, by namespace.

A state has a sign and a color, so the picture can be read without color; without the signs it is drawn in ASCII.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

from gpukube.cli.rendering.lines import finding_lines, gpu_words, plural, short
from gpukube.cli.rendering.text import Hung, Text
from gpukube.engine.documents.map_sums import add_counts
from gpukube.gpu.claims import GPU_CLASS, MIG_CLASS, is_claimable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gpukube.cli.rendering.text import Line
    from gpukube.cli.rendering.view import View
    from gpukube.engine.documents.shapes.map import (
        MapCluster,
        MapDevice,
        MapDocument,
        MapNode,
        MapPod,
        MapPool,
        MapStock,
        MapWaiting,
    )

    Piece = tuple[str, str]

_HELD, _FREE, _UNUSABLE, _UNHEALTHY, _ABSENT, _STARTING = range(6)
_SIGNS: Final = ("■", "□", "▒", "✗", "?", "…")
_ASCII: Final = ("#", "o", "=", "x", "?", ".")
_STYLES: Final = ("cyan", "green", "yellow", "bold red", "red", "dim")
_WORDS: Final = ("held", "free", "free, on a node that takes no pods", "unhealthy", "not advertised", "starting")
_STATES: Final = {
    "held": _HELD,
    "free": _FREE,
    "unusable": _UNUSABLE,
    "unhealthy": _UNHEALTHY,
    "notAdvertised": _ABSENT,
}
_NODE_WORDS: Final = {
    "starting": "starting",
    "cordoned": "cordoned",
    "leaving": "leaving",
    "notReady": "not ready",
}
_KNOWN: Final = "@"
"""Mark of nodes on which claims publish who has which device."""
_CELLS: Final = 32
"""Devices of a node beyond which a number stands for its cells."""
_FEW_NODES: Final = 8
"""Nodes of a pool that are drawn one by one, even if they are equal."""
_NAME: Final = 44
"""Width of the column of names; longer names move only their own line."""
_FEW_PODS: Final = 4
_FEW_WAITING: Final = 5


def render_map(document: MapDocument, view: View) -> Iterator[Line]:
    """Draw the map."""
    yield from _sums(document)
    if document["view"]["by"] == "namespace":
        yield from _namespaces(document, view)
    else:
        for cluster in document["clusters"]:
            yield from _cluster(cluster, view, free=document["view"]["free"])
    yield from _legend(document, view)


def stock_name(stock: MapStock) -> str:
    """Return what the devices of a resource are, for people: gpu, 1g.5gb, gpu.shared."""
    if stock["kind"] == "share":
        return f"shares of {stock['profile'] or 'GPUs'}"
    name = "GPUs" if stock["kind"] == "gpu" else stock["profile"] or short(stock["resource"])
    return f"{name} by claims" if is_claimable(stock["resource"]) else name


def stock_words(stock: MapStock) -> str:
    """Return the counts of a resource."""
    parts = [f"{stock['held']} of {stock['total']} held"]
    parts += [
        f"{count} {words}"
        for count, words in (
            (stock["free"], "free"),
            (stock["unusable"], "on nodes that take no pods"),
            (stock["unhealthy"], "unhealthy"),
            (stock["heldUnhealthy"], "held and unhealthy"),
            (stock["notAdvertised"], "not advertised"),
        )
        if count
    ]
    return f"{stock_name(stock)}: {', '.join(parts)}"


def counts_words(counts: Mapping[str, int]) -> str:
    """Return devices that pods hold or wait for."""
    return ", ".join(f"{count} {device_name(name)}" for name, count in counts.items())


def device_name(resource: str) -> str:
    """Return a resource, or a class that pods claim, for people: gpu, mig-1g.5gb, 1g.5gb by claims."""
    if not is_claimable(resource):
        return short(resource)
    return f"{resource.removeprefix(f'{MIG_CLASS}/') if resource != GPU_CLASS else 'gpu'} by claims"


def _sums(document: MapDocument) -> Iterator[Line]:
    total = document["summary"]
    time = document["readAt"].replace("T", " ").replace("Z", " UTC")
    starting = f" and {total['starting']} starting" if total["starting"] else ""
    where = f"{plural(total['nodes'], 'node')}{starting} of {plural(total['clusters'], 'cluster')}"
    yield Text(f"{plural(total['gpus'], 'GPU')} on {where}, {time}", style="bold")
    yield from (Hung(Text("  "), Text(stock_words(stock))) for stock in total["stocks"])
    if total["waiting"]:
        yield Hung(Text("  "), Text(f"pods wait for {counts_words(total['waiting'])}", style="yellow"))


def _cluster(cluster: MapCluster, view: View, *, free: bool) -> Iterator[Line]:
    yield ""
    place = f"  {cluster['provider']} {cluster['region']}".rstrip()
    yield Text.assemble((cluster["cluster"], "bold"), (place, "dim"))
    if cluster["error"]:
        yield from finding_lines(cluster["error"])
        return
    if cluster["unknown"]:
        yield Hung(Text("  "), Text(f"nodes and pods unknown: {cluster['unknown']}", style="yellow"))
    pools = [pool for pool in cluster["pools"] if not free or _has_free(pool["stocks"])]
    if not pools:
        yield Text("  no free devices" if free else "  no GPU pools", style="dim")
    for pool in pools:
        yield from _pool(pool, view, free=free)
    if not free:
        yield from _waiting(cluster["waiting"], view)


def _pool(pool: MapPool, view: View, *, free: bool) -> Iterator[Line]:
    name = pool["pool"] or pool["name"] or "nodes of no pool"
    facts = [
        pool["name"] if pool["name"] != name and pool["pool"] else "",
        " ".join(filter(None, (pool["instanceType"], f"({gpu_words(pool['gpu'])})" if pool["gpu"] else ""))),
        f"family {pool['family']}" if pool["family"] and pool["family"] != name else "",
        f"owner {pool['owner']}" if pool["owner"] else "",
        pool["state"] if pool["state"] not in ("ready", "") else "",
        plural(len(pool["nodes"]), "node") if pool["nodes"] or not pool["nodeCount"] else "",
    ]
    yield Hung(Text.assemble("  ", (name, "bold"), "  "), Text(", ".join(filter(None, facts)), style="dim"))
    nodes = [node for node in pool["nodes"] if not free or _has_free(node["stocks"])]
    width = min(_NAME, max((len(node["name"]) for node in nodes), default=0))
    for alike in _folded(nodes, view):
        yield _node(alike, width, view)
    if pool["starting"] and not free:
        sign = _sign(_STARTING, view)
        text = f"{plural(pool['starting'], 'node')} starting: not in the cluster yet"
        yield Hung(Text(f"    {sign} ", style=_STYLES[_STARTING]), Text(text, style=_STYLES[_STARTING]))


def _has_free(stocks: Iterable[MapStock]) -> bool:
    return any(stock["free"] for stock in stocks)


def _folded(nodes: Sequence[MapNode], view: View) -> Iterator[list[MapNode]]:
    """Group nodes that look the same; a pipe, -v, and a small pool have a line for each."""
    if view.verbose or not view.width or len(nodes) <= _FEW_NODES:
        yield from ([node] for node in nodes)
        return
    found: dict[str, list[MapNode]] = {}
    for node in nodes:
        devices = [(device["profile"], device["state"]) for device in node["devices"]]
        key = repr((node["state"], node["reason"], node["stocks"], devices, _by_namespace(node["pods"])))
        found.setdefault(key, []).append(node)
    yield from found.values()


def _node(alike: Sequence[MapNode], width: int, view: View) -> Line:
    node, *others = alike
    parts: list[list[str | Piece]] = [[*_gpus(node, view)]]
    for stock in node["stocks"]:
        cells = [*_cells(_unnamed(stock, node), node, view)]
        parts.append([*cells, " " if cells else "", f"{stock['held']}/{stock['total']} {_label(stock)}"])
    if not node["stocks"]:
        parts.append([("no GPUs known", "dim")])
    if state := _NODE_WORDS.get(node["state"], ""):
        parts.append([(state + (f": {node['reason']}" if node["reason"] else ""), "yellow")])
    if others:
        parts.append([(f"x {len(alike)} nodes like this", "bold")])
    parts.append(_folded_pods(node["pods"]) if others else _pods(node["pods"], view))
    body: list[str | Piece] = []
    for part in filter(None, parts):
        body += ["  ", *part] if body else part
    mark = _KNOWN if node["attribution"] == "devices" else " "
    return Hung(Text.assemble("    ", node["name"].ljust(width), mark, " "), Text.assemble(*body))


def _label(stock: MapStock) -> str:
    if stock["kind"] == "gpu":
        return "GPUs"
    if stock["kind"] == "instance":
        return stock["profile"] or short(stock["resource"])
    per_gpu = f", {stock['perGpu']} per GPU" if stock["perGpu"] and stock["perGpu"] > 1 else ""
    profile = f" of {stock['profile']}" if stock["profile"] else ""
    return f"shares{profile}{per_gpu}"


def _unnamed(stock: MapStock, node: MapNode) -> MapStock:
    """Return a resource without the devices that are drawn by name."""
    rest: MapStock = {**stock}
    for device in node["devices"]:
        if device["resource"] == stock["resource"]:
            rest["total"] -= 1
            rest[device["state"]] -= 1
    return rest


def _cells(stock: MapStock, node: MapNode, view: View) -> Iterator[Piece]:
    """Yield the cells of a resource: one per device, or a number if they are many."""
    starting = node["state"] == "starting"
    counts = (
        (_HELD, stock["held"]),
        (_FREE, stock["free"]),
        (_STARTING if starting else _UNUSABLE, stock["unusable"]),
        (_UNHEALTHY, stock["unhealthy"]),
        (_STARTING if starting else _ABSENT, stock["notAdvertised"]),
    )
    many = stock["total"] > _CELLS
    for state, count in counts:
        if count:
            sign = _sign(state, view)
            yield (f"{sign}x{count} " if many else sign * count), _STYLES[state]


def _gpus(node: MapNode, view: View) -> Iterator[Piece]:
    """Yield the cells of devices in their places: those of a divided GPU in brackets, by profile."""
    for _, devices in groupby(node["devices"], key=lambda device: device["gpu"]):
        own = list(devices)
        if len(own) == 1 and not own[0]["profile"]:
            yield _device_cell(own[0], node, view)
            continue
        yield "[", "dim"
        for place, (profile, members) in enumerate(groupby(own, key=lambda device: device["profile"])):
            if place:
                yield " ", ""
            yield from (_device_cell(device, node, view) for device in members)
            yield f" {profile}", "dim"
        yield "]", "dim"


def _device_cell(device: MapDevice, node: MapNode, view: View) -> Piece:
    state = _STATES[device["state"]]
    if node["state"] == "starting" and state in (_UNUSABLE, _ABSENT):
        state = _STARTING
    return _sign(state, view), _STYLES[state]


def _pods(pods: Sequence[MapPod], view: View) -> list[str | Piece]:
    shown = pods if view.verbose or not view.width else pods[:_FEW_PODS]
    parts: list[str | Piece] = []
    for pod in shown:
        what = "claim " if pod["claimOnly"] else ""
        parts.append(f"{', ' if parts else ''}{what}{pod['namespace']}/{pod['name']} {sum(pod['devices'].values())}")
        if pod["trouble"]:
            parts.append((f" ({pod['trouble']})", "red"))
    if more := len(pods) - len(shown):
        parts.append(f" and {more} more")
    return parts


def _folded_pods(pods: Sequence[MapPod]) -> list[str | Piece]:
    spaces = _by_namespace(pods)
    return [", ".join(f"{name} {sum(counts.values())}" for name, counts in spaces.items()) + " each"] if spaces else []


def _by_namespace(pods: Iterable[MapPod]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for pod in pods:
        found[pod["namespace"]] = add_counts(found.get(pod["namespace"], {}), pod["devices"])
    return dict(sorted(found.items()))


def _waiting(pods: Sequence[MapWaiting], view: View) -> Iterator[Line]:
    shown = pods if view.verbose or not view.width else pods[:_FEW_WAITING]
    for pod in shown:
        why = f": {pod['why']}" if pod["why"] else ""
        text = f"{pod['namespace']}/{pod['name']} for {counts_words(pod['devices'])}{why}"
        yield Hung(Text("  waits: ", style="yellow"), Text(text))
    if more := len(pods) - len(shown):
        yield Text(f"  and {plural(more, 'more pod')} that wait (-v shows all)", style="dim")


def _namespaces(document: MapDocument, view: View) -> Iterator[Line]:
    """Show who holds what and where, and who waits."""
    held: dict[str, dict[str, list[MapPod]]] = {}
    waits: dict[str, list[tuple[str, MapWaiting]]] = {}
    for cluster in document["clusters"]:
        if cluster["error"] or cluster["unknown"]:
            yield from _cluster(cluster, view, free=False)
        for pool in cluster["pools"]:
            place = f"{cluster['cluster']}/{pool['pool'] or pool['name'] or 'nodes of no pool'}"
            for node in pool["nodes"]:
                for pod in node["pods"]:
                    held.setdefault(pod["namespace"], {}).setdefault(place, []).append(pod)
        for waiting in cluster["waiting"]:
            waits.setdefault(waiting["namespace"], []).append((cluster["cluster"], waiting))
    for name in sorted({*held, *waits}):
        yield ""
        places = held.get(name, {})
        total = _by_namespace(pod for pods in places.values() for pod in pods).get(name, {})
        wanted: dict[str, int] = {}
        for _, waiting in waits.get(name, []):
            wanted = add_counts(wanted, waiting["devices"])
        words = [f"holds {counts_words(total)}"] if total else []
        words += [f"waits for {counts_words(wanted)}"] if wanted else []
        yield Hung(Text.assemble((name, "bold"), "  "), Text("; ".join(words)))
        for place, pods in places.items():
            count = sum(sum(pod["devices"].values()) for pod in pods)
            cells = _sign(_HELD, view) * count if count <= _CELLS else f"{_sign(_HELD, view)}x{count}"
            body = Text.assemble((cells, _STYLES[_HELD]), " ", *_pods(pods, view))
            yield Hung(Text(f"  {place}  "), body)
        for key, waiting in waits.get(name, []):
            why = f": {waiting['why']}" if waiting["why"] else ""
            text = f"{waiting['name']} on {key} for {counts_words(waiting['devices'])}{why}"
            yield Hung(Text("  waits: ", style="yellow"), Text(text))
    if not held and not waits:
        yield Text("no pod holds a GPU or waits for one", style="dim")


def _legend(document: MapDocument, view: View) -> Iterator[Line]:
    yield ""
    parts: list[str | Piece] = []
    for state, words in enumerate(_WORDS):
        parts += ["  " if parts else "", (_sign(state, view), _STYLES[state]), f" {words}"]
    yield Hung(Text(""), Text.assemble(*parts))
    nodes = [node for cluster in document["clusters"] for pool in cluster["pools"] for node in pool["nodes"]]
    if any(node["attribution"] == "counts" for node in nodes):
        yield Hung(
            Text(""), Text("Cells are counts of a node, not positions: nothing publishes which pod has which GPU.")
        )
    if any(node["attribution"] == "devices" for node in nodes):
        yield Hung(Text(""), Text(f"{_KNOWN} cells are devices: claims publish which pod has which (-o json)."))


def _sign(state: int, view: View) -> str:
    return (_SIGNS if view.signs else _ASCII)[state]
