"""A diff or a validation as GitHub's workflow commands: annotations beside the lines of the spec, and one that sums up.

Source: docs.github.com "Workflow commands for GitHub Actions"; escapes as in actions/toolkit
packages/core/src/command.ts. GitHub shows 10 errors and 10 warnings of a step and 50 annotations of a job
(actions/toolkit docs/problem-matchers.md, Limitations) and drops the rest without a word: so the most telling come
first, and what is left is in the log, with its count in the last annotation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from gpukube.cli.rendering.lines import difference_lines
from gpukube.cli.rendering.words import (
    cost_words,
    drift_words,
    outcome_of_diff,
    release_acts,
    repair_words,
    unread_line,
)
from gpukube.engine.documents.summary import plan_summary, validation_summary
from gpukube.rule_ids import rule_label

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpukube.engine.documents.shapes.parts import Change, Diagnostic, Position
    from gpukube.engine.documents.shapes.plan import ClusterPart, PlanDocument, PoolPart
    from gpukube.engine.documents.shapes.report import LintDocument, ValidationDocument

SHOWN: Final = 10
"""Annotations of one level in one step; GitHub would drop what is more."""

Level = Literal["error", "warning", "notice"]
_LEVELS: Final[tuple[Level, ...]] = ("error", "warning", "notice")
_SEVERITY_LEVELS: Final[dict[str, Level]] = {"error": "error", "warning": "warning", "hint": "notice"}
_ACTION_LEVELS: Final[dict[str, Level]] = {
    "replace": "error",
    "delete": "error",
    "conflict": "error",
    "update": "warning",
    "create": "warning",
    "adopt": "notice",
}
_CHANGE_LEVELS: Final[dict[str, Level]] = {"replace": "error", "refused": "error"}


@dataclass(frozen=True, slots=True)
class _Note:
    level: Level
    title: str
    text: str
    position: Position | None = None


def github_lines(document: PlanDocument | ValidationDocument | LintDocument) -> Iterator[str]:
    """Write what differs, or is found, as annotations, the gravest first, then the sum as plain text."""
    if document["kind"] == "Validation" or document["kind"] == "Lint":
        found = (*document["errors"], *document["warnings"], *document["hints"])
        yield from _annotations([_diagnostic(one, "gpukube") for one in found])
        yield f"gpukube: {_data(validation_summary(document))}"
        return
    notes = [note for cluster in document["clusters"] for note in _cluster(cluster)]
    notes += [_diagnostic(found, "spec") for found in document["warnings"]]
    yield from _annotations(notes)
    yield f"gpukube: {outcome_of_diff(document)}: {_data(plan_summary(document))}"
    if line := unread_line(document):
        yield f"gpukube: {_data(line)}"


def _annotations(notes: Sequence[_Note]) -> Iterator[str]:
    for level in _LEVELS:
        yield from _capped([note for note in notes if note.level == level], level)


def _capped(notes: list[_Note], level: Level) -> Iterator[str]:
    """Annotate as many as GitHub shows; the rest goes to the log, and the last annotation says so."""
    fits = notes if len(notes) <= SHOWN else notes[: SHOWN - 1]
    yield from map(_command, fits)
    rest = notes[len(fits) :]
    if rest:
        yield _command(_Note(level, "gpukube", f"{len(rest)} more of this level are in the log of this step"))
    for note in rest:
        yield f"{level}: {_data(note.title)}: {_data(note.text)}"


def _command(note: _Note) -> str:
    place = note.position
    parts = {"title": note.title}
    if place and place["file"] != "-":
        parts = {"file": place["file"], "line": str(place["line"]), "col": str(place["column"]), **parts}
    properties = ",".join(f"{name}={_property(value)}" for name, value in parts.items())
    return f"::{note.level} {properties}::{_data(note.text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _cluster(cluster: ClusterPart) -> Iterator[_Note]:
    key = cluster["cluster"]
    for found in (*(cluster["error"] or ()), *cluster["diagnostics"]):
        yield _diagnostic(found, key)
    if cluster["unknown"]:
        yield _Note("warning", key, f"inside the cluster: unknown: {cluster['unknown']}")
    for pool in cluster["pools"]:
        yield from _pool(key, pool)
    release = cluster["release"]
    if release and release_acts(release):
        lines = [f"{release['action']} release {release['namespace']}/{release['name']}: {release['why']}"]
        yield _Note("warning", key, "\n".join([*lines, *map(drift_words, release["drift"])]))
    for repair in cluster["nodeRepairs"]:
        yield _Note("warning", f"{key}/{repair['pool']}", f"node {repair['node']}: {repair_words(repair)}")
    for extra in cluster["undeclared"]:
        text = f'belongs to "{extra["owner"]}", and the spec does not declare it'
        yield _Note("warning", f"{key}/{extra['pool']}", text)


def _pool(key: str, pool: PoolPart) -> Iterator[_Note]:
    if pool["action"] == "no-op":
        return
    title = f"{key}/{pool['pool']}: {pool['action']}"
    costs = f"\ncosts {cost_words(pool['loss'])}" if pool["loss"] else ""
    if not pool["changes"] and not pool["diagnostics"]:
        yield _Note(_ACTION_LEVELS[pool["action"]], title, pool["why"] + costs, pool["declared"])
    for change in pool["changes"]:
        yield _change(title, change, costs if change["kind"] in ("replace", "disruptive") else "")
    yield from (_diagnostic(found, title, pool["declared"]) for found in pool["diagnostics"])


def _change(title: str, change: Change, costs: str) -> _Note:
    first, *items = difference_lines(change["field"], change["old"], change["new"])
    text = "\n".join([f"{first} [{change['kind']}]", *items])
    level = _CHANGE_LEVELS.get(change["kind"], "warning")
    return _Note(level, title, f"{text}\n{change['sentence']}{costs}", change["declared"])


def _diagnostic(found: Diagnostic, title: str, declared: Position | None = None) -> _Note:
    tail = [f"{name}: {text}" for name, text in (("why", found["why"]), ("fix", found["fix"])) if text]
    head = found["message"] if found["position"] else f"{found['where']}: {found['message']}"
    title = f"{title} [{rule_label(found['code'])}]"
    place = found["position"] or declared
    return _Note(_SEVERITY_LEVELS[found["severity"]], title, "\n".join([head, *tail]), place)
