"""Changes that gpukube itself does not send, because of what it saw of the node group just before.

In scope: those errors. Out of scope: what AWS's own refusals mean (`facts.meanings`), the look (`change`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.errors import CloudError, Moved
from gpukube_eks.facts.meanings import AGAIN, quote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.errors import GpukubeError


def unchangeable(status: str, issues: Sequence[tuple[str, str]], where: str) -> GpukubeError:
    """Make our error of a group that cannot be updated in its state, which does not end by waiting.

    A failed one must be deleted; whether EKS updates a DEGRADED one is reported both ways (aws/containers-roadmap#2204,
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
    """Make our error of a change that was made from values which are others by now."""
    what = ", ".join(parts)
    return Moved(f"the node group changed since it was read: {what}", where=where, fix=AGAIN)
