"""Taints of a pool in the form of the wire, and how a new list is made of the live one.

In scope: that merge. Out of scope: which taints a spec may have (`rules.checks`), calls.

An update replaces the whole list (google.container.v1 UpdateNodePoolRequest.taints). What GKE put there by itself is
sent again: whether it would come back is not documented, and a GPU pool without its taint fills with other pods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.core.resolve import GPU_TAINT
from gpukube_gke.pool.fields import SYSTEM_TAINTS, wire_taint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.core.values import Taint


def merged_taints(live: Sequence[Taint], declared: Sequence[Taint]) -> list[dict[str, object]]:
    """Make the list that is sent: the live taints that stay, in their order, then the new ones.

    Args:
        live: Taints as the pool has them, those of GKE included.
        declared: Taints of the spec; the GPU taint among them is GKE's to add and left to it.
    """
    own = [taint for taint in declared if taint != GPU_TAINT]
    desired = {(taint.key, taint.effect) for taint in own}
    kept = [
        taint for taint in live if taint in own or (_is_implicit(taint) and (taint.key, taint.effect) not in desired)
    ]
    return [wire_taint(taint) for taint in (*kept, *sorted(taint for taint in own if taint not in kept))]


def _is_implicit(taint: Taint) -> bool:
    return taint == GPU_TAINT or taint.key in SYSTEM_TAINTS
