"""Calls that change live node pools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.provider_parts import PoolRequests
from gpukube_gke.pool.change import release_pool, scale_pool, update_pool
from gpukube_gke.pool.sizes import autoscale_request, is_autoscaled
from gpukube_gke.pool.translate import translate_delete, translate_taint

if TYPE_CHECKING:
    from gpukube.core.values import ClusterRef, Observed, Request


def _freeze(cluster: ClusterRef, observed: Observed) -> Request | None:
    return autoscale_request(cluster, observed, None) if is_autoscaled(observed) else None


REQUESTS: Final = PoolRequests(
    delete=translate_delete,
    update=update_pool,
    scale=scale_pool,
    release=release_pool,
    follow_up=translate_taint,
    freeze=_freeze,
)
"""No `recreate`: a failed pool must be deleted first. No `copy`: it is written at creation only."""
