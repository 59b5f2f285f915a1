"""Quotas against what a plan needs of them -> their part of the document Plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpukube.core.quotas import QuotaUse
    from gpukube.engine.documents.shapes.quotas import Quota


def quota_part(use: QuotaUse) -> Quota:
    """Describe one quota."""
    quota, reading = use.quota, use.reading
    return {
        "name": quota.name,
        "title": quota.title,
        "place": quota.place,
        "unit": quota.unit,
        "needed": use.needed,
        "pools": list(use.pools),
        "used": reading.used,
        "limit": reading.limit,
        "short": use.is_short,
        "unknown": reading.unknown,
        "fix": use.fix if use.is_short else "",
        "raiseBy": quota.raise_by,
        "source": quota.source,
    }
