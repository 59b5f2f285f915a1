"""Errors for changes that gpukube does not send because of the node group's state just before.

In scope: these errors. Out of scope: AWS's own errors (`facts.meanings`), the check itself (`change`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.errors import CloudError, Moved
from gpukube_eks.facts.meanings import AGAIN, quote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.errors import GpukubeError


def unchangeable(status: str, issues: Sequence[tuple[str, str]], where: str) -> GpukubeError:
    """Return the error for a group that cannot be updated in its state; waiting does not help.

    A failed group must be deleted; reports differ on whether EKS updates a DEGRADED one (aws/containers-roadmap#2204,
    #2326).
    """
    degraded = status == "DEGRADED"
    return CloudError(
        f"EKS does not update a node group that is {status}",
        where=where,
        fix="fix its health issues, or delete the pool and create it again"
        if degraded
        else "delete the pool and create it again",
        why=quote("; ".join(f"{code}: {text}" for code, text in issues)),
        code="unchangeable",
    )


def moved(parts: Sequence[str], where: str) -> GpukubeError:
    """Return the error for a change whose underlying live values have changed."""
    what = ", ".join(parts)
    return Moved(f"the node group changed since it was read: {what}", where=where, fix=AGAIN)
