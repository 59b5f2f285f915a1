"""Result for each pool and cluster, and the resulting exit code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from gpukube.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gpukube.cluster.proof.outcome import PoolProof
    from gpukube.core.values import ClassifiedChange, ClusterRef, Toleration
    from gpukube.errors import GpukubeError

Outcome = Literal["done", "unchanged", "started", "unknown", "differs", "failed", "not-attempted"]
"""done: changed as requested; unchanged: already matched; started: the cloud accepted the call and is still working,
and the run did not wait for the end: by request (--no-wait), stopped, or out of time; unknown: the run ended while a
call was in flight, so the cloud may have accepted it or not; differs: the owner's pool differs from the spec and was
left alone; not-attempted: no request that changes it was sent."""

GOOD: frozenset[Outcome] = frozenset({"done", "unchanged", "started"})


@dataclass(frozen=True, slots=True)
class PoolReport:
    """Result for one pool.

    Attributes:
        pool: Name in the spec.
        name: The cloud's name.
        outcome: See Outcome.
        message: One line.
        changes: The differences: applied, or (outcome differs) left alone.
        proof: What the nodes show; None if they were not checked.
        error: Why it failed, or why the run stopped waiting for it.
        resume: Command that resumes the work; "" if there is nothing to resume.
        tolerations: For a pool that this run created or adopted: tolerations that pods must set themselves.
    """

    pool: str
    name: str
    outcome: Outcome
    message: str
    changes: tuple[ClassifiedChange, ...] = ()
    proof: PoolProof | None = None
    error: GpukubeError | None = None
    resume: str = ""
    tolerations: tuple[Toleration, ...] = ()

    @property
    def is_good(self) -> bool:
        """Whether the result so far is not a failure."""
        return self.outcome in GOOD and self.error is None

    @property
    def is_settled(self) -> bool:
        """Whether the pool is as requested with nothing in progress."""
        return self.outcome in ("done", "unchanged")


@dataclass(frozen=True, slots=True)
class ClusterReport:
    """Result for one cluster.

    Attributes:
        cluster: The cluster.
        pools: In the order of the spec.
        release: One line on the device-plugin release; "" if it was not read.
        error: What stopped the work on the cluster: before any pool was touched, or after all were done.
        removed: Whether the release was to be removed, and is gone.
    """

    cluster: ClusterRef
    pools: tuple[PoolReport, ...]
    release: str = ""
    error: GpukubeError | None = None
    removed: bool = False


def exit_code(reports: Sequence[ClusterReport]) -> ExitCode:
    """Return the exit code: 0 for success, 3 for partial success, else the code that all causes share, else 1."""
    good = [pool.is_good for report in reports for pool in report.pools]
    good += [True for report in reports if report.removed]
    clusters_failed = any(report.error is not None for report in reports)
    if not clusters_failed and all(good):
        return ExitCode.DONE
    if any(good):
        return ExitCode.PARTLY_DONE
    codes = set(_codes(reports))
    return codes.pop() if len(codes) == 1 else ExitCode.ERROR


def _codes(reports: Iterable[ClusterReport]) -> Iterable[ExitCode]:
    for report in reports:
        if report.error is not None:
            yield report.error.exit_code
            continue
        for pool in report.pools:
            if pool.error is not None:
                yield pool.error.exit_code
            elif not pool.is_good and pool.outcome != "not-attempted":
                yield ExitCode.ERROR
