"""Findings that the spec accepts, each with a reason: left out of the report, counted, and checked themselves. Pure.

In scope: which `silence` of which pool matches which finding. Out of scope: finding problems of pools.

A silence documents a known finding. Therefore one that names no rule is an error, one that would hide an error is an
error, and one that matches nothing is a hint, because its reason is gone or never existed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from gpukube.errors import Finding
from gpukube.rule_ids import code_of, rule_label, rule_numbers
from gpukube.spec.wording import nearest, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpukube.errors import Where
    from gpukube.spec.loading.load import LoadedSpec

PoolKey = tuple[int, int]
"""Identifies a pool: index of its spec, index in that spec."""


class OfPool(NamedTuple):
    """A finding and the pool it is about; None if it is not about a single one."""

    pool: PoolKey | None
    finding: Finding


class Silenced(NamedTuple):
    """A finding that is accepted, and the reason."""

    finding: Finding
    reason: str


@dataclass(frozen=True, slots=True)
class Judged:
    """Reported and silenced findings.

    Attributes:
        reported: Findings that no silence covers, and problems of the silences; each once.
        silenced: The rest, each once per reason.
    """

    reported: tuple[Finding, ...]
    silenced: tuple[Silenced, ...]


class _Entry(NamedTuple):
    """One silence of one pool; a silence under defaults is an entry of every pool, at one place."""

    pool: PoolKey
    rule: str
    reason: str
    path: str
    where: Where


def judge(findings: Sequence[OfPool], specs: Sequence[LoadedSpec]) -> Judged:
    """Remove the findings that the pools silence.

    Args:
        findings: Findings on all pools.
        specs: The specs of these pools, in the order that their keys refer to.
    """
    entries = list(_entries(specs))
    reported: list[Finding] = []
    silenced: list[Silenced] = []
    met: set[Where] = set()
    by_rule = {(entry.pool, code_of(entry.rule) or entry.rule): entry for entry in reversed(entries)}
    for pool, found in findings:
        entry = by_rule.get((pool, found.code)) if pool else None
        if entry is None:
            reported.append(found)
            continue
        met.add(entry.where)
        if found.severity == "error":
            reported += [found, _hides_error(entry, found)]
        else:
            silenced.append(Silenced(found, entry.reason))
    reported += _silence_problems(
        entries, met, findings, {(number, index) for number, one in enumerate(specs) for index in one.unknown}
    )
    return Judged(tuple(dict.fromkeys(reported)), tuple(dict.fromkeys(silenced)))


def _entries(specs: Sequence[LoadedSpec]) -> Iterator[_Entry]:
    for number, loaded in enumerate(specs):
        for index, (pool, at) in enumerate(zip(loaded.pools, loaded.places, strict=True)):
            for place, silence in enumerate(pool.silence):
                path = ("silence", place, "rule")
                yield _Entry((number, index), silence.rule, silence.reason, at.path(path), at.at(path))


def _silence_problems(
    entries: Sequence[_Entry], met: set[Where], findings: Sequence[OfPool], mistaken: set[PoolKey]
) -> Iterator[Finding]:
    """Find silences that name no rule or match nothing, each place once.

    One that matches nothing is not reported for a pool whose errors stopped its checks early.
    """
    names = {found.code for _, found in findings}
    unseen = mistaken | {pool for pool, found in findings if pool and found.severity == "error"}
    excused = met | {entry.where for entry in entries if entry.pool in unseen}
    for entry in {entry.where: entry for entry in reversed(entries)}.values():
        if not code_of(entry.rule) and entry.rule not in names:
            yield _unknown(entry)
        elif entry.where not in excused:
            message = f"{entry.path} is {quoted(entry.rule)}, but there is no such finding"
            why = "a silence is for a warning or a hint of its pool; errors cannot be silenced"
            yield Finding("silence-unused", entry.where, message, fix="remove it", why=why, severity="hint")


def _hides_error(entry: _Entry, found: Finding) -> Finding:
    return Finding(
        "silence-error",
        entry.where,
        f"{entry.path} is {quoted(entry.rule)}, which is an error here ({found.where})",
        fix=f"fix {rule_label(found.code)} and remove this",
        why="only warnings and hints can be silenced; an error cannot work",
    )


def _unknown(entry: _Entry) -> Finding:
    near = nearest(entry.rule, [*rule_numbers(), *rule_numbers().values()])
    return Finding(
        "silence-rule",
        entry.where,
        f"{entry.path} is {quoted(entry.rule)}; no rule has this number or name",
        fix=f"did you mean {near}?" if near else "write the number of the finding, such as GPK502",
    )
