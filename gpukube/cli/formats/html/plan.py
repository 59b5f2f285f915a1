"""The page of a plan: each pool's nodes and GPUs now and after, prices, warnings, and the exact requests, folded."""

from __future__ import annotations

import json
from itertools import groupby
from typing import TYPE_CHECKING, Final

from gpukube.cli.formats.html.cells import MOST_CELLS, State, cells, legend, strip
from gpukube.cli.formats.html.page import NONE, Markup, cut, joined, lines_of, page, sentence, table, tag
from gpukube.cli.formats.html.parts import finding_list, folded, tools
from gpukube.cli.rendering.lines import (
    ACTION_STYLES,
    QUIET_ACTIONS,
    difference_lines,
    gpu_words,
    node_words,
    plural,
    value_words,
)
from gpukube.cli.rendering.plan_parts import duration_words, leaving_facts, leaving_words, needs_words, surge_facts
from gpukube.cli.rendering.prices import price_change, price_line, price_words
from gpukube.cli.rendering.words import (
    cost_words,
    device_change,
    drift_words,
    family_wait,
    family_words,
    gpu_line,
    needs_line,
    order_words,
    orders_of,
    releases_of,
    repair_words,
    stuck_line,
    toleration_lines,
    unread_line,
)
from gpukube.engine.documents.shards import part_line
from gpukube.engine.documents.summary import plan_summary

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gpukube.engine.documents.shapes.parts import Change, GpuModel, Request
    from gpukube.engine.documents.shapes.plan import ClusterPart, PlanDocument, PoolPart, UnplannedPool

STAYS: Final = State("h", "■", "stays")
DISRUPTED: Final = State("changed", "~", "stays, its pods are disrupted")
GONE: Final = State("gone", "-", "goes")
NEW: Final = State("new", "+", "appears")
POSSIBLE: Final = State("s", "…", "may appear: for the autoscaler, or as an alternative")
_VERBS: Final[Mapping[State, tuple[str, str]]] = {
    STAYS: ("stays", "stay"),
    DISRUPTED: ("is disrupted", "are disrupted"),
    GONE: ("goes", "go"),
    NEW: ("appears", "appear"),
    POSSIBLE: ("may appear", "may appear"),
}
_CHOICES: Final = (("", "all pools"), ("acting", "that change"), ("found", "with findings"))
_STYLES: Final = {
    "create": "good",
    "replace": "bad",
    "delete": "bad",
    "conflict": "bad",
    "update": "warn",
    "adopt": "warn",
}
_MOST_NODES: Final = 24
"""Nodes of a pool beyond which one that is drawn stands for all in its state."""


def plan_page(document: PlanDocument) -> str:
    """Return the page."""
    line = part_line(document)
    head = joined(
        (
            tag("h1", "What gpukube would change"),
            tag("p", sentence(plan_summary(document)), class_="lead"),
            tag("p", line, class_="warn") if line else Markup(),
        )
    )
    facts = [_named(gpu_line(document)), _named(price_line(document["summary"]["price"]))]
    facts += [("", note) for note in document["summary"]["price"]["notes"]]
    if duration := document["summary"]["duration"]:
        facts.append(("time", duration_words(duration)))
    notes = [sentence(text) for text in (needs_line(document), stuck_line(document), unread_line(document)) if text]
    parts = [
        _list(facts),
        *(tag("p", note, class_="warn") for note in notes),
        *_losses(document),
        *_warnings(document),
        legend((STAYS, NEW, GONE, DISRUPTED, POSSIBLE)),
        tools("Filter pools", "pool, cluster, type, field …", _CHOICES),
        *map(_cluster, document["clusters"]),
    ]
    return page(f"gpukube plan: {plan_summary(document)}", head, joined(parts, "\n"))


def _named(line: str) -> tuple[str, str]:
    """Split a line at its name: `price: 0 now`."""
    name, _, text = line.partition(": ")
    return name, text


def _list(facts: Iterable[tuple[str, str]]) -> Markup:
    """Return named facts; those without a name belong to the one before."""
    parts: list[Markup] = []
    for name, text in facts:
        if name:
            parts.append(tag("dt", f"{name[:1].upper()}{name[1:]}"))
        parts.append(tag("dd", text.replace("->", "\u2192")))
    return tag("dl", *parts)


def _losses(document: PlanDocument) -> Iterator[Markup]:
    """Put what is deleted before everything else."""
    lost = [
        tag("li", tag("b", f"{cut(cluster['cluster'])}/{cut(pool['pool'])} {pool['action']}"), f": {cost_words(loss)}")
        for cluster in document["clusters"]
        for pool in cluster["pools"]
        if (loss := pool["loss"])
    ]
    if lost:
        yield tag("section", tag("h2", "What is lost"), tag("ul", *lost, class_="findings"))


def _warnings(document: PlanDocument) -> Iterator[Markup]:
    """Show errors and warnings; hints are folded."""
    grave = [found for found in document["warnings"] if found["severity"] != "hint"]
    hints = [found for found in document["warnings"] if found["severity"] == "hint"]
    parts = [finding_list(grave)] if grave else []
    parts += [folded(plural(len(hints), "hint"), finding_list(hints))] if hints else []
    if parts:
        yield tag("section", tag("h2", "Findings on the spec"), *parts)


def _cluster(cluster: ClusterPart) -> Markup:
    version = f"Kubernetes {cluster['kubernetesVersion']}" if cluster["kubernetesVersion"] else ""
    facts = " · ".join(filter(None, (cluster["provider"], cluster["location"], cluster["status"], version)))
    parts = [tag("h2", cut(cluster["cluster"]), " ", tag("small", facts))]
    if cluster["error"]:
        parts.append(finding_list(cluster["error"]))
    if cluster["unknown"]:
        parts.append(tag("p", sentence(f"inside the cluster: unknown: {cluster['unknown']}"), class_="warn"))
    for quota in cluster["quotas"]:
        known = (
            f"needs {quota['needed']:g} more {quota['unit']}, used {_known(quota['used'])} of {_known(quota['limit'])}"
        )
        style = "warn" if quota["short"] else "soft"
        parts.append(tag("p", sentence(f"quota {quota['title']}: {known}. {quota['fix']}".rstrip()), class_=style))
    parts += [tag("p", text) for text in _inside(cluster)]
    if cluster["diagnostics"]:
        parts.append(finding_list(cluster["diagnostics"]))
    for family, members in groupby(cluster["pools"], key=_family):
        shown = [_pool(pool) for pool in members]
        if family:
            name = f"Family {cut(family)}"
            parts.append(tag("div", tag("p", name), *shown, class_="family", role="group", aria_label=name))
        else:
            parts += shown
    parts += map(_unplanned, cluster["unplanned"])
    has_items = "cluster group" if cluster["pools"] else "cluster"
    return tag("section", joined(parts, "\n"), class_=has_items, data_name=cut(cluster["cluster"]))


def _known(amount: float | None) -> str:
    return "?" if amount is None else f"{amount:g}"


def _family(pool: PoolPart) -> str:
    return pool["family"]["name"] if "family" in pool else ""


def _inside(cluster: ClusterPart) -> Iterator[str]:
    for release in releases_of(cluster):
        yield sentence(f"release {release['namespace']}/{release['name']}: {release['action']}: {release['why']}")
        yield from (sentence(drift_words(drift)) for drift in release["drift"])
    for repair in cluster["nodeRepairs"]:
        yield sentence(f"node {repair['node']} of {repair['pool']}: {repair_words(repair)}")
    for order in orders_of(cluster):
        yield sentence(f"{order['action']} {order['object']}: {order_words(order)}")
    for extra in cluster["undeclared"]:
        yield sentence(f'pool {extra["name"]} belongs to "{extra["owner"]}", and the spec does not declare it')


def _unplanned(pool: UnplannedPool) -> Markup:
    words = f"? {cut(pool['name'])}, {node_words(pool['nodes'])}: unknown, because the cluster could not be read"
    return tag("p", words, class_="warn")


def _pool(pool: PoolPart) -> Markup:
    action = pool["action"]
    sign = ACTION_STYLES[action][0]
    facts = [
        f"{pool['instanceType'] or ''} {f'({gpus})' if (gpus := gpu_words(pool['gpu'])) else ''}".strip(),
        node_words(pool["nodes"]) if pool["nodes"] else "",
        f"in {', '.join(pool['zones'])}" if pool["zones"] else "",
        family_words(pool),
    ]
    style = f"chip {_STYLES.get(action, '')}".rstrip()
    summary = tag(
        "summary",
        tag("span", tag("h3", cut(pool["name"])), " ", tag("span", f"{sign} {action}", class_=style), class_="title"),
        tag(
            "span",
            f"{price_change(pool['price'])} USD/h".replace("->", "\u2192") if pool["price"] else "",
            class_="price",
        ),
        tag("span", " · ".join(fact for fact in facts if fact), class_="facts"),
    )
    inner = tag("div", joined(_details(pool), "\n"), class_="inner")
    marks = (("acting", action not in QUIET_ACTIONS), ("found", bool(pool["diagnostics"])))
    class_ = " ".join(("pool", "item", *(mark for mark, holds in marks if holds)))
    is_open = {} if action in QUIET_ACTIONS and not pool["diagnostics"] else {"open": ""}
    return tag("details", summary, inner, class_=class_, **is_open)


def _details(pool: PoolPart) -> Iterator[Markup]:
    yield tag("div", _side("Now", *_now(pool)), _side("After", *_after(pool)), class_="sides")
    yield tag("p", sentence(pool["why"]))
    facts = [("devices", device_change(pool))]
    facts += [("price", price_words(pool["price"]))] if pool["price"] else []
    facts += [("waits", text)] if (text := family_wait(pool)) else []
    facts += [("costs", cost_words(pool["loss"], whole=True))] if pool["loss"] else []
    facts += [("needs", needs_words(pool))] if pool["needs"] else []
    facts += [("surge", text) for text in (surge_facts(pool["replacement"]) if pool["replacement"] else ())]
    if leaving := pool["leaving"]:
        facts.append(("drain", leaving_words(leaving)))
        facts += [("", text) for texts, _ in leaving_facts(leaving) for text in texts]
    if pool["driver"]:
        facts.append(("driver", f"{pool['driver']}; device plugin: {pool['devicePlugin']}"))
    for feature, how in pool["fidelity"].items():
        by = f"missing: {how['reason']}" if how["fidelity"] == "missing" else f"done by {how['substitute']}"
        facts.append(("how", f"{feature}: {by}"))
    if pool["health"]:
        facts += [("health", f"{one['where']}: {one['seen']}") for one in pool["health"]["findings"]]
    yield _list(facts)
    if pool["diagnostics"]:
        yield finding_list(pool["diagnostics"])
    if pool["changes"]:
        rows = (
            (tag("code", cut(change["field"])), *_values(change), change["kind"], change["sentence"])
            for change in pool["changes"]
        )
        yield table(f"Fields of {cut(pool['name'])}", ("Field", "Now", "After", "Effect", "Meaning"), rows)
    if pool["tolerations"]:
        yield folded("Tolerations that its pods need", tag("pre", lines_of(toleration_lines(pool["tolerations"]))))
    if pool["requests"]:
        yield folded(plural(len(pool["requests"]), "request"), *map(_request, pool["requests"]))


def _request(request: Request) -> Markup:
    text = json.dumps(request["params"], indent=2, ensure_ascii=False, default=str)
    return joined((tag("h4", f"{request['service']}: {request['operation']}"), tag("pre", lines_of(text.splitlines()))))


def _values(change: Change) -> tuple[str, str]:
    """Return both values; of long lists, only the items that differ."""
    _, *items = difference_lines(change["field"], change["old"], change["new"])
    if not items:
        return value_words(change["old"]), value_words(change["new"])
    sides = ([item[2:] for item in items if item.startswith(sign)] for sign in "-+")
    removed, added = (", ".join(side) or NONE for side in sides)
    return removed, added


def _now(pool: PoolPart) -> tuple[list[tuple[State, int]] | None, GpuModel | None]:
    """Return the live nodes by what happens to them; None if their number is unknown."""
    live = pool["live"]
    if live is None:
        return [], None
    if live["nodes"] is None:
        return None, live["gpu"]
    count = live["nodes"]
    if pool["action"] in ("delete", "replace"):
        return [(GONE, count)], live["gpu"]
    stays = min(count, _wanted(pool, count))
    return [*_staying(pool, stays), (GONE, count - stays)], live["gpu"]


def _after(pool: PoolPart) -> tuple[list[tuple[State, int]] | None, GpuModel | None]:
    """Return the future nodes by where they come from; None if that is unknown."""
    nodes, live = pool["nodes"], pool["live"]
    if nodes is None:
        return [], None
    if pool["action"] == "standby" and not (live and live["nodes"]):
        return [(POSSIBLE, nodes["count"])], pool["gpu"]
    if live is None or pool["action"] == "replace":
        first = nodes["min"] if nodes["autoscaled"] else nodes["count"]
        return [(NEW, first), (POSSIBLE, nodes["max"] - first)], pool["gpu"]
    if (count := live["nodes"]) is None:
        return None, pool["gpu"]
    wanted = _wanted(pool, count)
    stays = min(count, wanted)
    more = nodes["max"] - wanted if nodes["autoscaled"] else 0
    return [*_staying(pool, stays), (NEW, wanted - stays), (POSSIBLE, more)], pool["gpu"]


def _wanted(pool: PoolPart, count: int) -> int:
    """Return the number of nodes afterwards: an autoscaler keeps the live ones, within its bounds."""
    nodes = pool["nodes"]
    if nodes is None or pool["action"] in ("conflict", "no-op"):
        return count
    return min(max(count, nodes["min"]), nodes["max"]) if nodes["autoscaled"] else nodes["count"]


def _staying(pool: PoolPart, count: int) -> list[tuple[State, int]]:
    disrupted = min(count, (pool["loss"]["nodes"] or 0) if pool["loss"] else 0)
    return [(DISRUPTED, disrupted), (STAYS, count - disrupted)]


def _side(title: str, groups: Sequence[tuple[State, int]] | None, gpu: GpuModel | None) -> Markup:
    if groups is None:
        return tag("div", tag("h4", title), tag("p", "The number of nodes is unknown.", class_="warn"))
    boxes, words = [], []
    for state, count in groups:
        if count <= 0:
            continue
        words.append(f"{plural(count, 'node')} {_VERBS[state][count != 1]}")
        box = tag("li", _gpus(state, gpu), class_=f"box {state.key}")
        if count > _MOST_NODES:
            boxes += [box, tag("li", f"\u00d7{count:,}", class_="times")]
        else:
            boxes += [box] * count
    gpus = f": {gpu_words(gpu)} on each" if gpu and words else ""
    told = tag("p", f"{', '.join(words)}{gpus}" if words else "no nodes", class_="small soft")
    picture = tag("ul", *boxes, class_="boxes", aria_hidden="true") if boxes else Markup()
    return tag("div", tag("h4", title), picture, told)


def _gpus(state: State, gpu: GpuModel | None) -> Markup:
    """Draw the GPUs of a node; a part of a GPU is one cell, like a GPU whose number is unknown."""
    count = max(1, round(gpu["count"])) if gpu else 1
    return strip(cells(state, min(count, MOST_CELLS)))
