"""The page of a map: clusters, pools, nodes and devices with their states, who holds them, and who waits."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

from gpukube.cli.formats.html.cells import (
    ABSENT,
    FREE,
    HELD,
    STARTING,
    UNHEALTHY,
    UNUSABLE,
    cells,
    legend,
    strip,
)
from gpukube.cli.formats.html.page import NONE, Markup, bar, cut, joined, page, sentence, table, tag
from gpukube.cli.formats.html.parts import finding_list, folded, tools
from gpukube.cli.rendering.lines import gpu_words, number, plural
from gpukube.cli.rendering.map import (
    COST_UNIT,
    NODE_WORDS,
    counts_words,
    empty_words,
    has_free,
    heading,
    held_price,
    held_words,
    places_of,
    pool_cost,
    pool_name,
    read_time,
    shown_nodes,
    shown_pools,
    stock_name,
    stock_words,
    why_words,
)
from gpukube.cli.rendering.prices import hourly_words, source_notes
from gpukube.engine.documents.shards import part_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gpukube.cli.formats.html.cells import State
    from gpukube.engine.documents.shapes.map import (
        MapCluster,
        MapDevice,
        MapDocument,
        MapHolder,
        MapNode,
        MapPod,
        MapPool,
        MapStock,
        MapWaiting,
    )
    from gpukube.usage.world import DeviceState

_STATES: Final[Mapping[DeviceState, State]] = {
    "held": HELD,
    "free": FREE,
    "unusable": UNUSABLE,
    "unhealthy": UNHEALTHY,
    "notAdvertised": ABSENT,
}
_CHOICES: Final = (
    ("", "all nodes"),
    ("free", "with free devices"),
    ("trouble", "with trouble"),
    ("blocked", "that take no pods"),
)
_FEW_PODS: Final = 6
_FEW_ROWS: Final = 15
"""Rows of a table beyond which it is folded."""


def map_page(document: MapDocument) -> str:
    """Return the page."""
    title, free = heading(document), document["view"]["free"]
    line = part_line(document)
    head = joined(
        (
            tag("h1", title),
            tag("p", f"Read {read_time(document)} by gpukube pool map", class_="soft"),
            tag("p", hourly_words(document["summary"]["cost"], COST_UNIT), class_="lead"),
            tag("p", line, class_="warn") if line else Markup(),
        )
    )
    clusters = document["clusters"]
    pools = [pool for cluster in clusters for pool in cluster["pools"] if pool["nodes"]]
    parts = [
        *_sums(document),
        legend((HELD, FREE, UNUSABLE, UNHEALTHY, ABSENT, STARTING)),
        *_attribution(clusters),
        *(tag("p", sentence(note), class_="small soft") for note in source_notes(pools)),
        *_namespaces(document, is_open=document["view"]["by"] == "namespace"),
        *_waiting(clusters),
        *_contents(clusters),
        tools("Filter nodes", "node, pod, namespace, pool …", _CHOICES),
        *(_cluster(cluster, number_, empty_words(document), free=free) for number_, cluster in enumerate(clusters, 1)),
    ]
    return page(title, head, joined(parts, "\n"))


def _sums(document: MapDocument) -> Iterator[Markup]:
    stocks = document["summary"]["stocks"]
    if not stocks:
        yield tag("p", "No devices are known.", class_="soft")
        return
    titles = ("Devices", "All", "Held", "Free", "On nodes that take no pods", "Unhealthy", "Not advertised")
    rows = (
        (
            joined((f"{stock_name(stock)}", tag("small", f" {cut(stock['resource'])}"), _bar(stock))),
            *(
                number(count)
                for count in (
                    stock["total"],
                    stock["held"],
                    stock["free"],
                    stock["unusable"],
                    stock["unhealthy"] + stock["heldUnhealthy"],
                    stock["notAdvertised"],
                )
            ),
        )
        for stock in stocks
    )
    yield tag("section", tag("h2", "Devices"), table("All clusters", titles, rows), class_="sums")


def _bar(*stocks: MapStock) -> Markup:
    return bar((state.key, sum(stock[key] for stock in stocks)) for key, state in _STATES.items())


def _attribution(clusters: Iterable[MapCluster]) -> Iterator[Markup]:
    """Say which cells are positions and which only counts."""
    nodes = [node for cluster in clusters for pool in cluster["pools"] for node in pool["nodes"]]
    if any(node["attribution"] == "counts" for node in nodes):
        text = "Cells are counts of a node, not positions: nothing publishes which pod has which device."
        yield tag("p", text, class_="small soft")
    if any(node["attribution"] == "devices" for node in nodes):
        text = "On nodes marked “devices known”, each cell is one device: claims publish which pod has it."
        yield tag("p", text, class_="small soft")


def _namespaces(document: MapDocument, *, is_open: bool) -> Iterator[Markup]:
    spaces = document["namespaces"]
    if not spaces:
        yield tag("p", "No pod holds a device or waits for one.", class_="soft")
        return
    rows = [
        (
            cut(space["namespace"]),
            held_words(space["held"]) or NONE,
            held_price(space) if space["held"] else NONE,
            counts_words(space["waiting"]) or NONE,
            ", ".join(f"{cut(place)} {count}" for place, count, _ in places_of(document, space["namespace"])) or NONE,
        )
        for space in spaces
    ]
    shown = table("Devices by namespace", ("Namespace", "Holds", "USD per hour", "Waits for", "Where"), rows)
    yield _section("Who holds them", plural(len(spaces), "namespace"), shown, is_open=is_open or len(rows) <= _FEW_ROWS)


def _waiting(clusters: Iterable[MapCluster]) -> Iterator[Markup]:
    pods = [(cluster, pod) for cluster in clusters for pod in cluster["waiting"]]
    if not pods:
        return
    rows = [
        (
            f"{cut(pod['namespace'])}/{cut(pod['name'])}",
            _place(cluster, pod),
            cut(counts_words(pod["devices"])),
            why_words(pod) or "not tried yet",
        )
        for cluster, pod in pods
    ]
    shown = table("Pods that wait for devices", ("Pod", "Cluster", "Waits for", "Why"), rows)
    yield _section("Who waits", plural(len(pods), "pod"), shown, is_open=len(rows) <= _FEW_ROWS)


def _place(cluster: MapCluster, pod: MapWaiting) -> str:
    return cut(cluster["cluster"]) + (f"/{cut(pod['pool'])}" if pod["pool"] else "")


def _section(title: str, count: str, shown: Markup, *, is_open: bool) -> Markup:
    body = shown if is_open else folded(count, shown)
    return tag("section", tag("h2", title), body)


def _contents(clusters: Sequence[MapCluster]) -> Iterator[Markup]:
    if len(clusters) > 1:
        links = (
            tag("li", tag("a", cut(cluster["cluster"]), href=f"#cluster-{place}"))
            for place, cluster in enumerate(clusters, 1)
        )
        yield tag("nav", tag("h2", "Clusters"), tag("ul", *links), aria_label="Clusters")


def _cluster(cluster: MapCluster, place: int, empty: str, *, free: bool) -> Markup:
    facts = " ".join(filter(None, (cluster["provider"], cluster["region"])))
    parts = [tag("h2", cut(cluster["cluster"]), " ", tag("small", facts))]
    if cluster["error"]:
        parts.append(finding_list(cluster["error"]))
    if cluster["unknown"]:
        parts.append(tag("p", f"Nodes and pods are unknown: {cluster['unknown']}", class_="warn"))
    pools = shown_pools(cluster, free=free)
    if not pools and not cluster["error"]:
        parts.append(tag("p", sentence(empty), class_="soft"))
    for family, members in groupby(pools, key=lambda pool: pool["family"]):
        shown = [_pool(pool, free=free) for pool in members]
        if family:
            name = f"Family {cut(family)}"
            parts.append(tag("div", tag("p", name), *shown, class_="family", role="group", aria_label=name))
        else:
            parts += shown
    # Without a node that is shown, the filter does not hide it: its heading says why.
    has_nodes = any(pool["nodes"] for pool in pools)
    return tag(
        "section",
        joined(parts, "\n"),
        id=f"cluster-{place}",
        class_="cluster group" if has_nodes else "cluster",
        data_name=cut(cluster["cluster"]),
    )


def _pool(pool: MapPool, *, free: bool) -> Markup:
    name = pool_name(pool)
    nodes = shown_nodes(pool, free=free)
    omitted = len(pool["nodes"]) - len(nodes)
    gpus = gpu_words(pool["gpu"])
    facts = [
        pool["name"] if pool["name"] != name and pool["pool"] else "",
        f"{pool['instanceType']} ({gpus})" if gpus and pool["instanceType"] else pool["instanceType"] or gpus,
        f"owner {pool['owner']}" if pool["owner"] else "",
        pool["state"] if pool["state"] != "ready" else "",
        plural(len(pool["nodes"]), "node") if pool["nodes"] or not pool["nodeCount"] else "",
        pool_cost(pool),
    ]
    counts = "; ".join(map(stock_words, pool["stocks"]))
    summary = tag(
        "summary",
        tag("span", tag("h3", cut(name)), class_="title"),
        _bar(*pool["stocks"]) if pool["stocks"] else Markup(),
        tag("span", " · ".join(cut(fact) for fact in facts if fact), class_="facts"),
        tag("span", counts, class_="counts"),
    )
    whys = {node["why"] for node in nodes}
    parts = [tag("p", sentence(why), class_="small soft") for why in whys if len(whys) == 1]
    tiles = [_node(node, tell_why=len(whys) > 1) for node in nodes]
    if pool["starting"] and not free:
        text = f"{plural(pool['starting'], 'node')} starting: not in the cluster yet"
        words = tag("span", text, class_="of")
        tiles.append(tag("li", strip(cells(STARTING, pool["starting"])), words, class_="node starting item blocked"))
    if tiles:
        parts.append(tag("ul", joined(tiles, "\n"), class_="nodes", role="list"))
    if omitted:
        parts.append(tag("p", f"{plural(omitted, 'node')} without free devices left out.", class_="small soft"))
    has_items = "pool group" if tiles else "pool"
    inner = parts or [tag("p", "No nodes in the cluster.", class_="small soft")]
    return tag("details", summary, tag("div", *inner, class_="inner"), class_=has_items, open="", data_name=cut(name))


def _node(node: MapNode, *, tell_why: bool) -> Markup:
    state = NODE_WORDS[node["state"]]
    chips = [tag("span", "devices known", class_="chip")] if node["attribution"] == "devices" else []
    if state:
        chips.append(tag("span", state, class_="chip warn"))
    parts = [tag("div", tag("span", cut(node["name"]), class_="name"), tag("span", *chips), class_="top")]
    if node["reason"]:
        parts.append(tag("p", node["reason"], class_="small warn"))
    if node["devices"]:
        parts.append(_gpus(node))
    claimed = {device["resource"] for device in node["devices"]}
    parts += [_stock(stock, node, drawn=stock["resource"] not in claimed) for stock in node["stocks"]]
    if not node["stocks"]:
        parts.append(tag("p", "no GPUs known", class_="small soft"))
    parts += _pods(node["pods"])
    if node["devices"]:
        parts.append(_device_list(node))
    if tell_why:
        parts.append(tag("p", sentence(node["why"]), class_="small soft"))
    return tag("li", *parts, class_=f"node item {_marks(node)}".rstrip())


def _marks(node: MapNode) -> str:
    """Return the classes by which the page is filtered."""
    bad = ("unhealthy", "heldUnhealthy", "notAdvertised")
    trouble = any(stock[key] for stock in node["stocks"] for key in bad) or any(  # type: ignore[literal-required]
        pod["trouble"] for pod in node["pods"]
    )
    marks = (
        ("free", has_free(node["stocks"])),
        ("trouble", trouble or node["state"] == "notReady"),
        ("blocked", node["state"] != "ready"),
    )
    return " ".join(name for name, holds in marks if holds)


def _stock(stock: MapStock, node: MapNode, *, drawn: bool) -> Markup:
    shown = strip(*(cells(_shown(state, node), stock[key]) for key, state in _STATES.items()))
    per_gpu = f", {stock['perGpu']} per GPU" if stock["kind"] != "gpu" and stock["perGpu"] else ""
    words = tag("span", f"{stock_words(stock)}{per_gpu}", class_="of")
    return tag("div", shown, words, class_="stock") if drawn else tag("div", words, class_="stock")


def _shown(state: State, node: MapNode) -> State:
    """Return the state of a device; a node that starts has no trouble yet."""
    return STARTING if node["state"] == "starting" and state in (UNUSABLE, ABSENT) else state


def _gpus(node: MapNode) -> Markup:
    """Draw the devices in their places: those of a divided GPU in one box."""
    boxes = []
    for _, members in groupby(node["devices"], key=lambda device: device["gpu"]):
        parts: list[Markup] = []
        for profile, devices in groupby(members, key=lambda device: device["profile"]):
            parts.append(strip(*(_cell(device, node) for device in devices)))
            if profile:
                parts.append(tag("span", cut(profile), class_="of"))
        boxes.append(tag("li", *parts))
    return tag("ul", *boxes, class_="gpus", role="list", aria_label="GPUs")


def _cell(device: MapDevice, node: MapNode) -> Markup:
    state = _shown(_STATES[device["state"]], node)
    return tag("i", state.sign, class_=state.key, title=f"{cut(device['name'])}: {_holding(device, node)}")


def _holding(device: MapDevice, node: MapNode) -> str:
    """Return the state of a device, and who holds it."""
    who = ", ".join(map(_holder, device["holders"]))
    words = f"held by {who}" if who else _shown(_STATES[device["state"]], node).words
    reason = f" (unhealthy: {device['reason']})" if device["reason"] and who else ""
    reason = reason or (f": {device['reason']}" if device["reason"] else "")
    return f"{words}{reason}"


def _holder(holder: MapHolder) -> str:
    pod = f"{cut(holder['namespace'])}/{cut(holder['pod'])}" if holder["pod"] else ""
    claim = f"claim {cut(holder['claim'])}" if pod else f"claim {cut(holder['namespace'])}/{cut(holder['claim'])}"
    return f"{pod} ({claim})" if pod else claim


def _device_list(node: MapNode) -> Markup:
    items = (
        tag("li", tag("b", cut(device["name"])), f"{_part(device)}: {_holding(device, node)}")
        for device in node["devices"]
    )
    return folded(plural(len(node["devices"]), "device"), tag("ul", *items, class_="pods", role="list"))


def _part(device: MapDevice) -> str:
    return f", {cut(device['profile'])} of {cut(device['gpu'])}" if device["profile"] else ""


def _pods(pods: Sequence[MapPod]) -> Iterator[Markup]:
    shown, others = pods[:_FEW_PODS], pods[_FEW_PODS:]
    if len(others) == 1:
        shown, others = pods, []
    if shown:
        yield tag("ul", *map(_pod, shown), class_="pods", role="list", aria_label="Held by")
    if others:
        yield folded(f"and {len(others)} more pods", tag("ul", *map(_pod, others), class_="pods", role="list"))


def _pod(pod: MapPod) -> Markup:
    what = "claim " if pod["claimOnly"] else ""
    count = sum(pod["devices"].values())
    trouble = tag("span", f" {cut(pod['trouble'])}", class_="bad") if pod["trouble"] else Markup()
    name = f"{what}{cut(pod['namespace'])}/{cut(pod['name'])} "
    return tag("li", name, tag("b", f"\u00d7{count}"), trouble)
