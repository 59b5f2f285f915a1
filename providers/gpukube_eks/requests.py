"""Requests for live node groups."""

from __future__ import annotations

from typing import Final

from gpukube.core.provider_parts import PoolRequests
from gpukube_eks.pool.change import (
    translate_changes,
    translate_copy,
    translate_freeze,
    translate_release,
    translate_scale,
)
from gpukube_eks.pool.translate import translate_carry, translate_delete, translate_keep, translate_recreate

REQUESTS: Final = PoolRequests(
    delete=translate_delete,
    update=translate_changes,
    scale=translate_scale,
    release=translate_release,
    carry=translate_carry,
    keep=translate_keep,
    recreate=translate_recreate,
    copy=translate_copy,
    freeze=translate_freeze,
)
"""EKS's requests, without a follow-up: the creation contains everything."""
