"""What a family's runs leave for the next one: the member in trial, the one that has the nodes, and what others said.

In scope: the record, its text in an annotation, and the name of its Lease. Out of scope: reading and writing the Lease
(`family_lease`).
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from math import isfinite
from typing import TYPE_CHECKING, Final, Literal, get_args

from gpukube.errors import MISREAD

if TYPE_CHECKING:
    from collections.abc import Mapping

OutcomeKind = Literal["stock", "reservation", "quota", "regional-quota", "restriction", "price", "timeout"]

KINDS: Final[Mapping[OutcomeKind, str]] = {
    "stock": "no machines",
    "reservation": "the reservation is full",
    "quota": "the quota is used up",
    "regional-quota": "the region's quota is used up",
    "restriction": "not offered there",
    "price": "skipped for its price",
    "timeout": "no machines in time",
}
"""Kind of an outcome -> its words for people."""
ATTEMPTS: Final = "gpukube.io/attempts"
"""Annotation of the Lease that has the record."""
_MOST_OUTCOMES: Final = 64
"""Most outcomes kept: members leave a spec, and the annotations of an object may have 256 KiB."""
_LONGEST: Final = 400
_LABEL: Final = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_LONGEST_FAMILY: Final = 44
"""Together with the prefix and the hash of the owner a label of DNS, 63 characters."""


@dataclass(frozen=True, slots=True)
class Trial:
    """The member that a run is trying, and since when (seconds since the epoch)."""

    cluster: str
    member: str
    since: float


@dataclass(frozen=True, slots=True)
class Win:
    """The member that got the nodes, and when."""

    cluster: str
    member: str
    at: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """Why a member did not get its nodes.

    Attributes:
        cluster: Key of the cluster.
        member: Name of the pool.
        kind: What the run moved on for.
        says: The cloud's own words, free of secrets.
        at: Seconds since the epoch.
    """

    cluster: str
    member: str
    kind: OutcomeKind
    says: str
    at: float


@dataclass(frozen=True, slots=True)
class Record:
    """The record of a family."""

    trial: Trial | None = None
    won: Win | None = None
    outcomes: tuple[Outcome, ...] = ()

    def begin(self, cluster: str, member: str, now: float) -> Record:
        """Note that a member is tried; a trial that goes on keeps its beginning."""
        if self.trial and (self.trial.cluster, self.trial.member) == (cluster, member):
            return self
        return replace(self, trial=Trial(cluster, member, now))

    def end(self, outcome: Outcome) -> Record:
        """Note what a trial ended with, in place of what the same member ended with before."""
        tried = (outcome.cluster, outcome.member)
        is_over = self.trial is not None and (self.trial.cluster, self.trial.member) == tried
        kept = (*self._without(*tried), outcome)[-_MOST_OUTCOMES:]
        return replace(self, trial=None if is_over else self.trial, outcomes=kept)

    def win(self, cluster: str, member: str, now: float) -> Record:
        """Note which member has the nodes."""
        return Record(won=Win(cluster, member, now), outcomes=self._without(cluster, member))

    def _without(self, cluster: str, member: str) -> tuple[Outcome, ...]:
        return tuple(old for old in self.outcomes if (old.cluster, old.member) != (cluster, member))


def fresh(outcome: Outcome, ttl_s: float, now: float) -> bool:
    """Return whether an outcome still counts; the clock of the machine that wrote it may be ahead."""
    return abs(now - outcome.at) < ttl_s


def lease_name(owner: str, family: str) -> str:
    """Return the name of the Lease of a family: a label of DNS, whatever its owner and the family are called."""
    is_label = len(family) <= _LONGEST_FAMILY and _LABEL.fullmatch(family)
    return f"gpukube-{_hashed(owner)}-{family if is_label else _hashed(family)}"


def _hashed(name: str) -> str:
    return sha256(name.encode()).hexdigest()[:10]


def record_text(record: Record) -> str:
    """Write a record as the value of the annotation."""
    kept = tuple(replace(outcome, says=outcome.says[:_LONGEST]) for outcome in record.outcomes)
    return json.dumps(asdict(replace(record, outcomes=kept)), ensure_ascii=False, separators=(",", ":"))


def read_record(text: str) -> Record:
    """Read a record; anything that gpukube did not write is an empty one, which only costs attempts."""
    try:
        found = json.loads(text)
        trial, won = found["trial"], found["won"]
        return Record(
            None if trial is None else Trial(*_named(trial), _time(trial["since"])),
            None if won is None else Win(*_named(won), _time(won["at"])),
            tuple(map(_outcome, found["outcomes"])),
        )
    except MISREAD:
        return Record()


def _outcome(found: dict[str, object]) -> Outcome:
    kinds: dict[object, OutcomeKind] = {kind: kind for kind in get_args(OutcomeKind)}
    return Outcome(*_named(found), kinds[found["kind"]], _text(found["says"]), _time(found["at"]))


def _named(found: dict[str, object]) -> tuple[str, str]:
    return _text(found["cluster"]), _text(found["member"])


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _time(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise TypeError
    return float(value)
