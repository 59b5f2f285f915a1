"""What became of each pool and cluster, and the exit code that follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from gpukube.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gpukube.cluster.proof import PoolProof
    from gpukube.core.values import ClassifiedChange, ClusterRef
    from gpukube.errors import GpukubeError

__all__ = ["ClusterReport", "Outcome", "PoolReport", "exit_code"]

Outcome = Literal["done", "unchanged", "started", "differs", "failed", "not-attempted"]
"""done: changed as asked; unchanged: was right already; started: the cloud took the call and was not waited for;
differs: is ours but unlike the spec, left alone."""

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
        error: Why it failed.
        resume: Command that takes it up again; "" when there is nothing to resume.
    """

    pool: str
    name: str
    outcome: Outcome
    message: str
    changes: tuple[ClassifiedChange, ...] = ()
    proof: PoolProof | None = None
    error: GpukubeError | None = None
    resume: str = ""


@dataclass(frozen=True, slots=True)
class ClusterReport:
    """What became of one cluster.

    Attributes:
        cluster: Which.
        pools: In the order of the spec.
        release: One line on the device-plugin release; "" when it was not looked at.
        error: What stopped the whole cluster before any pool was touched.
    """

    cluster: ClusterRef
    pools: tuple[PoolReport, ...]
    release: str = ""
    error: GpukubeError | None = None


def exit_code(reports: Sequence[ClusterReport]) -> ExitCode:
    """Choose the exit code: 0 all well, 3 some well, else the cause's own code when all share one, else 1."""
    outcomes = [pool.outcome for report in reports for pool in report.pools]
    clusters_failed = any(report.error is not None for report in reports)
    if not clusters_failed and all(outcome in GOOD for outcome in outcomes):
        return ExitCode.DONE
    if any(outcome in GOOD for outcome in outcomes):
        return ExitCode.PARTLY_DONE
    codes = set(_codes(reports))
    return codes.pop() if len(codes) == 1 else ExitCode.ERROR


def _codes(reports: Iterable[ClusterReport]) -> Iterable[ExitCode]:
    for report in reports:
        if report.error is not None:
            yield report.error.exit_code
            continue
        for pool in report.pools:
            if pool.outcome not in GOOD and pool.outcome != "not-attempted":
                yield pool.error.exit_code if pool.error else ExitCode.ERROR
