"""Plans, diffs, lists and reports as GitHub-flavoured Markdown: made to be posted on a pull request.

Values stand in code spans, so that they neither format nor mention anybody; prose is escaped. What is long is folded
into <details>. A comment of GitHub holds 65,536 characters: what would not fit is left out, and the text says so.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from gpukube.cli.rendering.doctor import doctor_words
from gpukube.cli.rendering.lines import difference_lines, gpu_words, node_words, value_words
from gpukube.cli.rendering.listing import LIST_COLUMNS, list_rows
from gpukube.cli.rendering.prices import price_change, price_line
from gpukube.cli.rendering.report import outcome_words
from gpukube.cli.rendering.words import (
    cost_words,
    drift_words,
    gpu_line,
    needs_line,
    outcome_of_diff,
    release_acts,
    repair_words,
    short_devices,
    stuck_line,
    toleration_lines,
    unread_line,
)
from gpukube.engine.documents.summary import plan_summary
from gpukube.rule_ids import rule_label

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from gpukube.engine.documents.shapes.doctor import AilmentPart, DoctorDocument
    from gpukube.engine.documents.shapes.listing import ListDocument
    from gpukube.engine.documents.shapes.parts import Change, Diagnostic, Toleration
    from gpukube.engine.documents.shapes.plan import ClusterPart, PlanDocument, PoolPart, UnplannedPool
    from gpukube.engine.documents.shapes.report import NodeProof, PoolOutcome, Proof, ReportDocument

ROOM: Final = 60_000
"""Characters a comment may have, with room left for what others put around it."""

_SPECIAL: Final = re.compile(r"([\\`*_\[\]<>|~#])")
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


def markdown(document: Mapping[str, Any]) -> Iterator[str]:
    """Render a document; without its folded parts, then cut, where it would be too long for a comment."""
    make = _MAKERS[document["kind"]]
    lines = list(make(document, whole=True))
    if _length(lines) > ROOM:
        lines = list(make(document, whole=False))
        message = "The details are too long for a comment; `-o json` has them."
        if _length(lines) > ROOM:
            lines = _first(lines, ROOM)
            message = "The rest is too long for a comment; `-o json` has all of it."
        lines += ["", message]
    yield from lines


def _length(lines: Sequence[str]) -> int:
    return sum(len(line) + 1 for line in lines)


def _first(lines: Sequence[str], room: int) -> list[str]:
    """Keep the lines that fit; nothing is folded any more, so each may be the last."""
    kept: list[str] = []
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return kept


def code(value: str, *, cell: bool = False) -> str:
    """Quote a value, whatever stands in it.

    Args:
        value: Put on one line.
        cell: Whether it stands in a table, where a pipe would end the cell even so.
    """
    text = " ".join(value.split())
    if not text:
        return ""
    fence = "`" * (1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    shown = f"{fence}{pad}{text}{pad}{fence}"
    return shown.replace("|", "\\|") if cell else shown


def prose(text: str) -> str:
    """Escape a sentence: nothing in it formats, opens HTML, or mentions anybody."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split())).replace("@", "@\u200b").replace("&", "&amp;")


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(titles) + " |"
    yield "|" + " --- |" * len(titles)
    for row in rows:
        yield "| " + " | ".join(cell or " " for cell in row) + " |"


def _folded(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield f"<details><summary>{title}</summary>"
    yield ""
    yield from lines
    yield ""
    yield "</details>"
    yield ""


def _fenced(value: object) -> Iterator[str]:
    text = json.dumps(value, indent=2)
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    yield f"{fence}json"
    yield from text.splitlines()
    yield fence


def _plan(document: PlanDocument, *, whole: bool) -> Iterator[str]:
    diff = document["kind"] == "Diff"
    yield f"### gpukube {'diff: ' + outcome_of_diff(document) if diff else 'plan: ' + plan_summary(document)}"
    yield ""
    yield prose(f"{plan_summary(document)}. {gpu_line(document)}." if diff else f"{gpu_line(document)}.")
    yield ""
    if any(cluster["pools"] for cluster in document["clusters"]):
        yield prose(f"{price_line(document['summary']['price'])}.")
        yield from (f"- {prose(note)}" for note in document["summary"]["price"]["notes"])
        yield ""
    yield from _costs(document)
    shown = [
        (c, pool)
        for c in document["clusters"]
        for pool in c["pools"]
        if pool["action"] != "no-op" or (whole and not diff)
    ]
    rows = [_pool_row(*each) for each in shown]
    rows += [_unplanned_row(c["cluster"], pool) for c in document["clusters"] for pool in c["unplanned"] if not diff]
    if rows:
        yield from _table(
            ("", "Cluster", "Pool", "Action", "Type", "Nodes", "Devices now → after", "USD/h now → after", "Why"), rows
        )
        yield ""
    for cluster in document["clusters"]:
        yield from _cluster(cluster, whole=whole)
    yield from _diagnostics(document["warnings"])
    if unread := unread_line(document):
        yield prose(f"{unread}.")
    if needs := needs_line(document):
        yield ""
        yield prose(needs.partition(": ")[0]) + ": " + code(needs.partition(": ")[2])
    if stuck := stuck_line(document):
        yield ""
        yield prose(stuck)


def _costs(document: PlanDocument) -> Iterator[str]:
    """Put what is destroyed before everything else."""
    lost = [
        f"> - {code(cluster['cluster'] + '/' + pool['pool'])} {pool['action']}: {prose(cost_words(pool['loss']))}"
        for cluster in document["clusters"]
        for pool in cluster["pools"]
        if pool["loss"] and pool["action"] in _GRAVE
    ]
    if lost:
        yield "> [!CAUTION]"
        yield from lost
        yield ""


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
    return (sign, key, name, action, machine, size, prose(devices), prose(price), prose(pool["why"]))


def _unplanned_row(cluster: str, pool: UnplannedPool) -> tuple[str, ...]:
    machine = code(pool["instanceType"], cell=True)
    devices = short_devices(pool).replace("->", "→")
    name, why = code(pool["name"], cell=True), "the cluster could not be read"
    size = node_words(pool["nodes"])
    return ("❓", code(cluster, cell=True), name, "unknown", machine, size, prose(devices), "?", why)


def _cluster(cluster: ClusterPart, *, whole: bool) -> Iterator[str]:
    key = code(cluster["cluster"])
    if cluster["unknown"]:
        yield f"- {key}: inside the cluster: unknown: {prose(cluster['unknown'])}"
    release = cluster["release"]
    if release and release_acts(release):
        name = code(f"{release['namespace']}/{release['name']}")
        yield f"- {key}: {release['action']} release {name}: {prose(release['why'])}"
        yield from (f"  - {prose(drift_words(drift))}" for drift in release["drift"])
    for repair in cluster["nodeRepairs"]:
        yield f"- {key}: node {code(repair['node'])}: {prose(repair_words(repair))}"
    for extra in cluster["undeclared"]:
        yield f"- {key}: {code(extra['name'])} belongs to {code(extra['owner'])}, and the spec does not declare it"
    yield from _diagnostics((*(cluster["error"] or ()), *cluster["diagnostics"]))
    yield ""
    for pool in cluster["pools"]:
        yield from _diagnostics(pool["diagnostics"])
        if whole and (pool["changes"] or pool["requests"]):
            count = len(pool["changes"])
            changes = f", {count} change{'' if count == 1 else 's'}" if count else ""
            yield from _folded(
                f"{_html(cluster['cluster'])}/{_html(pool['name'])}: {pool['action']}{changes}", _pool_details(pool)
            )


def _html(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("@", "@\u200b")


def _values(change: Change) -> tuple[str, str]:
    """Write both values as cells; of long lists only the items that differ."""
    _, *items = difference_lines(change["field"], change["old"], change["new"])
    if not items:
        return code(value_words(change["old"]), cell=True), code(value_words(change["new"]), cell=True)
    sides = ([code(item[2:], cell=True) for item in items if item.startswith(sign)] for sign in "-+")
    removed, added = ("<br>".join(["of its items:", *side]) if side else "" for side in sides)
    return removed, added


def _pool_details(pool: PoolPart) -> Iterator[str]:
    if pool["changes"]:
        yield from _table(
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
        by = f"done by {prose(how['substitute'])}" if how["substitute"] else how["fidelity"]
        yield f"- {prose(feature)}: {by}"
    if pool["tolerations"]:
        yield ""
        yield from _tolerations("Pods", pool["tolerations"])
    for request in pool["requests"]:
        yield ""
        yield f"{prose(request['service'])}: {code(request['operation'])}"
        yield ""
        yield from _fenced(request["params"])


def _diagnostics(found: Iterable[Diagnostic]) -> Iterator[str]:
    for one in found:
        label = f"{one['severity']}[{rule_label(one['code'])}]"
        yield f"- {code(one['where'])} **{prose(label)}**: {prose(one['message'])}"
        for name, text in (("why", one["why"]), ("fix", one["fix"])):
            if text:
                yield f"  - {name}: {prose(text)}"


def _list(document: ListDocument, *, whole: bool) -> Iterator[str]:  # noqa: ARG001 - lists are short
    pools = list_rows(document)
    yield f"### gpukube pools: {len(pools)}"
    yield ""
    if pools:
        yield from _table(
            [title for title, _ in LIST_COLUMNS], ([prose(cell(pool)) for _, cell in LIST_COLUMNS] for pool in pools)
        )
        yield ""
    for cluster in document["clusters"]:
        yield from _diagnostics(cluster["error"] or ())


def _report(document: ReportDocument, *, whole: bool) -> Iterator[str]:
    yield f"### gpukube {document['kind'].lower()}: {outcome_words(document)}"
    yield ""
    rows = [(c["cluster"], pool) for c in document["clusters"] for pool in c["pools"]]
    if rows:
        yield from _table(("", "Cluster", "Pool", "Outcome", ""), (_outcome_row(*row) for row in rows))
        yield ""
    for cluster in document["clusters"]:
        if cluster["release"]:
            yield f"- {code(cluster['cluster'])}: {prose(cluster['release'])}"
        yield from _diagnostics(cluster["error"] or ())
        for pool in cluster["pools"]:
            yield from _diagnostics(pool["error"] or ())
            name = f"{cluster['cluster']}/{pool['pool']}"
            if pool["tolerations"] and whole:
                yield from _tolerations(f"Pods of {code(name)}", pool["tolerations"])
            if pool["resume"]:
                yield f"- {code(name)} to resume: {code(pool['resume'])}"
            if pool["proof"] and whole:
                yield from _proof(name, pool["proof"])


def _proof(name: str, proof: Proof) -> Iterator[str]:
    """Show what a probe saw, and every node as promised and as seen, folded."""
    probe = proof["probe"]
    if probe:
        yield f"- {_PROBES[probe['status']]} {code(name)} probe {probe['status']}: {prose(probe['says'])}"
        yield ""
        if probe["output"]:
            yield from _folded(f"{_html(name)}: nvidia-smi -L", _fenced_text(probe["output"]))
    if proof["nodes"]:
        rows = [row for node in proof["nodes"] for row in _node_rows(node, due=proof["status"] != "unmanaged")]
        yield from _folded(f"{_html(name)}: nodes", _table(_NODE_TITLES, rows))


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
    yield f"{whose} need in their spec; nothing adds it:"
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


def _doctor(document: DoctorDocument, *, whole: bool) -> Iterator[str]:
    yield f"### gpukube doctor: {doctor_words(document)}"
    yield ""
    for cluster in document["clusters"]:
        yield f"**{code(cluster['cluster'])}**: {cluster['made']} checks made"
        yield ""
        yield from (f"- ✅ fixed: {prose(line)}" for line in cluster["mended"])
        yield from _diagnostics(cluster["unmended"])
        for finding in cluster["ailments"]:
            yield from _finding(finding, whole=whole)
        yield from _diagnostics(() if cluster["made"] else cluster["errors"])  # told by the checks of access
        yield ""


def _finding(finding: AilmentPart, *, whole: bool) -> Iterator[str]:
    sign = "❌" if finding["severity"] == "error" else "⚠️"
    yield f"- {sign} {code(finding['where'])}: {prose(finding['seen'])} ([{finding['check']}]({finding['link']}))"
    if whole:
        yield from (f"  - seen: {prose(line)}" for line in finding["evidence"])
    yield f"  - {prose(finding['consequence'])}"
    yield f"  - fix: {code(finding['remedy'])}"


_MAKERS: Final[Mapping[str, Callable[..., Iterator[str]]]] = {  # each takes the shape of its own kind
    "Plan": _plan,
    "Diff": _plan,
    "PoolList": _list,
    "Create": _report,
    "Apply": _report,
    "Scale": _report,
    "Delete": _report,
    "Release": _report,
    "Wait": _report,
    "Verify": _report,
    "Doctor": _doctor,
}
