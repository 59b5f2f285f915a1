"""Calls that change live agent pools, each a PUT of the pool as read, guarded by its etag."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.provider_parts import PoolRequests
from gpukube.errors import SpecError
from gpukube_aks.pool.change import (
    translate_copy,
    translate_freeze,
    translate_recreate,
    translate_release,
    translate_scale,
    translate_updates,
)
from gpukube_aks.pool.translate import translate_delete
from gpukube_aks.rules.checks import check_scale

if TYPE_CHECKING:
    from gpukube.core.values import ClusterRef, Nodes, Observed, Request


def _scale(cluster: ClusterRef, observed: Observed, nodes: Nodes) -> Request:
    if problems := check_scale(nodes, f"{cluster.key}/{observed.name}"):
        raise SpecError.of(problems)
    return translate_scale(cluster, observed, nodes)


REQUESTS: Final = PoolRequests(
    delete=translate_delete,
    update=translate_updates,
    scale=_scale,
    release=translate_release,
    recreate=translate_recreate,
    copy=translate_copy,
    freeze=translate_freeze,
)
"""No follow-up call: the PUT that creates a pool contains all of it."""
