"""The map for people: a cell for each GPU, MIG instance, or share, by node; or who holds what, by namespace.

A state has a sign and a color, so the picture can be read without color; without the signs it is drawn in ASCII.
"""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING, Final

from gpukube.cli.rendering.lines import finding_lines, gpu_words, plural, short
from gpukube.cli.rendering.prices import hourly_words, source_notes, usd_range
from gpukube.cli.rendering.text import Hung, Text
from gpukube.gpu.claims import GPU_CLASS, MIG_CLASS, is_claimable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gpukube.cli.rendering.text import Line
    from gpukube.cli.rendering.view import View
    from gpukube.engine.documents.shapes.map import (
        HeldPart,
        MapCluster,
        MapDevice,
        MapDocument,
        MapNode,
        MapPod,
        MapPool,
        MapStock,
        MapSum,
        MapWaiting,
        NamespacePart,
    )
    from gpukube.engine.documents.shapes.usage import UsageDocument, UsageSum

    Piece = tuple[str, str]

_HELD, _FREE, _UNUSABLE, _UNHEALTHY, _ABSENT, _STARTING = range(6)
SIGNS: Final = ("■", "□", "▒", "✗", "?", "…")
_ASCII: Final = ("#", "o", "=", "x", "?", ".")
_STYLES: Final = ("cyan", "green", "yellow", "bold red", "red", "dim")
STATE_WORDS: Final = ("held", "free", "free, on a node that takes no pods", "unhealthy", "not advertised", "starting")
_STATES: Final = {
    "held": _HELD,
    "free": _FREE,
    "unusable": _UNUSABLE,
    "unhealthy": _UNHEALTHY,
    "notAdvertised": _ABSENT,
}
NODE_WORDS: Final = {
    "ready": "",
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
COST_UNIT: Final = "USD per hour"
NO_POOL: Final = "nodes of no pool"


def render_map(document: MapDocument, view: View) -> Iterator[Line]:
    """Draw the map."""
    yield from _sums(document)
    if document["view"]["by"] == "namespace":
        yield from _namespaces(document, view)
    else:
        for cluster in document["clusters"]:
            yield from _cluster(cluster, view, empty_words(document), free=document["view"]["free"])
    yield from _legend(document, view)


def stock_name(stock: MapStock) -> str:
    """Return what the devices of a resource are, for people: gpu, 1g.5gb, gpu.shared."""
    if stock["kind"] == "share":
        return f"shares of {stock['profile'] or 'GPUs'}"
    name = "GPUs" if stock["kind"] == "gpu" else stock["profile"] or short(stock["resource"])
    return f"{name} by claims" if is_claimable(stock["resource"]) else name


def stock_words(stock: MapStock) -> str:
    """Return a resource and its counts."""
    return f"{stock_name(stock)}: {_counts(stock)}"


def _counts(stock: MapStock) -> str:
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
    return ", ".join(parts)


def sum_words(stocks: Sequence[MapStock]) -> list[str]:
    """Return the counts of each resource; resources that people call the same have their full name, too."""
    names = Counter(map(stock_name, stocks))
    full = (f" ({stock['resource']})" if names[stock_name(stock)] > 1 else "" for stock in stocks)
    return [f"{stock_name(stock)}{more}: {_counts(stock)}" for stock, more in zip(stocks, full, strict=True)]


def held_words(parts: Iterable[HeldPart]) -> str:
    """Return devices that are held: 8 GPUs, 3 x 1g.5gb, 2 shares of GPUs."""
    return ", ".join(map(_held, parts))


def _held(part: HeldPart) -> str:
    count, claims = part["count"], " by claims" if is_claimable(part["resource"]) else ""
    if part["kind"] == "gpu":
        return f"{plural(count, 'GPU')}{claims}"
    if part["kind"] == "share":
        return f"{plural(count, 'share')} of {part['profile'] or 'GPUs'}"
    return f"{count} x {part['profile'] or short(part['resource'])}{claims}"


def held_price(space: NamespacePart) -> str:
    """Return what the devices of a namespace cost per hour, with those that are in no sum."""
    price = usd_range(space["heldUsdPerHour"])
    return f"{price} + {held_words(space['unpriced'])} without a price" if space["unpriced"] else price


def counts_words(counts: Mapping[str, int]) -> str:
    """Return devices that pods request, by resource: whether these are GPUs or shares is the nodes' matter."""
    return ", ".join(f"{count} {device_name(name)}" for name, count in counts.items())


def device_name(resource: str) -> str:
    """Return a resource, or a class that pods claim, for people: gpu, mig-1g.5gb, 1g.5gb by claims."""
    if not is_claimable(resource):
        return short(resource)
    return f"{resource.removeprefix(f'{MIG_CLASS}/') if resource != GPU_CLASS else 'gpu'} by claims"


def _sums(document: MapDocument) -> Iterator[Line]:
    yield Text(f"{heading(document)}, {read_time(document)}", style="bold")
    yield from sum_lines(document["summary"])


def heading(document: MapDocument) -> str:
    """Return how many GPUs and nodes the map shows."""
    total = document["summary"]
    starting = f" and {total['starting']} starting" if total["starting"] else ""
    where = f"{plural(total['nodes'], 'node')}{starting} of {plural(total['clusters'], 'cluster')}"
    return f"{plural(total['gpus'], 'GPU')} on {where}"


def read_time(document: MapDocument | UsageDocument) -> str:
    """Return when a document was read, for people."""
    return document["readAt"].replace("T", " ").replace("Z", " UTC")


def sum_lines(total: MapSum | UsageSum) -> Iterator[Line]:
    """Show what is held and free, what pods wait for, and what the nodes cost."""
    yield from (Hung(Text("  "), Text(words)) for words in sum_words(total["stocks"]))
    if total["waiting"]:
        yield Hung(Text("  "), Text(f"pods wait for {counts_words(total['waiting'])}", style="yellow"))
    yield Hung(Text("  "), Text(hourly_words(total["cost"], COST_UNIT)))


def empty_words(document: MapDocument) -> str:
    """Return the line of a cluster without pools to show."""
    if document["view"]["free"]:
        return "no free devices"
    chosen = [word for word in document["scope"]["filters"] if "--pool" in word] if "scope" in document else []
    return f"no GPU pools that match {' '.join(chosen)}" if chosen else "no GPU pools"


def why_words(pod: MapWaiting) -> str:
    """Return why a pod waits, without what the scheduler adds about preemption; "" if it has not tried yet."""
    why, _, more = pod["why"].partition(". ")
    return why if "preemption: " in more else pod["why"]


def _cluster(cluster: MapCluster, view: View, empty: str, *, free: bool) -> Iterator[Line]:
    yield ""
    place = f"  {cluster['provider']} {cluster['region']}".rstrip()
    yield Text.assemble((cluster["cluster"], "bold"), (place, "dim"))
    if cluster["error"]:
        yield from finding_lines(cluster["error"])
        return
    if cluster["unknown"]:
        yield Hung(Text("  "), Text(f"nodes and pods unknown: {cluster['unknown']}", style="yellow"))
    pools = shown_pools(cluster, free=free)
    if not pools:
        yield Text(f"  {empty}", style="dim")
    for pool in pools:
        yield from _pool(pool, view, free=free)
    if not free:
        yield from _waiting(cluster["waiting"], view)


def _pool(pool: MapPool, view: View, *, free: bool) -> Iterator[Line]:
    name = pool_name(pool)
    facts = [
        pool["name"] if pool["name"] != name and pool["pool"] else "",
        " ".join(filter(None, (pool["instanceType"], f"({gpu_words(pool['gpu'])})" if pool["gpu"] else ""))),
        f"family {pool['family']}" if pool["family"] and pool["family"] != name else "",
        f"owner {pool['owner']}" if pool["owner"] else "",
        pool["state"] if pool["state"] not in ("ready", "") else "",
        plural(len(pool["nodes"]), "node") if pool["nodes"] or not pool["nodeCount"] else "",
        pool_cost(pool),
    ]
    yield Hung(Text.assemble("  ", (name, "bold"), "  "), Text(", ".join(filter(None, facts)), style="dim"))
    nodes = shown_nodes(pool, free=free)
    width = min(_NAME, max((len(node["name"]) for node in nodes), default=0))
    for alike in _folded(nodes, view):
        yield _node(alike, width, view)
    if pool["starting"] and not free:
        sign = _sign(_STARTING, view)
        text = f"{plural(pool['starting'], 'node')} starting: not in the cluster yet"
        yield Hung(Text(f"    {sign} ", style=_STYLES[_STARTING]), Text(text, style=_STYLES[_STARTING]))


def pool_cost(pool: MapPool) -> str:
    """Return what the nodes of a pool cost; "" without nodes."""
    return hourly_words(pool["cost"], "USD/h", "~" if pool["rough"] else "") if pool["nodes"] else ""


def shown_pools(cluster: MapCluster, *, free: bool) -> list[MapPool]:
    """Return the pools of a cluster that the map shows."""
    return [pool for pool in cluster["pools"] if not free or has_free(pool["stocks"])]


def shown_nodes(pool: MapPool, *, free: bool) -> list[MapNode]:
    """Return the nodes of a pool that the map shows."""
    return [node for node in pool["nodes"] if not free or has_free(node["stocks"])]


def has_free(stocks: Iterable[MapStock]) -> bool:
    """Return whether a device is free."""
    return any(stock["free"] for stock in stocks)


def _folded(nodes: Sequence[MapNode], view: View) -> Iterator[list[MapNode]]:
    """Group nodes that look the same; a pipe, -v, and a small pool have a line for each."""
    if view.verbose or not view.width or len(nodes) <= _FEW_NODES:
        yield from ([node] for node in nodes)
        return
    found: dict[str, list[MapNode]] = {}
    for node in nodes:
        devices = [(device["profile"], device["state"]) for device in node["devices"]]
        key = repr((node["state"], node["reason"], node["stocks"], devices, node["heldBy"]))
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
    if state := NODE_WORDS[node["state"]]:
        parts.append([(state + (f": {node['reason']}" if node["reason"] else ""), "yellow")])
    if others:
        parts.append([(f"x {len(alike)} nodes like this", "bold")])
    parts.append(_holders(node) if others else _pods(node["pods"], view))
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


def _pods(pods: Sequence[MapPod], view: View, within: str = "") -> list[str | Piece]:
    """Return pods with their devices; those of the namespace that is shown go without its name."""
    shown = pods if view.verbose or not view.width else pods[:_FEW_PODS]
    parts: list[str | Piece] = []
    for pod in shown:
        what = "claim " if pod["claimOnly"] else ""
        name = pod["name"] if pod["namespace"] == within else f"{pod['namespace']}/{pod['name']}"
        parts.append(f"{', ' if parts else ''}{what}{name} {sum(pod['devices'].values())}")
        if pod["trouble"]:
            parts.append((f" ({pod['trouble']})", "red"))
    if more := len(pods) - len(shown):
        parts.append(f" and {more} more")
    return parts


def _holders(node: MapNode) -> list[str | Piece]:
    spaces = node["heldBy"].items()
    return [", ".join(f"{name} {sum(counts.values())}" for name, counts in spaces) + " each"] if spaces else []


def _waiting(pods: Sequence[MapWaiting], view: View) -> Iterator[Line]:
    shown = pods if view.verbose or not view.width else pods[:_FEW_WAITING]
    for pod in shown:
        why = f": {why}" if (why := why_words(pod)) else ""
        text = f"{pod['namespace']}/{pod['name']} for {counts_words(pod['devices'])}{why}"
        yield Hung(Text("  waits: ", style="yellow"), Text(text))
    if more := len(pods) - len(shown):
        yield Text(f"  and {plural(more, 'more pod')} that wait (-v shows all)", style="dim")


def _namespaces(document: MapDocument, view: View) -> Iterator[Line]:
    """Show who holds what and where, and who waits."""
    for cluster in document["clusters"]:
        if cluster["error"] or cluster["unknown"]:
            yield from _cluster(cluster, view, empty_words(document), free=False)
    for space in document["namespaces"]:
        yield ""
        name = space["namespace"]
        words = [f"holds {held_words(space['held'])}, USD/h: {held_price(space)}"] if space["held"] else []
        words += [f"waits for {counts_words(space['waiting'])}"] if space["waiting"] else []
        yield Hung(Text.assemble((name, "bold"), "  "), Text("; ".join(words)))
        for place, count, pods in places_of(document, name):
            cells = _sign(_HELD, view) * count if count <= _CELLS else f"{_sign(_HELD, view)}x{count}"
            yield Hung(
                Text(f"  {place}  "), Text.assemble((cells, _STYLES[_HELD]), " ", *_pods(pods, view, within=name))
            )
        for cluster in document["clusters"]:
            for waiting in (pod for pod in cluster["waiting"] if pod["namespace"] == name):
                why = f": {why}" if (why := why_words(waiting)) else ""
                text = f"{waiting['name']} on {cluster['cluster']} for {counts_words(waiting['devices'])}{why}"
                yield Hung(Text("  waits: ", style="yellow"), Text(text))
    if not document["namespaces"]:
        yield Text("no pod holds a GPU or waits for one", style="dim")


def places_of(document: MapDocument, namespace: str) -> Iterator[tuple[str, int, list[MapPod]]]:
    """Yield the pools in which a namespace holds devices, how many, and its pods there."""
    for cluster in document["clusters"]:
        for pool in cluster["pools"]:
            nodes = [node for node in pool["nodes"] if namespace in node["heldBy"]]
            count = sum(sum(node["heldBy"][namespace].values()) for node in nodes)
            pods = [pod for node in nodes for pod in node["pods"] if pod["namespace"] == namespace]
            if nodes:
                yield f"{cluster['cluster']}/{pool_name(pool)}", count, pods


def pool_name(pool: MapPool) -> str:
    """Return the name of a pool for people."""
    return pool["pool"] or pool["name"] or NO_POOL


def _legend(document: MapDocument, view: View) -> Iterator[Line]:
    yield ""
    parts: list[str | Piece] = []
    for state, words in enumerate(STATE_WORDS):
        parts += ["  " if parts else "", (_sign(state, view), _STYLES[state]), f" {words}"]
    yield Hung(Text(""), Text.assemble(*parts))
    nodes = [node for cluster in document["clusters"] for pool in cluster["pools"] for node in pool["nodes"]]
    if any(node["attribution"] == "counts" for node in nodes):
        yield Hung(
            Text(""), Text("Cells are counts of a node, not positions: nothing publishes which pod has which GPU.")
        )
    if any(node["attribution"] == "devices" for node in nodes):
        yield Hung(Text(""), Text(f"{_KNOWN} cells are devices: claims publish which pod has which (-o json)."))
    for note in source_notes([pool for cluster in document["clusters"] for pool in cluster["pools"] if pool["nodes"]]):
        yield Hung(Text("note: ", style="dim"), Text(note, style="dim"))


def _sign(state: int, view: View) -> str:
    return (SIGNS if view.signs else _ASCII)[state]
