"""What a document reports, as notes, most severe first: for formats that show findings one by one.

In scope: which facts are worth a note, their severity, and their wording. Out of scope: the syntax of CI systems
(github, codequality).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from gpukube.cli.kinds import REPORTS
from gpukube.cli.rendering.doctor import doctor_words
from gpukube.cli.rendering.lines import difference_lines, plural
from gpukube.cli.rendering.report import outcome_words
from gpukube.cli.rendering.words import (
    cost_words,
    drift_words,
    order_words,
    orders_of,
    outcome_of_diff,
    release_acts,
    releases_of,
    repair_words,
    unread_line,
)
from gpukube.engine.documents.shards import part_line
from gpukube.engine.documents.summary import plan_summary, validation_summary
from gpukube.rule_ids import rule_label

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from gpukube.engine.documents.shapes.doctor import AilmentPart, DoctorDocument
    from gpukube.engine.documents.shapes.fit import FitDocument, FittedPart
    from gpukube.engine.documents.shapes.parts import Diagnostic, Position
    from gpukube.engine.documents.shapes.plan import ClusterPart, PlanDocument, PoolPart
    from gpukube.engine.documents.shapes.report import LintDocument, PoolOutcome, ReportDocument, ValidationDocument

Level = Literal["error", "warning", "notice"]
LEVELS: Final[tuple[Level, ...]] = ("error", "warning", "notice")
_SEVERITY_LEVELS: Final[dict[str, Level]] = {"error": "error", "warning": "warning", "hint": "notice"}
_DIFF_LEVELS: Final[dict[str, Level]] = {
    "replace": "error",
    "delete": "error",
    "conflict": "error",
    "update": "warning",
    "create": "warning",
    "adopt": "notice",
}
_PLAN_LEVELS: Final[dict[str, Level]] = {
    **dict.fromkeys(_DIFF_LEVELS, "notice"),
    "replace": "warning",
    "delete": "warning",
    "conflict": "error",
}
"""Levels of actions. A plan is intended, so only deletion is a warning; in a diff everything is unexpected."""
_WORST: Final = ("delete", "replace", "conflict")
"""Actions that come before all others of their level, in this order."""


@dataclass(frozen=True, slots=True)
class Note:
    """One fact to report.

    Attributes:
        level: Its severity.
        title: Its subject, and the rule that found it.
        text: Lines of the message.
        position: Position in a file; None if it is not about a file.
        rule: Stable name of the rule or check that found it.
        subject: Its subject, without anything that changes when the file is edited elsewhere.
        rank: Order among notes of a level.
    """

    level: Level
    title: str
    text: str
    position: Position | None = None
    rule: str = ""
    subject: str = ""
    rank: int = len(_WORST)


def notes_of(document: Mapping[str, Any]) -> list[Note]:
    """Return what a document reports, most severe first."""
    notes = list(_MAKERS[document["kind"]](document))
    if document.get("merged") and (line := part_line(document)):
        notes.append(Note("error", "gpukube", line, rule="shards-missing", subject="shards", rank=-1))
    return sorted(notes, key=lambda note: (LEVELS.index(note.level), note.rank))


def sum_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """Return a one-line summary of a document, and what is missing from it."""
    kind, made = document["kind"], cast("Any", document)
    if kind in ("Validation", "Lint"):
        yield validation_summary(made)
    elif kind in ("Plan", "Diff"):
        yield f"{outcome_of_diff(made) if kind == 'Diff' else 'plan'}: {plan_summary(made)}"
        if line := unread_line(made):
            yield line
    elif kind == "Doctor":
        yield f"doctor: {doctor_words(made)}"
    elif kind == "Fit":
        never = sum(part["never"] > 0 for part in made["workloads"])
        unknown = sum(part["unknown"] > 0 for part in made["workloads"])
        count = plural(len(made["workloads"]), "workload")
        words = [f"{never} of {count} never fit"] if never else []
        words += [f"{unknown} of {count} unknown"] if unknown else []
        yield f"fit: {', '.join(words) or f'{count}, all fit'}"
    else:
        yield f"{kind.lower()}: {outcome_words(made)}"
    if line := part_line(document):
        yield line


def _found(document: ValidationDocument | LintDocument) -> Iterator[Note]:
    for one in (*document["errors"], *document["warnings"], *document["hints"]):
        yield _diagnostic(one, "gpukube")


def _planned(document: PlanDocument) -> Iterator[Note]:
    levels = _PLAN_LEVELS if document["kind"] == "Plan" else _DIFF_LEVELS
    for cluster in document["clusters"]:
        yield from _cluster(cluster, levels)
    yield from (_diagnostic(found, "spec") for found in document["warnings"])


def _cluster(cluster: ClusterPart, levels: Mapping[str, Level]) -> Iterator[Note]:
    key, drifted = cluster["cluster"], levels["update"]
    for found in (*(cluster["error"] or ()), *cluster["diagnostics"]):
        yield _diagnostic(found, key)
    if cluster["unknown"]:
        yield Note("warning", key, f"inside the cluster: unknown: {cluster['unknown']}", rule="unknown", subject=key)
    for pool in cluster["pools"]:
        yield from _pool(key, pool, levels)
    for release in filter(release_acts, releases_of(cluster)):
        lines = [f"{release['action']} release {release['namespace']}/{release['name']}: {release['why']}"]
        level: Level = "error" if release["action"] == "conflict" else drifted
        subject = key if release == cluster["release"] else f"{key}/{release['name']}"
        text = "\n".join([*lines, *map(drift_words, release["drift"])])
        yield Note(level, key, text, rule="release", subject=subject)
    for repair in cluster["nodeRepairs"]:
        title = f"{key}/{repair['pool']}"
        text = f"node {repair['node']}: {repair_words(repair)}"
        yield Note(drifted, title, text, rule="node-repair", subject=f"{title} {text}")
    for order in orders_of(cluster):
        text = f"{order['action']} {order['object']}: {order_words(order)}"
        yield Note(drifted, key, text, rule="order", subject=f"{key}/{order['object']}")
    for extra in cluster["undeclared"]:
        text = f'belongs to "{extra["owner"]}", and the spec does not declare it'
        yield Note("warning", f"{key}/{extra['pool']}", text, rule="undeclared", subject=f"{key}/{extra['pool']}")


def _pool(key: str, pool: PoolPart, levels: Mapping[str, Level]) -> Iterator[Note]:
    action = pool["action"]
    if action == "no-op" or (action == "standby" and not pool["diagnostics"]):
        return
    title, subject = f"{key}/{pool['pool']}: {action}", f"{key}/{pool['pool']}"
    rank = _WORST.index(action) if action in _WORST else len(_WORST)
    costs = f"\ncosts {cost_words(pool['loss'])}" if pool["loss"] else ""
    if not pool["changes"] and not pool["diagnostics"]:
        yield Note(levels[action], title, pool["why"] + costs, pool["declared"], f"pool-{action}", subject, rank)
    for change in pool["changes"]:
        grave = change["kind"] in ("replace", "refused")
        level = levels["replace"] if change["kind"] == "replace" else "error" if grave else levels["update"]
        shown = costs if change["kind"] in ("replace", "disruptive") else ""
        first, *items = difference_lines(change["field"], change["old"], change["new"])
        text = "\n".join([f"{first} [{change['kind']}]", *items, f"{change['sentence']}{shown}"])
        subject = f"{key}/{pool['pool']} {change['field']}"
        yield Note(level, title, text, change["declared"], f"pool-{action}", subject, rank if grave else len(_WORST))
    yield from (_diagnostic(found, title, pool["declared"]) for found in pool["diagnostics"])


def _reported(document: ReportDocument) -> Iterator[Note]:
    for cluster in document["clusters"]:
        key = cluster["cluster"]
        yield from (_diagnostic(found, key) for found in cluster["error"] or ())
        for pool in cluster["pools"]:
            yield from _outcome(f"{key}/{pool['pool']}", pool)


_OUTCOME_LEVELS: Final[dict[str, Level]] = {
    "failed": "error",
    "unknown": "error",
    "differs": "error",
    "not-attempted": "warning",
    "started": "notice",
}


def _outcome(name: str, pool: PoolOutcome) -> Iterator[Note]:
    title, resume = f"{name}: {pool['outcome']}", f"\nto resume: {pool['resume']}" if pool["resume"] else ""
    yield from (_diagnostic(found, title) for found in pool["error"] or ())
    level = _OUTCOME_LEVELS.get(pool["outcome"])
    if level and not pool["error"]:
        declared = next((change["declared"] for change in pool["changes"] if change["declared"]), None)
        yield Note(level, title, pool["message"] + resume, declared, f"pool-{pool['outcome']}", name)


def _examined(document: DoctorDocument) -> Iterator[Note]:
    for cluster in document["clusters"]:
        key = cluster["cluster"]
        yield from (_doctor_finding(key, found) for found in cluster["ailments"])
        yield from (_diagnostic(found, key) for found in cluster["unmended"])
        # If any check ran, the checks of access report what could not be read.
        yield from (_diagnostic(found, key) for found in (() if cluster["made"] else cluster["errors"]))


def _doctor_finding(cluster: str, found: AilmentPart) -> Note:
    lines = [f"{found['where']}: {found['seen']}", found["consequence"], f"fix: {found['remedy']}", found["link"]]
    level: Level = "error" if found["severity"] == "error" else "warning"
    title = f"{cluster} [{found['check']}]"
    return Note(
        level, title, "\n".join(filter(None, lines)), rule=found["check"], subject=f"{cluster} {found['where']}"
    )


def _fitted(document: FitDocument) -> Iterator[Note]:
    for part in document["workloads"]:
        name = workload_name(part)
        roll_out = part["rollOut"]
        if words := unfit_words(part):
            text = "\n".join([words, *fit_lines(part)])
            yield Note("error", f"{name} on {part['cluster']}", text, part["position"], "never-fits", name)
        elif roll_out and roll_out["blocked"]:
            text = f"an update needs {plural(roll_out['pods'], 'more pod')} but has room for {roll_out['places']}"
            text = "\n".join([text, f"fix: {roll_out['fix']}"])
            yield Note("warning", f"{name} on {part['cluster']}", text, part["position"], "roll-out-blocked", name)
    for item in document["notPlaced"]:
        if item["hasPods"]:
            name = f"{item['object']}, group {item['group']}" if item["group"] else item["object"]
            yield Note("error", name, item["why"], item["position"], "never-fits", name)


def unfit_words(part: FittedPart) -> str:
    """Describe the pods of a workload that do not fit, or may not; "" if all do."""
    if part["never"]:
        return f"{plural(part['never'], 'pod')} never fit"
    return f"unknown whether {plural(part['unknown'], 'pod')} fit" if part["unknown"] else ""


def workload_name(part: FittedPart) -> str:
    """Return the name of the pods of one template."""
    return f"{part['object']}, group {part['group']}" if part["group"] else part["object"]


def fit_lines(part: FittedPart) -> Iterator[str]:
    """Explain why pods do not fit, and what would place them."""
    yield from (f"{reason['pool']}: {'; '.join(reason['why'])}" for reason in part["reasons"])
    if edit := part["edit"]:
        yield f"fix: {edit['where']}: {edit['text']}"


def _diagnostic(found: Diagnostic, title: str, declared: Position | None = None) -> Note:
    head = found["message"] if found["position"] else f"{found['where']}: {found['message']}"
    return Note(
        _SEVERITY_LEVELS[found["severity"]],
        f"{title} [{rule_label(found['code'])}]",
        "\n".join([head, *reason_lines(found)]),
        found["position"] or declared,
        found["id"] or found["code"],
        f"{found['field'] or found['where']} {found['message']}" if found["position"] else found["where"],
    )


def reason_lines(found: Diagnostic) -> list[str]:
    """Return the reason and the fix of a finding, one per line."""
    return [f"{name}: {text}" for name, text in (("why", found["why"]), ("fix", found["fix"])) if text]


_MAKERS: Final[Mapping[str, Callable[..., Iterator[Note]]]] = {  # each accepts the shape of its own kind
    "Plan": _planned,
    "Diff": _planned,
    **dict.fromkeys(REPORTS, _reported),
    "Doctor": _examined,
    "Validation": _found,
    "Lint": _found,
    "Fit": _fitted,
}
