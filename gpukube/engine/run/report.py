"""What became of each pool and cluster, and the exit code that follows."""

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
"""done: changed as asked; unchanged: was right already; started: the cloud took the call and goes on, and the run did
not wait for its end: as asked (--no-wait), stopped, or out of time; unknown: the run ended while a call was in flight,
so the cloud may have taken it or not; differs: is ours but unlike the spec, left alone; not-attempted: no request that
changes it was sent."""

GOOD: frozenset[Outcome] = frozenset({"done", "unchanged", "started"})


@dataclass(frozen=True, slots=True)
class PoolReport:
    """What became of one pool.

    Attributes:
        pool: Name in the spec.
        name: The cloud's name.
        outcome: See Outcome.
        message: One line.
        changes: The differences: brought about, or (outcome differs) left alone.
        proof: What the nodes show; None when it was not looked at.
        error: Why it failed, or was not waited for any longer.
        resume: Command that takes it up again; "" when there is nothing to resume.
        tolerations: Of a pool that this run made or adopted: what its pods need and nothing adds.
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
        """Whether all is well with it so far."""
        return self.outcome in GOOD and self.error is None

    @property
    def is_settled(self) -> bool:
        """Whether it is as asked, and nothing of it is under way."""
        return self.outcome in ("done", "unchanged")


@dataclass(frozen=True, slots=True)
class ClusterReport:
    """What became of one cluster.

    Attributes:
        cluster: Which.
        pools: In the order of the spec.
        release: One line on the device-plugin release; "" when it was not looked at.
        error: What stopped the work on the cluster: before any pool was touched, or after all were done.
        removed: Whether the release was to go, and is gone.
    """

    cluster: ClusterRef
    pools: tuple[PoolReport, ...]
    release: str = ""
    error: GpukubeError | None = None
    removed: bool = False


def exit_code(reports: Sequence[ClusterReport]) -> ExitCode:
    """Choose the exit code: 0 all well, 3 some well, else the cause's own code when all share one, else 1."""
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
