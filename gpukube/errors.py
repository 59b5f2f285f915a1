"""Exit codes, findings, and the exception tree.

Nothing here knows a cloud, a file format, or a terminal.

The tree::

    GpukubeError            1
    ├── SpecError           4   the user's spec or command line
    ├── AccessError         5   authentication or permissions
    │   ├── WrongAccount    5   not the account that the spec names
    │   └── NotAllowed      5   authenticated, but the permission is missing
    ├── CapacityError       6   the cloud has no such machine right now
    │   ├── StockOut        6   not in this place at this time
    │   ├── ReservationFull 6   the reservation has none for this pool
    │   └── NotOffered      6   never in this place, or not for this account
    ├── QuotaError          6   the account's quota is used up
    │   └── RegionalQuota   6   one that all machines of the region count against
    ├── WaitTimeout         7   the cloud is still working
    │   └── DrainTimeout    7   pods are still on nodes that are drained
    ├── Conflict            1   another owner's pool, or a lost race
    │   ├── Busy            1   another operation is running: wait, then retry
    │   └── Moved           1   changed since it was read: read it again
    ├── CloudError          1   any other error from a cloud's API
    │   ├── NoCluster       1   no such cluster, or it has no node pools
    │   └── Throttled       1   too many calls: the same one works later
    ├── ClusterError        1   the Kubernetes API of a cluster
    │   └── ClusterSlow     1   connected, but the answer came too late
    ├── HelmError           1   the chart or the release
    │   ├── ChartNotFound   4   the repository has no such chart version
    │   ├── FieldConflict   1   another manager owns a field of an object
    │   └── HelmTimeout     1   Helm took too long
    ├── StalePlan           1   the live state changed since the plan was saved
    └── MissingExtra        1   a library that is not installed

Each class exists because a caller handles it differently. Cloud SDK exceptions are kept as `__cause__`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING, ClassVar, Final, Literal, Self, get_args

from gpukube.rule_ids import rule_label
from gpukube.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "MISREAD",
    "SEVERITIES",
    "AccessError",
    "Busy",
    "CapacityError",
    "ChartNotFound",
    "CloudError",
    "ClusterError",
    "ClusterSlow",
    "Conflict",
    "DrainTimeout",
    "ExitCode",
    "FieldConflict",
    "Finding",
    "GpukubeError",
    "HelmError",
    "HelmTimeout",
    "MissingExtra",
    "Moved",
    "NoCluster",
    "NotAllowed",
    "NotOffered",
    "QuotaError",
    "RegionalQuota",
    "ReservationFull",
    "Severity",
    "SpecError",
    "StalePlan",
    "StockOut",
    "Throttled",
    "WaitTimeout",
    "Where",
    "WrongAccount",
    "in_order",
    "render_diagnostics",
]

Severity = Literal["error", "warning", "hint"]
"""Most severe first. An error cannot work, a warning probably will not, a hint works but costs more than necessary."""

SEVERITIES: tuple[Severity, ...] = get_args(Severity)

MISREAD = (TypeError, AttributeError, LookupError, ValueError, ArithmeticError, RecursionError)
"""Exceptions that SDKs and parsers raise for a response that is not the API's: a proxy's page, or wrong types.

They are caught only where responses are read; anywhere else they are defects.
"""

SHOWN_AT_MOST = 50
"""Maximum number of findings printed in one run; the rest are counted."""


class ExitCode(IntEnum):
    """Exit codes of the process; README.md documents them, docs/codes.md lists them per error code."""

    DONE = 0
    ERROR = 1
    DIFFERS = 2  # only from `plan diff`
    PARTLY_DONE = 3
    BAD_INPUT = 4
    ACCESS = 5
    CAPACITY = 6
    TIMED_OUT = 7
    HUNG_UP = 129
    INTERRUPTED = 130
    TERMINATED = 143


_PLACES: Final = 3
"""Maximum number of places or names listed; a finding at more places is folded into one line."""
_ABOUT: Final = re.compile(r"([\w.-]+/[\w.-]+): (.+)", re.DOTALL)
"""Prefix of a message about one pool of one cluster."""
_ON: Final = re.compile(r"(.+) \(on ([\w.-]+)\)", re.DOTALL)
"""Suffix of a message about one cluster."""


@dataclass(frozen=True, slots=True, order=True)
class Where:
    """The place a message is about: a file position, or a resource.

    Attributes:
        source: File as the user wrote it ("pools.yaml", "-" for stdin), or a resource such as
            "train-aks/a100mig".
        line: 1-based; 0 when the source has no lines.
        column: 1-based; 0 when the source has no lines.
    """

    source: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        """Render as file:line:column, or the bare resource."""
        return f"{self.source}:{self.line}:{self.column}" if self.line else self.source


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem, or a possible improvement: in a spec, in a cloud's response, on a node.

    Attributes:
        code: Stable, documented, kebab-case. Each message code has a folder under tests/messages; for the doctor it
            is the id of the check.
        where: File position or resource.
        seen: What is wrong, including the value: one lower-case line without a period.
        fix: What to write or run; empty only if no action is needed.
        why: The rule behind it, or its consequence, if that is not obvious.
        severity: Errors stop the run before anything changes; warnings and hints do not.
        evidence: Further lines of output that support it.
    """

    code: str
    where: Where
    seen: str
    fix: str = ""
    why: str = ""
    severity: Severity = "error"
    evidence: tuple[str, ...] = ()

    def render(self) -> str:
        """Render as `where: severity[number code]: seen`, then indented why and fix lines."""
        lines = [f"{visible(str(self.where))}: {self.severity}[{rule_label(self.code)}]: {visible(self.seen)}"]
        lines += [f"    why: {visible(self.why)}"] if self.why else []
        lines += [f"    fix: {visible(self.fix)}"] if self.fix else []
        return "\n".join(lines)


def in_order(diagnostics: Iterable[Finding]) -> list[Finding]:
    """Return diagnostics in display order: by position, the most severe first at one position."""
    return sorted(diagnostics, key=lambda d: (d.where, SEVERITIES.index(d.severity), d.code, d.seen))


def render_diagnostics(diagnostics: Iterable[Finding]) -> str:
    """Render at most 50 diagnostics in order of position, whatever their severity, then count the rest.

    Diagnostics that are the same for several pools or clusters are printed once, with their number.
    """
    ordered = _folded(in_order(diagnostics))
    lines = [d.render() for d in ordered[:SHOWN_AT_MOST]]
    if len(ordered) > SHOWN_AT_MOST:
        lines.append(f"... and {len(ordered) - SHOWN_AT_MOST} more")
    return "\n".join(lines)


def _folded(ordered: Sequence[Finding]) -> list[Finding]:
    """Merge diagnostics that differ only in their pool or cluster, and those repeated at many places."""
    alike: dict[tuple[str, ...], list[Finding]] = {}
    for found in ordered:
        alike.setdefault((found.code, found.severity, _subject(found)[1], found.why, found.fix), []).append(found)
    folded: list[Finding] = []
    for same in alike.values():
        by_place: dict[Where, list[Finding]] = {}
        for found in same:
            by_place.setdefault(found.where, []).append(found)
        groups = [same] if len(by_place) > _PLACES else list(by_place.values())
        folded += [_one_of(group) for group in groups]
    return in_order(folded)


def _one_of(same: Sequence[Finding]) -> Finding:
    first = same[0]
    if len(same) == 1:
        return first
    seen = _subject(first)[1]
    subjects = list(dict.fromkeys(filter(None, (_subject(found)[0] for found in same))))
    places = list(dict.fromkeys(str(found.where) for found in same))[1:]
    counted = f"{len(same)} times" + (f": {_listed(subjects)}" if subjects else "")
    also = f"; also at {_listed(places)}" if places else ""
    return replace(first, seen=f"{seen} ({counted}{also})")


def _subject(found: Finding) -> tuple[str, str]:
    """Return the pool or cluster that a finding is about ("" if it names none), and the rest of the message."""
    if about := _ABOUT.fullmatch(found.seen):
        return about[1], about[2]
    if on := _ON.fullmatch(found.seen):
        return on[2], on[1]
    return "", found.seen


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _PLACES} more" if len(names) > _PLACES else ""
    return ", ".join(names[:_PLACES]) + more


class GpukubeError(Exception):
    """Base of all errors that gpukube raises on purpose; carries the diagnostics shown to the user.

    Args:
        message: What is wrong, lower case, no period.
        where: File position or resource the message is about.
        fix: What to write or run.
        why: The rule behind it, if that is not obvious.
        code: Stable kebab-case code; defaults to the class's own.
    """

    exit_code: ClassVar[ExitCode] = ExitCode.ERROR
    default_code: ClassVar[str] = "error"

    def __init__(
        self,
        message: str,
        *,
        where: Where | str = "gpukube",
        fix: str = "",
        why: str = "",
        code: str = "",
    ) -> None:
        place = Where(where) if isinstance(where, str) else where
        self._diagnostics: tuple[Finding, ...] = (Finding(code or self.default_code, place, message, fix=fix, why=why),)
        super().__init__(message)

    @classmethod
    def of(cls, diagnostics: Iterable[Finding], message: str = "") -> Self:
        """Combine several diagnostics into one error.

        Args:
            diagnostics: At least one.
            message: Message of the error as a whole; defaults to that of the first of the most severe diagnostics.
        """
        found = tuple(diagnostics)
        first = min(found, key=lambda d: SEVERITIES.index(d.severity))
        error = cls(message or first.seen, where=first.where)
        error._diagnostics = found
        return error

    @property
    def diagnostics(self) -> tuple[Finding, ...]:
        """The diagnostics shown to the user, at least one."""
        return self._diagnostics

    def render(self) -> str:
        """Render every diagnostic for the terminal."""
        return render_diagnostics(self.diagnostics)


def defect(error: BaseException, where: Where | str = "gpukube") -> GpukubeError:
    """Return the error for an unexpected exception: a bug in gpukube.

    Args:
        error: The exception as caught.
        where: The pool or cluster being processed, if known.
    """
    last = error.__traceback__
    while last and last.tb_next:
        last = last.tb_next
    code = last.tb_frame.f_code if last else None
    place = f" in {code.co_name} ({code.co_filename.rpartition('/')[2]}:{last.tb_lineno})" if code and last else ""
    return GpukubeError(
        f"{type(error).__name__}{place}",
        where=where,
        why="this is a bug in gpukube, not in your input",
        fix="report it with the trace that -v prints; run the command again to continue",
        code="defect",
    )


class SpecError(GpukubeError):
    """The spec or the command line is wrong; carries all diagnostics of the run."""

    exit_code = ExitCode.BAD_INPUT
    default_code = "spec"


class AccessError(GpukubeError):
    """Not authenticated, not authorized, or authenticated to an account that the spec does not name."""

    exit_code = ExitCode.ACCESS
    default_code = "access"


class WrongAccount(AccessError):
    """Authenticated, but to another account, subscription, tenant, or project than the spec names."""


class NotAllowed(AccessError):
    """Authenticated as the spec requires, but the permission is missing."""

    default_code = "permission"


class CapacityError(GpukubeError):
    """The cloud has no such machine in this place right now; another zone, type, or time may work.

    Raised itself only if the spec has to change first, such as for a reservation that does not exist.
    """

    exit_code = ExitCode.CAPACITY
    default_code = "capacity"


class StockOut(CapacityError):
    """All machines of this type and kind in this place are in use; that changes with time."""


class ReservationFull(CapacityError):
    """The reservation has too few machines left, has ended, or is not active yet."""


class NotOffered(CapacityError):
    """The zone does not have the machine type, or the account may not use it there: waiting does not help."""


class QuotaError(GpukubeError):
    """The account's quota for this machine family is used up; it has to be raised."""

    exit_code = ExitCode.CAPACITY
    default_code = "quota"


class RegionalQuota(QuotaError):
    """The quota is one for all machines of the region or account: no other machine type helps."""


class WaitTimeout(GpukubeError):
    """The deadline passed while the cloud keeps working; the same command resumes.

    Args:
        message: See GpukubeError.
        where: See GpukubeError.
        fix: See GpukubeError.
        in_flight: A change was sent and its response did not arrive in time: its outcome is unknown.
    """

    exit_code = ExitCode.TIMED_OUT
    default_code = "timeout"

    def __init__(self, message: str, *, where: Where | str = "gpukube", fix: str = "", in_flight: bool = False) -> None:
        self.in_flight = in_flight
        super().__init__(message, where=where, fix=fix)


class DrainTimeout(WaitTimeout):
    """Pods are still on the nodes when a drain times out; the nodes stay cordoned."""

    default_code = "drain-timeout"


class Conflict(GpukubeError):
    """The resource belongs to another owner, is busy, or changed concurrently; observe, then decide."""

    default_code = "conflict"


class Busy(Conflict):
    """Another operation is running on the cluster or pool; the same call can be retried once it ends."""

    default_code = "busy"


class Moved(Conflict):
    """The pool changed since it was read (its etag no longer matches); nothing was changed, so read it again."""

    default_code = "changed"


class CloudError(GpukubeError):
    """Any other refusal or failure of a cloud's API."""

    default_code = "cloud"


class NoCluster(CloudError):
    """The cluster does not exist, or is of a kind without node pools."""

    default_code = "no-cluster"


class Throttled(CloudError):
    """The cloud rejected a call because there were too many; it had no effect and works later."""


class ClusterError(GpukubeError):
    """The Kubernetes API of a cluster refused a request or could not be reached."""

    default_code = "cluster"


class ClusterSlow(ClusterError):
    """The Kubernetes API connected but answered too late; nothing was changed, so the request is retried."""

    default_code = "cluster-unreachable"


class HelmError(GpukubeError):
    """The chart could not be fetched or rendered, or the release could not be changed."""

    default_code = "helm"


class ChartNotFound(HelmError):
    """The repository answered and has no such chart version; the spec or the command line must change."""

    exit_code = ExitCode.BAD_INPUT
    default_code = "no-chart-version"


class FieldConflict(HelmError):
    """Another field manager owns fields of an object of the release; Helm does not overwrite them."""

    default_code = "helm-field-conflict"


class HelmTimeout(HelmError):
    """Helm took too long, or was stopped because the run is ending."""

    default_code = "helm-timeout"


class StalePlan(GpukubeError):
    """The live state no longer matches what the saved plan recorded."""

    default_code = "stale-plan"


class MissingExtra(GpukubeError):
    """A requested cloud or tool needs a library that is not installed."""

    default_code = "missing-extra"
