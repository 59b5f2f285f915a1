"""Documents -> lines for people. Pure: no stream, no width; rich's Text and Table carry the styles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpukube.engine.documents import Document

__all__ = [
    "Line",
    "render_diff",
    "render_list",
    "render_plan",
    "render_pool",
    "render_report",
    "render_sandbox",
    "render_validation",
]

Line = str | Text | Table
Doc = dict[str, Any]  # documents are JSON-like; their shape is engine/documents.py

ACTION_STYLES = {
    "create": ("+", "green"),
    "install": ("+", "green"),
    "update": ("~", "yellow"),
    "upgrade": ("~", "yellow"),
    "adopt": ("~", "yellow"),
    "replace": ("!", "red"),
    "delete": ("-", "red"),
    "conflict": ("x", "red"),
    "unknown": ("?", "yellow"),
    "extra": ("?", "yellow"),
    "no-op": ("=", "dim"),
    "none": ("=", "dim"),
}
OUTCOME_STYLES = {
    "done": "green",
    "unchanged": "green",
    "differs": "yellow",
    "failed": "red",
    "not-attempted": "yellow",
}


def render_plan(document: Document, verbose: bool) -> Iterator[Line]:  # noqa: FBT001 - one form for all renderers
    """Show every pool with what will happen, what it will offer, and why; then one line that counts."""
    for cluster in _list(document["clusters"]):
        yield from _cluster_head(cluster)
        for pool in cluster["pools"]:
            yield from _planned_pool(pool, verbose=verbose)
        yield from _release(cluster["release"], verbose=verbose)
        yield from _findings(cluster["diagnostics"])
        yield from _undeclared(cluster)
        yield ""
    yield _plan_summary(document)


def render_diff(document: Document, verbose: bool) -> Iterator[Line]:  # noqa: FBT001
    """Show only what differs, field by field."""
    for cluster in _list(document["clusters"]):
        lines = list(_differences(cluster, verbose=verbose))
        if lines or cluster["error"] or cluster["unknown"]:
            yield from _cluster_head(cluster)
            yield from lines
            yield ""
    unknown = any(cluster["error"] or cluster["unknown"] for cluster in _list(document["clusters"]))
    same = "no differences in what could be compared" if unknown else "no differences"
    yield "differs from the spec" if document["differs"] else same


def render_validation(document: Document, verbose: bool) -> Iterator[Line]:  # noqa: FBT001
    """Say that the spec is right."""
    pools, clusters = document["pools"], document["clusters"]
    yield f"ok: {pools} pool{'' if pools == 1 else 's'} on {clusters} cluster{'' if clusters == 1 else 's'}"


def render_list(document: Document, verbose: bool) -> Iterator[Line]:  # noqa: FBT001
    """Show the live GPU pools as a table."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("CLUSTER", "NAME", "OWNER", "STATUS", "NODES", "GPUS", "ALLOCATABLE"):
        table.add_column(title, overflow="fold", no_wrap=title not in ("OWNER", "ALLOCATABLE"))
    clusters = _list(document["clusters"])
    for cluster in clusters:
        for pool in cluster["pools"]:
            table.add_row(*_list_row(pool))
    yield table if table.row_count else "no GPU pools"
    for cluster in clusters:
        if cluster["error"]:
            yield from _findings(cluster["error"])
        elif cluster["unknown"] and verbose:
            yield f"{cluster['cluster']}: allocatable is not known: {cluster['unknown']}"


def render_pool(document: Document, verbose: bool) -> Iterator[Line]:  # noqa: FBT001
    """Show one pool on each cluster that has it."""
    for pool in _list(document["pools"]):
        yield Text(f"{pool['cluster']}/{pool['pool'] or pool['name']}", style="bold")
        gpu = pool["gpu"]
        yield f"  name         {pool['name']}"
        yield f"  owner        {pool['owner'] or '-'}{' (protected)' if pool['protected'] else ''}"
        yield f"  status       {pool['status']}{': ' + pool['failure'] if pool['failure'] else ''}"
        yield f"  type         {pool['instanceType']}{_gpu(gpu)}"
        for name, value in pool["fields"].items():
            yield f"  {name}: {_value(value)}"
        for node in pool["nodes"]:
            state = "ready" if node["ready"] else "not ready"
            yield f"  node {node['name']}  {state}  {_devices(node['devices'])}"


def render_report(document: Document, verbose: bool) -> Iterator[Line]:  # noqa: FBT001
    """Show what became of every pool: done, failed with cause and remedy, not attempted."""
    for cluster in _list(document["clusters"]):
        if cluster["error"]:
            yield from _findings(cluster["error"])
        if cluster["release"]:
            yield Text(f"{cluster['cluster']}  {cluster['release']}", style="dim")
        for pool in cluster["pools"]:
            yield from _reported_pool(cluster["cluster"], pool, verbose=verbose)


def render_sandbox(document: Document, verbose: bool) -> Iterator[Line]:  # noqa: FBT001
    """Show the emulated clusters with their pools and nodes."""
    clusters = _list(document["clusters"])
    if not clusters:
        yield "no clusters; gpukube sandbox up -f SPEC makes those of a spec"
    for cluster in clusters:
        yield Text.assemble((cluster["name"], "bold"), f"  {cluster['provider']}  {cluster['state']}")
        for pool in cluster["pools"]:
            machine = next((pool[key] for key in ("vmSize", "instanceType", "machineType") if key in pool), "?")
            yield f"  pool {pool['name']}  {pool['state']}  {pool['count']} x {machine}"
            for node in pool["nodes"] if verbose else ():
                yield f"    node {node}"


def _cluster_head(cluster: Doc) -> Iterator[Line]:
    facts = [cluster["provider"], cluster["location"], cluster["status"]]
    if cluster["kubernetesVersion"]:
        facts.append(f"Kubernetes {cluster['kubernetesVersion']}")
    yield Text.assemble((cluster["cluster"], "bold"), "  ", (" · ".join(f for f in facts if f), "dim"))
    if cluster["error"]:
        yield from _findings(cluster["error"], indent="  ")
    elif cluster["unknown"]:
        yield f"  inside the cluster: unknown: {cluster['unknown']}"


def _headline(action: str, *words: str) -> Text:
    sign, style = ACTION_STYLES[action]
    return Text.assemble("  ", (f"{sign} {action:<8}", style), " ", "  ".join(words))


def _planned_pool(pool: Doc, *, verbose: bool) -> Iterator[Line]:
    if "nodes" not in pool:
        yield _headline(pool["action"], pool["name"])
    else:
        where = f"in {', '.join(pool['zones'])}" if pool["zones"] else ""
        words = [pool["name"], pool["instanceType"], _node_words(pool["nodes"]), where]
        yield _headline(pool["action"], *filter(None, words))
        yield from _fact("devices", _device_words(pool))
        entry = f", entry {pool['configEntry']}" if pool["configEntry"] else ""
        yield from _fact("driver", f"{pool['driver']}; device plugin: {pool['devicePlugin']}{entry}")
        for feature, how in pool["fidelity"].items():
            yield from _fact("how", f"{feature}: {how['fidelity']}{_by(how['substitute'])}")
        if verbose:
            yield from _fact("owner", pool["ownership"])
    yield from _fact("why", pool["why"])
    for change in pool["changes"]:
        yield from _changed(change, indent=" " * 13)
    yield from _findings(pool["diagnostics"], indent=" " * 13)
    if verbose:
        for request in pool["requests"]:
            yield from _native_request(request)


def _by(substitute: str) -> str:
    return f" ({substitute})" if substitute else ""


def _fact(name: str, value: str) -> Iterator[Line]:
    yield Text.assemble(" " * 13, (f"{name:<8}", "dim"), value)


def _node_words(nodes: Doc) -> str:
    if nodes["autoscaled"]:
        return f"{nodes['min']} to {nodes['max']} nodes"
    return f"{nodes['count']} node{'' if nodes['count'] == 1 else 's'}"


def _device_words(pool: Doc) -> str:
    words = []
    for name, each in pool["devices"]["perNode"].items():
        low, high = pool["devices"]["min"][name], pool["devices"]["max"][name]
        total = f"{low}" if low == high else f"{low} to {high}"
        words.append(f"{name}: {each} per node, {total} in all")
    return f"{', '.join(words)}{_gpu(pool['gpu'])}"


def _gpu(gpu: Doc | None) -> str:
    return f" ({gpu['count']:g} x {gpu['model']})" if gpu else ""


def _native_request(request: Doc) -> Iterator[Line]:
    import json

    yield " " * 13 + f"{request['service']}: {request['operation']}"
    for line in json.dumps(request["params"], indent=2).splitlines():
        yield " " * 15 + line


def _changed(change: Doc, *, indent: str) -> Iterator[Line]:
    style = "red" if change["kind"] in ("replace", "refused") else "yellow"
    text = f"{change['field']}: {_value(change['old'])} -> {_value(change['new'])}"
    yield Text.assemble(indent, ("~ ", style), text, (f"  [{change['kind']}]", style))
    yield Text.assemble(indent, "  ", (change["sentence"], "dim"))


def _release(release: Doc | None, *, verbose: bool) -> Iterator[Line]:
    if release is None or (release["action"] == "none" and not release["entries"]):
        return
    yield _headline(release["action"], f"release {release['namespace']}/{release['name']}")
    if release["action"] in ("install", "upgrade"):
        yield from _fact("chart", f"{release['chart']} {release['version']}, entries {', '.join(release['entries'])}")
    yield from _fact("why", release["why"])
    if verbose or release["action"] == "upgrade":
        for change in release["changes"]:
            yield " " * 13 + f"~ {change['path']}: {_value(change['old'])} -> {_value(change['new'])}"


def _differences(cluster: Doc, *, verbose: bool) -> Iterator[Line]:
    for pool in cluster["pools"]:
        if pool["action"] != "no-op":
            yield _headline(pool["action"], pool["name"])
            yield from _fact("why", pool["why"])
            for change in pool["changes"]:
                yield from _changed(change, indent=" " * 13)
    if cluster["release"] and cluster["release"]["action"] in ("install", "upgrade"):
        yield from _release(cluster["release"], verbose=verbose)
    yield from _findings(cluster["diagnostics"])
    yield from _undeclared(cluster)


def _undeclared(cluster: Doc) -> Iterator[Line]:
    for pool in cluster["undeclared"]:
        yield _headline("extra", pool["name"])
        yield from _fact("why", f'belongs to "{pool["owner"]}" but the spec does not declare it')
        yield from _fact("fix", f"declare it again, or: gpukube pool delete {pool['pool']} -f SPEC")


def _plan_summary(document: Document) -> Line:
    counts: dict[str, int] = {}
    for cluster in _list(document["clusters"]):
        for pool in cluster["pools"]:
            counts[pool["action"]] = counts.get(pool["action"], 0) + 1
        release = cluster["release"]
        if release and release["action"] in ("install", "upgrade"):
            counts[f"release to {release['action']}"] = counts.get(f"release to {release['action']}", 0) + 1
    words = {"no-op": "unchanged", "create": "to create", "update": "to update", "replace": "to replace"}
    said = [
        f"{n} {words.get(what, what if n == 1 else what.replace('release', 'releases'))}" for what, n in counts.items()
    ]
    failed = sum(1 for cluster in _list(document["clusters"]) if cluster["error"])
    if failed:
        said.append(f"{failed} cluster{'' if failed == 1 else 's'} could not be planned")
    return "plan: " + (", ".join(said) or "nothing declared")


def _list_row(pool: Doc) -> tuple[str, ...]:
    low, high = pool["autoscaling"]
    count = "-" if pool["nodeCount"] is None else str(pool["nodeCount"])
    nodes = f"{count} ({low}-{high})" if low is not None else count
    gpu = f"{pool['gpu']['count']:g}x {pool['gpu']['model']}" if pool["gpu"] else "-"
    shown = pool["allocatable"]
    devices = _devices(shown).replace("nvidia.com/", "")
    return (pool["cluster"], pool["name"], pool["owner"] or "-", pool["status"], nodes, gpu, devices)


def _devices(devices: Doc | None) -> str:
    if devices is None:
        return "-"
    return ", ".join(f"{name}: {count}" for name, count in devices.items()) or "none"


def _reported_pool(cluster: str, pool: Doc, *, verbose: bool) -> Iterator[Line]:
    outcome = pool["outcome"]
    head = Text.assemble((f"{outcome:<13}", OUTCOME_STYLES[outcome]), f" {cluster}/{pool['pool']}  {pool['message']}")
    yield head
    for change in pool["changes"]:
        yield from _changed(change, indent="    ")
    if pool["proof"]:
        yield from _proof(pool["proof"], verbose=verbose)
    if pool["error"]:
        yield from _findings(pool["error"], indent="    ")
    if pool["resume"]:
        yield f"    to resume: {pool['resume']}"


def _proof(proof: Doc, *, verbose: bool) -> Iterator[Line]:
    if proof["status"] in ("proven", "empty"):
        yield f"    {proof['summary']}"
    for node in proof["nodes"]:
        promised = ", ".join(f"{name}: {count}" for name, count in node["expected"].items())
        right = all(node["allocatable"].get(name) == count for name, count in node["expected"].items())
        sign, style = ("=", "green") if right else ("!", "red")
        yield Text.assemble("    ", (sign, style), f" node {node['node']}  {_devices(node['allocatable'])}")
        if not right:
            yield f"      promised {promised}"
        for finding in node["findings"]:
            if verbose or finding["weight"] == "note":
                yield f"      {finding['weight']}: {finding['seen']}"


def _findings(found: Iterable[Doc], indent: str = "  ") -> Iterator[Line]:
    for finding in found:
        style = "red" if finding["severity"] == "error" else "yellow"
        label = f"{finding['severity']}[{finding['code']}]"
        yield Text.assemble(indent, f"{finding['where']}: ", (label, style), f": {finding['message']}")
        for name in ("why", "fix"):
            if finding[name]:
                yield f"{indent}    {name}: {finding[name]}"


def _value(value: object) -> str:
    if value is None:
        return "(absent)"
    if isinstance(value, list):
        return "[" + ", ".join(str(item) for item in value) + "]"
    return f'"{" ".join(value.split())}"' if isinstance(value, str) else str(value)


def _list(value: object) -> list[Doc]:
    assert isinstance(value, list)  # noqa: S101 - our own document
    return value
