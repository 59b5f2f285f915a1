"""Everything that can go wrong, as values and as exceptions, and the exit codes.

Lives here: `ExitCode`, `Where`, `Finding` and the exception tree. Must not live here: anything that
knows a cloud, a file format or a terminal.

The tree::

    GpukubeError            1
    ├── SpecError           4   the user's spec or command line
    ├── AccessError         5   who we are, or what we may do
    │   ├── WrongAccount    5   somebody else than the spec names
    │   └── NotAllowed      5   known, and without the permission
    ├── CapacityError       6   the cloud has no such machine now
    ├── QuotaError          6   the account may not have more of them
    ├── WaitTimeout         7   the cloud is still working
    │   └── DrainTimeout    7   pods are still on nodes that are drained
    ├── Conflict            1   somebody else's pool, a lost race
    │   ├── Busy            1   another operation runs: wait, send again
    │   └── Moved           1   changed since it was read: look again
    ├── CloudError          1   any other answer of a cloud's API
    │   └── NoCluster       1   no such cluster, or none that has node pools
    ├── ClusterError        1   the Kubernetes API of a cluster
    │   └── ClusterSlow     1   it took the connection, and answered too late
    ├── HelmError           1   the chart or the release
    │   ├── ChartNotFound   4   its repository has no such version
    │   ├── FieldConflict   1   another editor has a field of an object
    │   └── HelmTimeout     1   Helm took too long
    ├── StalePlan           1   a saved plan that the world has moved away from
    └── MissingExtra        1   a library that is not installed

A class exists because somebody acts differently on it. Cloud SDK exceptions are kept as `__cause__`.
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
    "QuotaError",
    "Severity",
    "SpecError",
    "StalePlan",
    "WaitTimeout",
    "Where",
    "WrongAccount",
    "in_order",
    "render_diagnostics",
]

Severity = Literal["error", "warning", "hint"]
"""Gravest first. An error cannot work, a warning probably won't, a hint works and costs more than it has to."""

SEVERITIES: tuple[Severity, ...] = get_args(Severity)

MISREAD = (TypeError, AttributeError, LookupError, ValueError, ArithmeticError, RecursionError)
"""What SDKs and readers raise at an answer that is not the API's: a proxy's page, or values of another type.

Caught only where answers are read; anywhere else these are defects.
"""

SHOWN_AT_MOST = 50
"""Findings printed in one run; the rest is counted."""


class ExitCode(IntEnum):
    """What the process says when it ends. Documented in README.md, per error code in docs/codes.md."""

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
"""Places or names that are listed; the same at more places than these is one line."""
_ABOUT: Final = re.compile(r"([\w.-]+/[\w.-]+): (.+)", re.DOTALL)
"""How a message that is about one pool of one cluster begins."""
_ON: Final = re.compile(r"(.+) \(on ([\w.-]+)\)", re.DOTALL)
"""How a message that is about one cluster ends."""


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
    """Something that is wrong, or could be better: in a spec, in the answer of a cloud, on a node.

    Attributes:
        code: Stable, documented, kebab-case: of a message, each has a folder under tests/messages; of the doctor, the
            id of its check.
        where: File position or resource.
        seen: What is wrong, with the value seen: one lower-case line without a full stop.
        fix: What to write or run; empty only where no action is needed.
        why: The rule behind it, or what comes of it, when it is not plain.
        severity: Errors stop the run before anything is changed; warnings and hints do not.
        evidence: Further lines that were seen.
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
    """Order diagnostics as they are shown everywhere: by position, the gravest first at one place."""
    return sorted(diagnostics, key=lambda d: (d.where, SEVERITIES.index(d.severity), d.code, d.seen))


def render_diagnostics(diagnostics: Iterable[Finding]) -> str:
    """Render at most 50 diagnostics in order of position, whatever their severity, then the count of the rest.

    What is the same about several pools or clusters is told once, with their number.
    """
    ordered = _folded(in_order(diagnostics))
    lines = [d.render() for d in ordered[:SHOWN_AT_MOST]]
    if len(ordered) > SHOWN_AT_MOST:
        lines.append(f"... and {len(ordered) - SHOWN_AT_MOST} more")
    return "\n".join(lines)


def _folded(ordered: Sequence[Finding]) -> list[Finding]:
    """Make one diagnostic of those that say the same of other pools or clusters, and of many at other places."""
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
    """Split what is said from the pool or cluster that it is said of, "" where none is named."""
    if about := _ABOUT.fullmatch(found.seen):
        return about[1], about[2]
    if on := _ON.fullmatch(found.seen):
        return on[2], on[1]
    return "", found.seen


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _PLACES} more" if len(names) > _PLACES else ""
    return ", ".join(names[:_PLACES]) + more


class GpukubeError(Exception):
    """Base of all errors that gpukube raises on purpose; carries what the user is told.

    Args:
        message: What is wrong, lower case, no full stop.
        where: File position or resource the message is about.
        fix: What to write or run.
        why: The rule behind it, when it is not plain.
        code: Stable kebab-case code; the class's own when not given.
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
        """Make one error of several diagnostics.

        Args:
            diagnostics: At least one.
            message: What the error says as a whole; that of the first of the gravest diagnostics when not given.
        """
        found = tuple(diagnostics)
        first = min(found, key=lambda d: SEVERITIES.index(d.severity))
        error = cls(message or first.seen, where=first.where)
        error._diagnostics = found
        return error

    @property
    def diagnostics(self) -> tuple[Finding, ...]:
        """What the user is told, at least one."""
        return self._diagnostics

    def render(self) -> str:
        """Render every diagnostic for the terminal."""
        return render_diagnostics(self.diagnostics)


def defect(error: BaseException, where: Where | str = "gpukube") -> GpukubeError:
    """Tell of an exception that nobody expects: a bug in gpukube.

    Args:
        error: As it was caught.
        where: The pool or cluster that was worked on, where one is known.
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
        fix="report it with the trace of -v; running the command again continues",
        code="defect",
    )


class SpecError(GpukubeError):
    """The spec or the command line is wrong; holds all diagnostics of the run."""

    exit_code = ExitCode.BAD_INPUT
    default_code = "spec"


class AccessError(GpukubeError):
    """Not authenticated, not authorised, or authenticated as somebody else than the spec names."""

    exit_code = ExitCode.ACCESS
    default_code = "access"


class WrongAccount(AccessError):
    """Authenticated, and the account, subscription, tenant or project is another than the spec names."""


class NotAllowed(AccessError):
    """Authenticated as the spec says, and without the permission."""

    default_code = "permission"


class CapacityError(GpukubeError):
    """The cloud has no such machine at this place now; another zone, type or time may do."""

    exit_code = ExitCode.CAPACITY
    default_code = "capacity"


class QuotaError(GpukubeError):
    """The account may not have more of this machine family; somebody must raise the quota."""

    exit_code = ExitCode.CAPACITY
    default_code = "quota"


class WaitTimeout(GpukubeError):
    """The deadline passed while the cloud keeps working; the same command resumes.

    Args:
        message: As of every error.
        where: As of every error.
        fix: As of every error.
        in_flight: A change was sent and its answer was not waited for: nobody knows whether it had an effect.
    """

    exit_code = ExitCode.TIMED_OUT
    default_code = "timeout"

    def __init__(self, message: str, *, where: Where | str = "gpukube", fix: str = "", in_flight: bool = False) -> None:
        self.in_flight = in_flight
        super().__init__(message, where=where, fix=fix)


class DrainTimeout(WaitTimeout):
    """Pods are still on the nodes at the end of a drain's time; the nodes stay cordoned."""

    default_code = "drain-timeout"


class Conflict(GpukubeError):
    """The resource is somebody else's, busy, or changed under our hands; observe, then decide."""

    default_code = "conflict"


class Busy(Conflict):
    """Another operation runs on the cluster or the pool: the same call may be sent again once that has ended."""

    default_code = "busy"


class Moved(Conflict):
    """The pool changed since it was read (an etag that no longer fits), and nothing was done: look at it again."""

    default_code = "changed"


class CloudError(GpukubeError):
    """Any other refusal or failure of a cloud's API."""

    default_code = "cloud"


class NoCluster(CloudError):
    """There is no such cluster, or it is of a kind that has no node pools."""

    default_code = "no-cluster"


class ClusterError(GpukubeError):
    """The Kubernetes API of a cluster refused or could not be reached."""

    default_code = "cluster"


class ClusterSlow(ClusterError):
    """The Kubernetes API took the connection and answered too late: nothing was changed, so it is asked again."""

    default_code = "cluster-unreachable"


class HelmError(GpukubeError):
    """The chart could not be had or rendered, or the release could not be changed."""

    default_code = "helm"


class ChartNotFound(HelmError):
    """The repository has answered, and has no such version of the chart: the spec or the command line must change."""

    exit_code = ExitCode.BAD_INPUT
    default_code = "no-chart-version"


class FieldConflict(HelmError):
    """Somebody else holds fields of an object of the release, which Helm does not overwrite."""

    default_code = "helm-field-conflict"


class HelmTimeout(HelmError):
    """Helm took too long, or was ended because the run is to end."""

    default_code = "helm-timeout"


class StalePlan(GpukubeError):
    """What a saved plan saw is no longer there."""

    default_code = "stale-plan"


class MissingExtra(GpukubeError):
    """A cloud or tool was asked for whose library is not installed."""

    default_code = "missing-extra"
