"""What stands after a change of the release went wrong, and how its error says so.

In scope: which revision to put back, and the words; pure. Out of scope: running Helm (manager).

Helm's own way (`--atomic`, `--rollback-on-failure`) waits for pods, which in a cluster without nodes never come, and
undoes an upgrade that was fine; so the keeper asks for a rollback itself, and only where Helm has noted a failure.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gpukube.cluster.kube.releases import DEPLOYED, newest
from gpukube.cluster.names import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.cluster.kube.releases import Release
    from gpukube.errors import GpukubeError

FAILED: Final = "failed"


def fallback_of(history: Sequence[Release]) -> Release | None:
    """Choose the revision to put back: the last deployed one below a failed newest; None when there is nothing to do.

    A first installation that failed has none: its objects stay, and the next run goes on from them.
    """
    last = newest(history)
    if last is None or last.status != FAILED:
        return None
    return newest([item for item in history if item.status == DEPLOYED and item.revision < last.revision])


def rollback_command(release: Release) -> str:
    """Write what puts a revision back by hand."""
    return f"helm rollback {release.name} {release.revision} --namespace {NAMESPACE}"


def rolled_back_error(error: GpukubeError, release: Release) -> GpukubeError:
    """Return an error with the remark that the former revision runs again."""
    return _with_remark(error, f"the release was rolled back to revision {release.revision}, which serves as before")


def kept_error(error: GpukubeError, release: Release, cause: GpukubeError) -> GpukubeError:
    """Return an error with the remark that the rollback went wrong too, and how to make it by hand."""
    first = cause.diagnostics[0]
    message = f"{first.seen} ({first.why})" if first.why else first.seen
    return _with_remark(
        error,
        f"the release could not be rolled back to revision {release.revision}: {message}",
        fix=f"to roll back: {rollback_command(release)}",
    )


def _with_remark(error: GpukubeError, why: str, fix: str = "") -> GpukubeError:
    first, *others = error.diagnostics
    joined = replace(
        first,
        why="; ".join(part for part in (first.why, why) if part),
        fix="; ".join(part for part in (first.fix, fix) if part),
    )
    return type(error).of((joined, *others), str(error))
