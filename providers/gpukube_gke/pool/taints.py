"""Merges declared taints into the live list, in wire form; the taint of a class.

In scope: that merge, and the pools of a class. Out of scope: which taints a spec may have (`rules.checks`), calls.

An update replaces the whole list (google.container.v1 UpdateNodePoolRequest.taints). Taints that GKE added are sent
again: whether GKE would restore them is not documented, and a GPU pool without its taint fills with other pods.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gpukube.core.resolve import GPU_TAINT
from gpukube.core.values import Taint
from gpukube_gke.facts.compute_class import CLASS_KEY
from gpukube_gke.pool.fields import SYSTEM_TAINTS, wire_taint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.core.values import Target


def in_class(target: Target) -> Target:
    """Add label and taint of the ComputeClass of an autoscaled family: each pool of it is in the class from birth."""
    if not (target.family and target.nodes.autoscaled):
        return target
    taint = Taint(CLASS_KEY, target.family, "NoSchedule")
    labels = {**target.labels, CLASS_KEY: target.family}
    return replace(target, labels=labels, taints=tuple(dict.fromkeys((*target.taints, taint))))


def merged_taints(live: Sequence[Taint], declared: Sequence[Taint]) -> list[dict[str, object]]:
    """Return the list to send: remaining live taints in their order, then the new ones.

    Args:
        live: Taints of the pool, including GKE's.
        declared: Taints of the spec; the GPU taint is left to GKE, which adds it.
    """
    own = [taint for taint in declared if taint != GPU_TAINT]
    desired = {(taint.key, taint.effect) for taint in own}
    kept = [
        taint for taint in live if taint in own or (_is_implicit(taint) and (taint.key, taint.effect) not in desired)
    ]
    return [wire_taint(taint) for taint in (*kept, *sorted(taint for taint in own if taint not in kept))]


def _is_implicit(taint: Taint) -> bool:
    return taint == GPU_TAINT or taint.key in SYSTEM_TAINTS
