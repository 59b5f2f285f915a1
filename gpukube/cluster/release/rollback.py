"""Chooses the rollback after a failed release change, and words its error.

In scope: which revision to roll back to, and the wording; pure. Out of scope: running Helm (manager).

Helm's own way (`--atomic`, `--rollback-on-failure`) waits for pods, which never come in a cluster without nodes, and
undoes a successful upgrade; so the manager requests a rollback itself, and only if Helm has recorded a failure.
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
    """Return the revision to roll back to, the last deployed one before a failed newest; None if nothing is to restore.

    A failed first installation has none: its objects stay, and the next run continues from them.
    """
    last = newest(history)
    if last is None or last.status != FAILED:
        return None
    return newest([item for item in history if item.status == DEPLOYED and item.revision < last.revision])


def rollback_command(release: Release) -> str:
    """Return the command that rolls back to a revision."""
    return f"helm rollback {release.name} {release.revision} --namespace {NAMESPACE}"


def rolled_back_error(error: GpukubeError, release: Release) -> GpukubeError:
    """Return an error with a note that the previous revision is running again."""
    return _with_remark(error, f"the release was rolled back to revision {release.revision}, which serves as before")


def kept_error(error: GpukubeError, release: Release, cause: GpukubeError) -> GpukubeError:
    """Return an error with a note that the rollback failed too, and the command for it."""
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
