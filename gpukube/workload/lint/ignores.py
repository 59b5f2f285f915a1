"""Ignored findings: comments and annotations that name a rule and a reason.

    image: rayproject/ray-ml:2.9.0-gpu  # gpukube: ignore GPK754 - replaced in May

A comment applies to its line; on a line of its own it applies to the next line, and above an object to the whole
object. The annotation gpukube.io/lint-ignore, on an object or a pod template, contains "GPK754: reason", several
separated by ";".

Pure. Out of scope: the rules.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from gpukube.codes import WORKLOADS
from gpukube.errors import Finding, Where
from gpukube.rule_ids import code_of, rule_label
from gpukube.spec.wording import nearest, quoted
from gpukube.workload.lint.views import mapping, text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from gpukube.spec.source.positions import Path
    from gpukube.workload.lint.views import Pod
    from gpukube.workload.manifests import Manifest

ANNOTATION: Final = "gpukube.io/lint-ignore"

_MARK: Final = "gpukube:"
_COMMENT: Final = re.compile(r"(?:^|\s)#\s*gpukube:\s*ignore\b[\s:]*(?P<entry>.*)$")
_ENTRY: Final = re.compile(r"(?P<rules>[\w-]+(?:\s*,\s*[\w-]+)*)\s*(?:(?:[-:]|\u2013|\u2014)\s*(?P<reason>.*))?")


class Ignored(NamedTuple):
    """An ignored finding with its reason."""

    finding: Finding
    reason: str


@dataclass(frozen=True, slots=True)
class Ignore:
    """One rule that is ignored in some lines.

    Attributes:
        where: Position of the comment or the annotation.
        rule: As written, a number or a name.
        reason: Reason; "" if missing.
        first: First line that it applies to.
        last: Last line that it applies to.
    """

    where: Where
    rule: str
    reason: str
    first: int
    last: int

    def meets(self, finding: Finding) -> bool:
        """Return whether it applies to a finding."""
        place = finding.where
        return (
            place.source == self.where.source
            and self.first <= place.line <= self.last
            and code_of(self.rule) == finding.code
        )


def comments(source: str, content: str, manifests: Sequence[Manifest]) -> Iterator[Ignore]:
    """Read the comments of a file that ignore rules."""
    if _MARK not in content:
        return
    lines = content.splitlines()
    objects = {manifest.positions.at().line: manifest for manifest in manifests}
    for number, line in enumerate(lines, start=1):
        found = _COMMENT.search(line) if _MARK in line else None
        if found is None:
            continue
        first = last = number
        if not line[: found.start()].strip():
            first = last = _next_content(lines, number)
            last = _lines(objects[first])[1] if first in objects else last
        where = Where(source, number, line.index("#", found.start()) + 1)
        for rule, reason in _entries(found["entry"]):
            yield Ignore(where, rule, reason, first, last)


def annotated(manifest: Manifest, pods: Sequence[Pod]) -> Iterator[Ignore]:
    """Read the annotations of an object and of its pod templates that ignore rules."""
    for path in dict.fromkeys(((), *(pod.template.path for pod in pods))):
        place: Path = (*path, "metadata", "annotations")
        written = text(mapping(manifest.positions.within(place).root).get(ANNOTATION))
        if not written:
            continue
        first, last = _lines(manifest, path)
        for entry in re.split(r"[;\n]", written):
            for rule, reason in _entries(entry.strip()) if entry.strip() else ():
                yield Ignore(manifest.positions.at((*place, ANNOTATION)), rule, reason, first, last)


def apply_ignores(
    findings: Sequence[Finding], ignores: Sequence[Ignore]
) -> tuple[tuple[Finding, ...], tuple[Ignored, ...]]:
    """Remove ignored findings, and add findings about the ignores themselves."""
    kept: list[Finding] = []
    ignored: list[Ignored] = []
    used: set[Ignore] = set()
    for finding in findings:
        meeting = [one for one in ignores if one.meets(finding)]
        used.update(meeting)
        if meeting:
            ignored.append(Ignored(finding, meeting[0].reason))
        else:
            kept.append(finding)
    kept += (problem for one in dict.fromkeys(ignores) for problem in _judge(one, used))
    return tuple(kept), tuple(ignored)


def _judge(ignore: Ignore, used: Collection[Ignore]) -> Iterator[Finding]:
    code = code_of(ignore.rule)
    if code is None:
        near = nearest(ignore.rule, WORKLOADS)
        yield Finding(
            "ignore-rule",
            ignore.where,
            f"{quoted(ignore.rule)} is not a rule",
            fix=f"write {rule_label(near)}" if near else "gpukube workload lint --list-rules lists them",
            severity="warning",
        )
    elif ignore not in used:
        yield Finding(
            "ignore-unused",
            ignore.where,
            f"{rule_label(code)} has no finding here",
            fix="remove it",
            severity="hint",
        )
    elif not ignore.reason:
        yield Finding(
            "ignore-reason",
            ignore.where,
            f"{rule_label(code)} is ignored without a reason",
            fix="write why: gpukube: ignore RULE - reason",
            severity="hint",
        )


def _entries(entry: str) -> Iterator[tuple[str, str]]:
    """Split "GPK701, gpu-zero - reason"; a text without a rule yields one that does not exist."""
    found = _ENTRY.match(entry)
    if found is None:
        yield entry, ""
        return
    for rule in found["rules"].split(","):
        yield rule.strip(), (found["reason"] or "").strip()


def _next_content(lines: Sequence[str], number: int) -> int:
    """Return the number of the next line that is not empty, a comment, or a document separator."""
    for following in range(number, len(lines)):
        line = lines[following].strip()
        if line and not line.startswith(("#", "---", "%")):
            return following + 1
    return number


def _lines(manifest: Manifest, path: Path = ()) -> tuple[int, int]:
    """Return the first and last line of a part."""
    positions = manifest.positions.within(path)
    lines = [positions.origin.where(mark).line for mark in positions.all_marks()]
    return min(lines), max(lines)
