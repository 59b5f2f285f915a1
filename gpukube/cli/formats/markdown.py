"""Documents as GitHub-flavored Markdown: for comments on pull or merge requests, and for job summaries.

Values are in code spans, so that they neither format nor mention anybody; prose is escaped. Long parts are folded into
<details>. Parts that do not fit are omitted whole, least important first, and the text counts them.
"""

from __future__ import annotations

import json
import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from gpukube.cli.formats.cutting import TIER, Block, Frame, fitted
from gpukube.cli.formats.notes import fit_lines, sum_lines, unfit_words, workload_name
from gpukube.cli.kinds import REPORTS
from gpukube.cli.rendering.capacity import (
    TITLES,
    asked_words,
    capacity_cells,
    closing_lines,
    merged,
    source_lines,
    way_words,
)
from gpukube.cli.rendering.doctor import doctor_words
from gpukube.cli.rendering.lines import QUIET_ACTIONS, difference_lines, gpu_words, node_words, plural, value_words
from gpukube.cli.rendering.listing import list_columns, list_rows
from gpukube.cli.rendering.map import COST_UNIT, sum_words
from gpukube.cli.rendering.plan_parts import few, leaving_facts, leaving_words, surge_facts
from gpukube.cli.rendering.prices import hourly_words, price_change, price_line
from gpukube.cli.rendering.report import outcome_words
from gpukube.cli.rendering.usage import (
    POOL_TITLES,
    SPACE_TITLES,
    advice_words,
    closing_notes,
    head_words,
    pool_rows,
    space_row,
    stuck_words,
    waiting_words,
)
from gpukube.cli.rendering.words import (
    cost_words,
    drift_words,
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
from gpukube.engine.documents.shards import part_line
from gpukube.engine.documents.summary import plan_summary, validation_summary
from gpukube.rule_ids import rule_label

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from gpukube.engine.documents.shapes.capacity import CapacityDocument
    from gpukube.engine.documents.shapes.doctor import AilmentPart, DoctorDocument
    from gpukube.engine.documents.shapes.fit import FitDocument, FittedPart
    from gpukube.engine.documents.shapes.listing import ListDocument
    from gpukube.engine.documents.shapes.parts import Change, Diagnostic, Toleration
    from gpukube.engine.documents.shapes.plan import ClusterPart, PlanDocument, PoolPart, UnplannedPool
    from gpukube.engine.documents.shapes.report import (
        ClusterOutcome,
        LintDocument,
        NodeProof,
        PoolOutcome,
        Proof,
        ReportDocument,
        ValidationDocument,
    )
    from gpukube.engine.documents.shapes.usage import UsageDocument

COMMENT: Final = 65_536
"""Characters of a comment (GitHub: "body is too long (maximum is 65536 characters)"; GitLab allows 1,000,000).
Counted in UTF-16, where an emoji is two: never less than any service counts, and at most 196,608 bytes of UTF-8."""
SUMMARY: Final = 1_048_576
"""Bytes of a step's summary that GitHub shows (docs.github.com "Workflow commands", "Step isolation and limits")."""

_SPECIAL: Final = re.compile(r"([\\`*_\[\]<>|~#])")
_LINK: Final = re.compile(r"https://[\w./?=&#%~:@+,-]+", re.ASCII)
_SIGNS: Final = {
    "create": "🟢",
    "update": "🟡",
    "adopt": "🟡",
    "replace": "🔴",
    "delete": "🔴",
    "conflict": "❌",
}
_GRAVE: Final = ("replace", "delete")
_OUTCOMES: Final = {
    "done": "✅",
    "unchanged": "✅",
    "started": "⏳",
    "unknown": "❔",
    "differs": "✏️",
    "failed": "❌",
    "not-attempted": "⏸️",
}
_ACTION_RANKS: Final = {
    "delete": 0,
    "replace": 1,
    "conflict": 2,
    "update": 5,
    "create": 6,
    "adopt": 7,
    "standby": 8,
    "no-op": 9,
}
"""Ranks of blocks; the lowest are kept if not all fit. Errors have 3, warnings 4, hints 8."""
_OUTCOME_RANKS: Final = {
    "failed": 0,
    "unknown": 1,
    "differs": 2,
    "not-attempted": 4,
    "started": 5,
    "done": 6,
    "unchanged": 7,
}
_SEVERITY_RANKS: Final = {"error": 3, "warning": 4, "hint": 8}
_LONGEST: Final = 1000
"""Maximum characters of a summary that names clusters."""


def markdown(document: Mapping[str, Any]) -> Iterator[str]:
    """Render a document for a job summary."""

    def size(line: str) -> int:
        return len(line.encode()) + 1

    return fitted(_blocks(document), SUMMARY, size, "`-o json` has everything.")


def comment(document: Mapping[str, Any]) -> Iterator[str]:
    """Render a document for one comment; the next run finds it by its first line."""
    marker = f"<!-- gpukube:{_marker(document)} -->"

    def size(line: str) -> int:
        return len(line.encode("utf-16-le")) // 2 + 1

    yield marker
    elsewhere = "`-o markdown`, for a job summary, has more; `-o json` has everything."
    yield from fitted(_blocks(document), COMMENT - size(marker), size, elsewhere)


def _blocks(document: Mapping[str, Any]) -> Iterator[Block]:
    """Return the blocks of a document; the line below its title names its part of a fleet."""
    title, *others = _MAKERS[document["kind"]](document)
    yield title
    if line := part_line(document):
        yield Block((f"**{prose(line)}**", ""))
    yield from others


def _marker(document: Mapping[str, Any]) -> str:
    """Return the identity of a document: runs with the same identity update one comment."""
    scope, shard = document.get("scope") or {"owners": [], "filters": []}, document.get("shard")
    part = [f"shard={shard['index']}/{shard['total']}"] if shard else []
    words = [",".join(scope["owners"]) or document["kind"].lower(), *scope["filters"], *part]
    # It must not end the HTML comment.
    return re.sub(r"-{2,}|[^\w .,:/=*?-]", "-", " ".join(words).replace(" --", " "), flags=re.ASCII)[:_LONGEST]


def code(value: str, *, cell: bool = False) -> str:
    """Return a value in a code span, whatever it contains.

    Args:
        value: Text, put on one line.
        cell: Whether it is in a table, where a pipe would end the cell even inside a code span.
    """
    text = " ".join(value.split())
    if not text:
        return ""
    fence = "`" * (1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    shown = f"{fence}{pad}{text}{pad}{fence}"
    return shown.replace("|", "\\|") if cell else shown


def prose(text: str) -> str:
    """Escape a sentence, so that it formats nothing, opens no HTML, and mentions nobody."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split())).replace("@", "@\u200b").replace("&", "&amp;")


def _table(titles: Sequence[str]) -> Frame:
    return Frame(("| " + " | ".join(titles) + " |", "|" + " --- |" * len(titles)))


def _row(cells: Sequence[str]) -> tuple[str, ...]:
    return ("| " + " | ".join(cell or " " for cell in cells) + " |",)


def _table_lines(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield from _table(titles).head
    for row in rows:
        yield from _row(row)


def _folded(title: str, lines: Iterable[str]) -> tuple[str, ...]:
    return (f"<details><summary>{title}</summary>", "", *lines, "", "</details>", "")


def _fenced(value: object) -> Iterator[str]:
    text = json.dumps(value, indent=2)
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    yield f"{fence}json"
    yield from text.splitlines()
    yield fence


def _plan(document: PlanDocument) -> Iterator[Block]:
    diff = document["kind"] == "Diff"
    title = f"### gpukube {'diff: ' + outcome_of_diff(document) if diff else 'plan: ' + plan_summary(document)}"
    gpus = _clipped(gpu_line(document))
    yield Block((title, "", prose(f"{plan_summary(document)}. {gpus}." if diff else f"{gpus}."), ""))
    if any(cluster["pools"] for cluster in document["clusters"]):
        price = document["summary"]["price"]
        notes = Frame()
        yield Block((prose(f"{price_line(price)}."),) if price["notes"] else (prose(f"{price_line(price)}."), ""))
        yield from (Block((f"- {prose(note)}",), "note", 9, notes) for note in price["notes"])
    yield from _costs(document)
    table = _table(_PLAN_TITLES)
    for cluster in document["clusters"]:
        for pool in cluster["pools"]:
            if pool["action"] not in QUIET_ACTIONS or not diff:
                yield Block(_row(_pool_row(cluster, pool)), "pool", _ACTION_RANKS[pool["action"]], table)
    for cluster in document["clusters"] if not diff else ():
        for unplanned in cluster["unplanned"]:
            yield Block(_row(_unplanned_row(cluster["cluster"], unplanned)), "pool", 3, table)
    for cluster in document["clusters"]:
        yield from _cluster(cluster)
    yield from _diagnostics(document["warnings"], Frame())
    if unread := unread_line(document):
        yield Block((prose(f"{unread}."), ""), "line", 3)
    if needs := needs_line(document):
        yield Block((prose(needs.partition(": ")[0]) + ": " + code(needs.partition(": ")[2]), ""))
    if stuck := stuck_line(document):
        yield Block((prose(stuck), ""), "line", 3)


_PLAN_TITLES: Final = (
    *("", "Cluster", "Pool", "Action", "Type", "Nodes", "Devices now → after", "USD/h now → after", "Why"),
)


def _clipped(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST].rpartition(', ')[0]} and others"


def _costs(document: PlanDocument) -> Iterator[Block]:
    """Put what is deleted before everything else."""
    quote = Frame(("> [!CAUTION]",))
    for cluster in document["clusters"]:
        for pool in cluster["pools"]:
            if pool["loss"] and pool["action"] in _GRAVE:
                name = code(cluster["cluster"] + "/" + pool["pool"])
                line = f"> - {name} {pool['action']}: {prose(cost_words(pool['loss']))}"
                yield Block((line,), "loss", _ACTION_RANKS[pool["action"]], quote)


def _pool_row(cluster: ClusterPart, pool: PoolPart) -> tuple[str, ...]:
    action = f"**{pool['action']}**" if pool["action"] in _GRAVE else pool["action"]
    gpus = gpu_words(pool["gpu"])
    machine = code(pool["instanceType"] or "", cell=True) + (f" {prose(gpus)}" if gpus else "")
    size = node_words(pool["nodes"]) if pool["nodes"] else ""
    name = code(pool["name"], cell=True)
    sign = _SIGNS.get(pool["action"], "")
    devices = short_devices(pool).replace("->", "→")
    key = code(cluster["cluster"], cell=True)
    price = price_change(pool["price"]).replace("->", "→")
    why = "; ".join(filter(None, (family_words(pool).replace("->", "→"), pool["why"])))
    return (sign, key, name, action, machine, size, prose(devices), prose(price), prose(why))


def _unplanned_row(cluster: str, pool: UnplannedPool) -> tuple[str, ...]:
    machine = code(pool["instanceType"], cell=True)
    devices = short_devices(pool).replace("->", "→")
    name, why = code(pool["name"], cell=True), "the cluster could not be read"
    size = node_words(pool["nodes"])
    return ("❓", code(cluster, cell=True), name, "unknown", machine, size, prose(devices), "?", why)


def _cluster(cluster: ClusterPart) -> Iterator[Block]:
    key, items = code(cluster["cluster"]), Frame()
    drifted = partial(Block, what="difference", rank=5, frame=items)
    if cluster["unknown"]:
        line = f"- {key}: inside the cluster: unknown: {prose(cluster['unknown'])}"
        yield Block((line,), "finding", 4, items)
    for release in filter(release_acts, releases_of(cluster)):
        name = code(f"{release['namespace']}/{release['name']}")
        drifts = (f"  - {prose(drift_words(drift))}" for drift in release["drift"])
        yield drifted((f"- {key}: {release['action']} release {name}: {prose(release['why'])}", *drifts))
    for repair in cluster["nodeRepairs"]:
        yield drifted((f"- {key}: node {code(repair['node'])}: {prose(repair_words(repair))}",))
    for order in orders_of(cluster):
        yield drifted((f"- {key}: {order['action']} {code(order['object'])}: {prose(order_words(order))}",))
    for extra in cluster["undeclared"]:
        whose = f"{code(extra['name'])} belongs to {code(extra['owner'])}"
        yield drifted((f"- {key}: {whose}, and the spec does not declare it",))
    yield from _diagnostics(cluster["error"] or (), items, rank=0)
    yield from _diagnostics(cluster["diagnostics"], items)
    for pool in cluster["pools"]:
        if way := tuple(_replacement(cluster["cluster"], pool)):
            yield Block(way, "replacement", _ACTION_RANKS[pool["action"]], items)
        yield from _diagnostics(pool["diagnostics"], items)
    for pool in cluster["pools"]:
        if pool["changes"] or pool["requests"]:
            changes = f", {plural(len(pool['changes']), 'change')}" if pool["changes"] else ""
            title = f"{_html(cluster['cluster'])}/{_html(pool['name'])}: {pool['action']}{changes}"
            rank = _ACTION_RANKS[pool["action"]] + TIER
            yield Block(_folded(title, _pool_details(pool)), "folded part", rank)


def _replacement(cluster: str, pool: PoolPart) -> Iterator[str]:
    """Describe what a surge would do, or what prevents it, and which pods would not leave."""
    name, found, leaving = code(f"{cluster}/{pool['pool']}"), pool["replacement"], pool["leaving"]
    if found:
        yield from (f"- {name} surge: {prose(text)}" for text in surge_facts(found))
        yield from (f"  - unknown: {prose(text)}" for text in found["unknown"])
    if leaving and leaving["pods"]:
        yield f"- {name} drain: {prose(leaving_words(leaving))}"
        for texts, _ in leaving_facts(leaving):
            yield from (f"  - {prose(text)}" for text in few(texts, whole=False, more="(-o json)"))


def _html(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("@", "@\u200b")


def _values(change: Change) -> tuple[str, str]:
    """Return both values as cells; for long lists, only the items that differ."""
    _, *items = difference_lines(change["field"], change["old"], change["new"])
    if not items:
        return code(value_words(change["old"]), cell=True), code(value_words(change["new"]), cell=True)
    sides = ([code(item[2:], cell=True) for item in items if item.startswith(sign)] for sign in "-+")
    removed, added = ("<br>".join(["of its items:", *side]) if side else "" for side in sides)
    return removed, added


def _pool_details(pool: PoolPart) -> Iterator[str]:
    if pool["changes"]:
        yield from _table_lines(
            ("Field", "Live", "Declared", "Effect", ""),
            (
                (
                    code(change["field"], cell=True),
                    *_values(change),
                    change["kind"],
                    prose(change["sentence"]),
                )
                for change in pool["changes"]
            ),
        )
        yield ""
    if pool["driver"]:
        yield f"Driver: {pool['driver']}; device plugin: {pool['devicePlugin']}."
    for feature, how in pool["fidelity"].items():
        is_missing = how["fidelity"] == "missing"
        by = f"missing: {prose(how['reason'])}" if is_missing else f"done by {prose(how['substitute'])}"
        yield f"- {prose(feature)}: {by}"
    if pool["tolerations"]:
        yield ""
        yield from _tolerations("Pods", pool["tolerations"])
    for request in pool["requests"]:
        yield ""
        yield f"{prose(request['service'])}: {code(request['operation'])}"
        yield ""
        yield from _fenced(request["params"])


def _diagnostics(found: Iterable[Diagnostic], frame: Frame, *, rank: int | None = None) -> Iterator[Block]:
    for one in found:
        label = f"{one['severity']}[{rule_label(one['code'])}]"
        reasons = [(name, text) for name, text in (("why", one["why"]), ("fix", one["fix"])) if text]
        lines = (
            f"- {code(one['where'])} **{prose(label)}**: {prose(one['message'])}",
            *(f"  - {name}: {prose(text)}" for name, text in reasons),
        )
        yield Block(lines, "finding", _SEVERITY_RANKS[one["severity"]] if rank is None else rank, frame)


def _found(document: ValidationDocument | LintDocument) -> Iterator[Block]:
    command = "validate" if document["kind"] == "Validation" else "workload lint"
    yield Block((f"### gpukube {command}: {validation_summary(document)}", ""))
    yield from _diagnostics((*document["errors"], *document["warnings"], *document["hints"]), Frame())
    silenced = Frame((f"<details><summary>{plural(len(document['silenced']), 'finding')} silenced</summary>", ""),
                     ("", "</details>", ""))  # fmt: skip
    for one in document["silenced"]:
        found = one["finding"]
        line = f"- {code(found['where'])} {prose(rule_label(found['code']))}: {prose(one['reason'])}"
        yield Block((line,), "silenced finding", TIER, silenced)


def _fit(document: FitDocument) -> Iterator[Block]:
    words = next(sum_lines(document))
    yield Block((f"### gpukube {words}", ""))
    table = _table(("", "Workload", "Cluster", "Now", "After scale-up", "Never"))
    for part in document["workloads"]:
        sign = {"now": "✅", "after-scale-up": "🟢", "never": "❌", "unknown": "❔", "elsewhere": "❔"}[part["state"]]
        name, key = code(workload_name(part), cell=True), code(part["cluster"], cell=True)
        counts = (str(part["now"]), str(part["afterScaleUp"]), str(part["never"]))
        yield Block(_row((sign, name, key, *counts)), "workload", 0 if unfit_words(part) else 6, table)
    items = Frame()
    for part in document["workloads"]:
        if unfit_words(part):
            yield Block(tuple(_misfit(part)), "finding", 3, items)
    for item in document["notPlaced"]:
        name = f"{item['object']}, group {item['group']}" if item["group"] else item["object"]
        yield Block((f"- {code(name)}: {prose(item['why'])}",), "finding", 3, items)


def _misfit(part: FittedPart) -> Iterator[str]:
    position = part["position"]
    where = code(f"{position['file']}:{position['line']}") + " " if position else ""
    yield f"- {where}{code(workload_name(part))}: {unfit_words(part)}"
    yield from (f"  - {prose(line)}" for line in fit_lines(part))


def _list(document: ListDocument) -> Iterator[Block]:
    pools = list_rows(document)
    yield Block((f"### gpukube pools: {len(pools)}", ""))
    columns = list_columns(pools)
    table = _table([title for title, _ in columns])
    for pool in pools:
        yield Block(_row([prose(cell(pool)) for _, cell in columns]), "pool", 5, table)
    for cluster in document["clusters"]:
        yield from _diagnostics(cluster["error"] or (), Frame())


def _report(document: ReportDocument) -> Iterator[Block]:
    yield Block((f"### gpukube {document['kind'].lower()}: {outcome_words(document)}", ""))
    table = _table(("", "Cluster", "Pool", "Outcome", ""))
    for cluster in document["clusters"]:
        for pool in cluster["pools"]:
            yield Block(_row(_outcome_row(cluster["cluster"], pool)), "pool", _OUTCOME_RANKS[pool["outcome"]], table)
    for cluster in document["clusters"]:
        yield from _cluster_outcome(cluster)


def _cluster_outcome(cluster: ClusterOutcome) -> Iterator[Block]:
    items = Frame()
    if cluster["release"]:
        yield Block((f"- {code(cluster['cluster'])}: {prose(cluster['release'])}",), "release", 6, items)
    yield from _diagnostics(cluster["error"] or (), items, rank=0)
    for pool in cluster["pools"]:
        yield from _diagnostics(pool["error"] or (), items)
        if pool["resume"]:
            name = code(f"{cluster['cluster']}/{pool['pool']}")
            yield Block((f"- {name} to resume: {code(pool['resume'])}",), "command to resume", 3, items)
    for pool in cluster["pools"]:
        name, rank = f"{cluster['cluster']}/{pool['pool']}", _OUTCOME_RANKS[pool["outcome"]] + TIER
        if pool["tolerations"]:
            lines = tuple(_tolerations(f"Pods of {code(name)}", pool["tolerations"]))
            yield Block(lines, "list of tolerations", 9)
        if pool["proof"]:
            yield from _proof(name, pool["proof"], rank)


def _proof(name: str, proof: Proof, rank: int) -> Iterator[Block]:
    """Show the output of a probe, and each node's expected and observed devices, folded."""
    probe = proof["probe"]
    if probe:
        line = f"- {_PROBES[probe['status']]} {code(name)} probe {probe['status']}: {prose(probe['says'])}"
        yield Block((line, ""), "probe", 3 if probe["status"] == "failed" else 7)
        if probe["output"]:
            yield Block(_folded(f"{_html(name)}: nvidia-smi -L", _fenced_text(probe["output"])), "folded part", rank)
    if proof["nodes"]:
        rows = [row for node in proof["nodes"] for row in _node_rows(node, due=proof["status"] != "unmanaged")]
        yield Block(_folded(f"{_html(name)}: nodes", _table_lines(_NODE_TITLES, rows)), "folded part", rank)


_NODE_TITLES: Final = ("", "Node", "What", "Promised", "Seen")
_PROBES: Final = {"passed": "✅", "failed": "❌", "skipped": "⏸️"}


def _node_rows(node: NodeProof, *, due: bool) -> Iterator[tuple[str, ...]]:
    name = code(node["node"], cell=True)
    for resource in sorted({*node["expected"], *node["allocatable"]}):
        requested, shown = node["expected"].get(resource, 0), node["allocatable"].get(resource, 0)
        sign = "✅" if requested == shown or not due else "❌"
        yield (sign, name, code(resource, cell=True), str(requested) if due else "", str(shown))
    for check in node["checks"]:
        words = (check["expected"] or "absent", check["seen"] or "absent")
        yield ("✅" if check["holds"] else "✏️", name, prose(check["what"]), *(code(word, cell=True) for word in words))


def _tolerations(whose: str, tolerations: Sequence[Toleration]) -> Iterator[str]:
    yield f"{whose} need these in their spec; nothing adds them:"
    yield ""
    yield "```yaml"
    yield from toleration_lines(tolerations)
    yield "```"
    yield ""


def _fenced_text(lines: Sequence[str]) -> Iterator[str]:
    longest = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    yield f"{fence}text"
    yield from lines
    yield fence


def _outcome_row(cluster: str, pool: PoolOutcome) -> tuple[str, ...]:
    message = pool["message"] + (f"; {pool['proof']['summary']}" if pool["proof"] else "")
    outcome = pool["outcome"]
    return (_OUTCOMES[outcome], code(cluster, cell=True), code(pool["pool"], cell=True), outcome, prose(message))


def _doctor(document: DoctorDocument) -> Iterator[Block]:
    yield Block((f"### gpukube doctor: {doctor_words(document)}", ""))
    for cluster in document["clusters"]:
        items = Frame()
        yield Block((f"**{code(cluster['cluster'])}**: {cluster['made']} checks run", ""), "cluster", 2)
        yield from (Block((f"- ✅ fixed: {prose(line)}",), "fix", 6, items) for line in cluster["mended"])
        yield from _diagnostics(cluster["unmended"], items)
        for finding in cluster["ailments"]:
            yield Block(tuple(_finding(finding)), "finding", _SEVERITY_RANKS[finding["severity"]], items)
        yield from _diagnostics(() if cluster["made"] else cluster["errors"], items)  # the checks of access report them


def _finding(finding: AilmentPart) -> Iterator[str]:
    sign = "❌" if finding["severity"] == "error" else "⚠️"
    check = prose(finding["check"])
    link = f"[{check}]({finding['link']})" if _LINK.fullmatch(finding["link"]) else check
    yield f"- {sign} {code(finding['where'])}: {prose(finding['seen'])} ({link})"
    yield from (f"  - observed: {prose(line)}" for line in finding["evidence"])
    yield f"  - {prose(finding['consequence'])}"
    yield f"  - fix: {code(finding['remedy'])}"


def _usage(document: UsageDocument) -> Iterator[Block]:
    total = document["summary"]
    yield Block((f"### gpukube usage: {prose(head_words(document))}", ""))
    for words in (*sum_words(total["stocks"]), hourly_words(total["cost"], COST_UNIT)):
        yield Block((f"- {prose(words)}",))
    yield Block(("",))
    for rank, (kind, titles, rows) in enumerate(
        (
            ("pool", POOL_TITLES, [row for group in document["groups"] for row in pool_rows(group)]),
            ("namespace", SPACE_TITLES, [space_row(space) for space in document["namespaces"]]),
        ),
        start=4,
    ):
        table = _table(titles)
        for row in rows:
            yield Block(_row([prose(cell) for cell in row]), kind, rank, table)
    items = Frame()
    for cluster in document["clusters"]:
        key = cluster["cluster"]
        for found in cluster["error"] or ():
            yield Block((f"- ❌ {code(found['where'])}: {prose(found['message'])}",), "error", 0, items)
        if cluster["unknown"] and not cluster["error"]:
            yield Block((f"- ❔ {code(key)}: nodes and pods unknown: {prose(cluster['unknown'])}",), "error", 0, items)
        for pod in cluster["stuck"]:
            yield Block((f"- stuck: {prose(stuck_words(key, pod))}",), "stuck pod", 1, items)
        for advice in cluster["advice"]:
            yield Block((f"- layout: {prose(advice_words(key, advice))}",), "layout", 2, items)
        for waiting in cluster["waiting"]:
            yield Block((f"- waits: {prose(waiting_words(key, waiting))}",), "waiting pod", 3, items)
    for note in closing_notes(document):
        yield Block((f"- {prose(note)}",), "note", 3, items)


def _capacity(document: CapacityDocument) -> Iterator[Block]:
    yield Block((f"### gpukube capacity: {prose(asked_words(document))}", ""))
    table = _table((*TITLES, "Machine"))
    for rank, ways in enumerate(merged(document["ways"])):
        cells = [*capacity_cells(ways), way_words(ways[0], live=document["live"])]
        yield Block(_row([prose(cell) for cell in cells]), "way", min(rank, _LAST_WAY), table)
    items = Frame()
    for way in document["ways"]:
        if way["buy"]:
            yield Block((f"- {prose(way['instanceType'])} {code(way['id'])}: {code(way['buy'])}",), "command", 1, items)
    for prefix, text in source_lines(document["sources"]):
        yield Block((f"- {prose(prefix + text)}",), "source", 2, items)
    for note in (*document["notes"], *closing_lines(document)):
        yield Block((f"- {prose(note)}",), "note", 3, items)


_LAST_WAY: Final = 9
"""Rank of ways far down the table, the first that are left out."""
_MAKERS: Final[Mapping[str, Callable[..., Iterator[Block]]]] = {  # each accepts the shape of its own kind
    "Plan": _plan,
    "Diff": _plan,
    "PoolList": _list,
    **dict.fromkeys(REPORTS, _report),
    "Doctor": _doctor,
    "Validation": _found,
    "Lint": _found,
    "Fit": _fit,
    "Capacity": _capacity,
    "Usage": _usage,
}
