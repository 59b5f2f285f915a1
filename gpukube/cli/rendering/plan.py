"""Human-readable Plan and Diff: stacked facts, or on wide terminals a table with details below it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from gpukube.cli.rendering.lines import (
    ACTION_STYLES,
    INDENT,
    QUIET_ACTIONS,
    WIDE,
    change_lines,
    difference_lines,
    fact,
    finding_lines,
    gpu_words,
    headline,
    node_words,
)
from gpukube.cli.rendering.plan_parts import (
    duration_words,
    endless_words,
    leaving_lines,
    needs_words,
    quota_lines,
    replacement_lines,
    upgrade_lines,
)
from gpukube.cli.rendering.prices import price_change, price_line, price_notes, price_words, usd_range
from gpukube.cli.rendering.text import Hung, Table, Text
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
    outcome_of_diff,
    release_acts,
    releases_of,
    repair_words,
    short_devices,
    stuck_line,
    toleration_lines,
    unread_line,
)
from gpukube.engine.documents.plan_parts import has_no_end
from gpukube.engine.documents.summary import plan_summary

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpukube.cli.rendering.text import Line
    from gpukube.cli.rendering.view import View
    from gpukube.engine.documents.shapes.parts import Request
    from gpukube.engine.documents.shapes.plan import ClusterPart, PlanDocument, PoolPart, Release

DETAIL: Final = "    "
"""Indent of details below a table."""
_FOR_USERS: Final = ("create", "adopt", "replace", "update")
"""Actions after which pods may need other tolerations than before; for unchanged pools, only -v shows them."""


def render_plan(document: PlanDocument, view: View) -> Iterator[Line]:
    """Show every pool with its action, future devices, cost and reason; then the totals."""
    for cluster in document["clusters"]:
        yield from _head(cluster)
        yield from _cluster_table(cluster, view) if view.width >= WIDE else _stacked(cluster["pools"], view)
        for pool in cluster["unplanned"]:  # cluster could not be read: show what the spec alone defines
            yield headline("unknown", pool["name"], pool["instanceType"], node_words(pool["nodes"]))
            yield fact("devices", device_change(pool))
            yield fact("why", "the cluster could not be read")
        yield from quota_lines(cluster["quotas"])
        yield from _inside(cluster, view)
        yield ""
    yield Hung(Text("plan: "), Text(plan_summary(document)))
    if document["clusters"]:
        yield gpu_line(document)
    if duration := document["summary"]["duration"]:
        yield Hung(Text("time: "), Text(duration_words(duration)))
    yield from (Hung(Text("time: "), Text(f"no estimate: {words}")) for words in endless_drains(document))
    yield from _price(document, view)
    yield from _unread(document)
    for line in filter(None, (needs_line(document), stuck_line(document))):
        yield Hung(Text(""), Text(line, style="yellow"))


def endless_drains(document: PlanDocument) -> Iterator[str]:
    """Return the drains that do not end on their own."""
    for pool in (pool for cluster in document["clusters"] for pool in cluster["pools"]):
        if has_no_end(pool):
            yield endless_words(pool["name"], pool["leaving"], pool["price"])


def render_diff(document: PlanDocument, view: View) -> Iterator[Line]:
    """Show only differences, field by field; and health problems, which are not differences."""
    for cluster in document["clusters"]:
        lines = list(_differences(cluster, view))
        if lines or cluster["error"] or cluster["unknown"]:
            yield from _head(cluster)
            yield from lines
            yield ""
    yield outcome_of_diff(document)
    if any(pool["action"] not in QUIET_ACTIONS for cluster in document["clusters"] for pool in cluster["pools"]):
        yield from _price(document, view)
    yield from _unread(document)


def _price(document: PlanDocument, view: View) -> Iterator[Line]:
    """Show the total cost of all pools; nothing if no cluster could be read."""
    total = document["summary"]["price"]
    if any(cluster["pools"] for cluster in document["clusters"]):
        yield Hung(Text(""), Text(price_line(total)))
        if view.verbose:
            monthly = total["usdPerMonth"]
            yield f"730 hours: {usd_range(monthly['before'])} now, {usd_range(monthly['after'])} USD after"
    if total["rough"] and not total["notes"]:
        yield Hung(
            Text("~ "), Text("marks a price from another region; --live-prices reads prices in the pools' regions")
        )
    yield from price_notes(total)


def _head(cluster: ClusterPart) -> Iterator[Line]:
    version = f"Kubernetes {cluster['kubernetesVersion']}" if cluster["kubernetesVersion"] else ""
    facts = [cluster["provider"], cluster["location"], cluster["status"], version]
    yield Text.assemble((cluster["cluster"], "bold"), "  ", (" · ".join(f for f in facts if f), "dim"))
    if cluster["error"]:
        yield from finding_lines(cluster["error"])
    elif cluster["unknown"]:
        yield Hung(Text("  "), Text(f"inside the cluster: unknown: {cluster['unknown']}"))


def _unread(document: PlanDocument) -> Iterator[Line]:
    if line := unread_line(document):
        yield Hung(Text(""), Text(line))


def _stacked(pools: Iterable[PoolPart], view: View) -> Iterator[Line]:
    for pool in pools:
        where = f"in {', '.join(pool['zones'])}" if pool["zones"] else ""
        size = node_words(pool["nodes"]) if pool["nodes"] else ""
        yield headline(pool["action"], pool["name"], pool["instanceType"] or "", size, where)
        if pool["action"] != "standby":
            yield fact("devices", device_change(pool))
        yield from _details(pool, view, indent=INDENT, why=True)


def _cluster_table(cluster: ClusterPart, view: View) -> Iterator[Line]:
    titles = ("  ACTION", "POOL", "TYPE", "NODES", "GPUS PER NODE", "DEVICES NOW -> AFTER", "USD/H NOW -> AFTER", "WHY")
    table = Table(titles)
    for pool in cluster["pools"]:
        _add_pool(table, pool)
    if table.rows:
        yield table
    for pool in cluster["pools"]:
        lines = list(_details(pool, view, indent=DETAIL, why=False))
        if lines:
            yield Text(f"  {pool['name']}", style="bold")
            yield from lines


def _add_pool(table: Table, pool: PoolPart) -> None:
    sign, style = ACTION_STYLES[pool["action"]]
    size = node_words(pool["nodes"]) if pool["nodes"] else "-"
    where = f" in {', '.join(pool['zones'])}" if pool["zones"] else ""
    table.add_row(
        Text(f"  {sign} {pool['action']}", style=style),
        pool["name"],
        pool["instanceType"] or "-",
        size + where,
        gpu_words(pool["gpu"]) or "-",
        short_devices(pool),
        price_change(pool["price"]),
        pool["why"],
    )


def _details(pool: PoolPart, view: View, *, indent: str, why: bool) -> Iterator[Line]:
    quiet = pool["action"] == "no-op" and not why and not view.verbose
    brief = pool["action"] == "standby" and not view.verbose
    if rank := family_words(pool):
        yield fact("rank", rank, indent=indent)
    if pool["price"] and not quiet:
        yield fact("price", price_words(pool["price"]), indent=indent)
    if waiting := family_wait(pool):
        yield fact("waits", waiting, indent=indent)
    if pool["driver"] and not quiet and not brief:
        entry = f", entry {pool['configEntry']}" if pool["configEntry"] else ""
        yield fact("driver", f"{pool['driver']}; device plugin: {pool['devicePlugin']}{entry}", indent=indent)
    for feature, how in () if quiet or brief else pool["fidelity"].items():
        by = f"missing: {how['reason']}" if how["fidelity"] == "missing" else f"done by {how['substitute']}"
        yield fact("how", f"{feature}: {by}", indent=indent)
    if pool["ownership"] and not brief:
        yield fact("owner", pool["ownership"], indent=indent)
    if why and pool["why"] not in {found["message"] for found in pool["diagnostics"]}:
        yield fact("why", pool["why"])
    yield from _consequences(pool, view, indent=indent)
    if pool["tolerations"] and (view.verbose or pool["action"] in _FOR_USERS):
        yield fact("pods", "need these in their spec; nothing adds them:", indent=indent)
        yield from (fact("", line, indent=indent) for line in toleration_lines(pool["tolerations"]))
    if view.verbose:
        for request in pool["requests"]:
            yield from _native(request, indent)


def _consequences(pool: PoolPart, view: View, *, indent: str) -> Iterator[Line]:
    """Show the changes, their cost, the flags they need, and what prevents them."""
    if pool["loss"]:
        style = "bold red" if pool["action"] in ("replace", "delete") else "yellow"
        yield fact("costs", cost_words(pool["loss"], whole=view.verbose), style, indent=indent)
    if pool["leaving"]:
        yield from leaving_lines(pool["leaving"], indent=indent, whole=view.verbose)
    if pool["needs"]:
        yield fact("needs", needs_words(pool), indent=indent)
    yield from replacement_lines(pool, indent=indent)
    for change in pool["changes"]:
        yield from change_lines(change, indent=indent)
    if pool["upgrades"]:
        yield from upgrade_lines(pool["upgrades"], indent=indent)
    yield from _health(pool, indent)
    yield from finding_lines(pool["diagnostics"], indent=indent)


def _health(pool: PoolPart, indent: str) -> Iterator[Line]:
    live, health = pool["live"], pool["health"]
    if live and live["state"] == "failed" and live["failure"]:
        yield fact("health", f"{live['status']}: {live['failure']}", "yellow", indent=indent)
    for finding in health["findings"] if health else ():
        if finding["weight"] != "note":
            yield fact("health", f"{finding['where']}: {finding['seen']}", "yellow", indent=indent)


def _native(request: Request, indent: str) -> Iterator[Line]:
    yield f"{indent}{request['service']}: {request['operation']}"
    for line in json.dumps(request["params"], indent=2).splitlines():
        margin = len(line) - len(line.lstrip())
        yield Hung(Text(f"{indent}  {line[:margin]}"), Text(line[margin:]))


def _inside(cluster: ClusterPart, view: View) -> Iterator[Line]:
    for release in releases_of(cluster):
        yield from _release(release, view)
    for repair in cluster["nodeRepairs"]:
        yield headline("repair", f"node {repair['node']}", f"of {repair['pool']}")
        yield Hung(Text(f"{INDENT}~ "), Text(repair_words(repair)))
    for order in orders_of(cluster):
        yield headline(order["action"], order["object"])
        yield fact("why", order_words(order))
        yield from (Hung(Text(f"{INDENT}    "), Text(line)) for line in order["content"])
    yield from finding_lines(cluster["diagnostics"])
    for pool in cluster["undeclared"]:
        yield headline("extra", pool["name"])
        yield fact("why", f'belongs to "{pool["owner"]}", and the spec does not declare it')
        ways = f"gpukube pool delete {pool['pool']} -f SPEC, or gpukube pool apply -f SPEC {' '.join(pool['needs'])}"
        yield fact("fix", f"declare it again, or: {ways}")


def _release(release: Release, view: View) -> Iterator[Line]:
    yield headline(release["action"], f"release {release['namespace']}/{release['name']}")
    if release_acts(release):
        entries = f", entries {', '.join(release['entries'])}" if release["entries"] else ""
        yield fact("chart", f"{release['chart']} {release['version']}{entries}")
    yield fact("why", release["why"])
    for drift in release["drift"]:
        yield Hung(Text(f"{INDENT}~ "), Text(drift_words(drift)))
    if view.verbose or release["action"] == "upgrade":
        for change in release["changes"]:
            first, *items = difference_lines(change["path"], change["old"], change["new"])
            yield Hung(Text(f"{INDENT}~ "), Text(first))
            yield from (Hung(Text(f"{INDENT}    {item[:2]}"), Text(item[2:])) for item in items)


def _differences(cluster: ClusterPart, view: View) -> Iterator[Line]:
    for pool in cluster["pools"]:
        if pool["action"] == "standby" and not pool["live"] and not pool["diagnostics"]:
            continue
        if pool["action"] != "no-op":
            yield headline(pool["action"], pool["name"])
            if rank := family_words(pool):
                yield fact("rank", rank)
            if pool["price"]:
                yield fact("price", price_words(pool["price"]))
            yield fact("why", pool["why"])
            yield from _consequences(pool, view, indent=INDENT)
        elif health := list(_health(pool, INDENT)):
            yield headline("no-op", pool["name"])
            yield from health
    first, second = (
        release if release and release_acts(release) else None
        for release in (cluster["release"], cluster.get("draRelease"))
    )
    yield from _inside({**cluster, "release": first, "draRelease": second}, view)
