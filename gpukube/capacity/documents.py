"""The document of `gpukube capacity find`. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpukube.capacity.criteria import Criteria
    from gpukube.capacity.ways import Found, Search, Source
    from gpukube.core.capacity_sources import Way
    from gpukube.core.quotas import QuotaUse
    from gpukube.engine.documents.shapes.capacity import (
        CapacityDocument,
        CapacityPricePart,
        CapacityQuotaPart,
        CapacitySourcePart,
        CapacityWayPart,
    )

_DIGITS = 4


def capacity_document(
    search: Search, criteria: Criteria, *, live: bool, pool: str = "", create: str = ""
) -> CapacityDocument:  # fmt: skip
    """Return the document of a search.

    Args:
        search: What was found.
        criteria: What was looked for.
        live: Whether clouds were called.
        pool: Pool of the spec; "" without one.
        create: Command that creates it.
    """
    return {
        "schemaVersion": 0,
        "kind": "Capacity",
        "asked": {
            "gpu": {"model": str(criteria.model), "count": criteria.count},
            "nodes": criteria.nodes,
            "seconds": criteria.seconds,
            "pool": pool,
        },
        "live": live,
        "ways": [_way(found) for found in search.ways],
        "sources": [_source(source) for source in search.sources],
        "notes": list(search.notes),
        "create": create,
    }


def _way(found: Found) -> CapacityWayPart:
    place, way = found.place, found.way
    return {
        "kind": way.kind,
        "provider": place.inquiry.provider,
        "cluster": place.cluster.key if place.cluster else "",
        "region": place.inquiry.region,
        "zone": way.zone,
        "instanceType": way.machine,
        "known": way.known,
        "free": way.free if way.known == "free" else None,
        "words": way.words,
        "why": way.why,
        "start": way.start,
        "end": way.end,
        "note": way.note,
        "price": _price(found),
        "quotas": [_quota(use) for use in found.quotas],
        "quotaNotAsked": found.no_quota,
        "id": way.id,
        "capacity": _capacity(place.inquiry.provider, way),
        "buy": way.buy,
    }


def _price(found: Found) -> CapacityPricePart:
    usd, each = found.price.usd, found.usd_per_gpu
    return {
        "usdPerHour": None if usd is None else round(usd.least, _DIGITS),
        "usdPerGpuHour": None if each is None else round(each, _DIGITS),
        "source": found.way.price_source or found.price.source,
        "asOf": found.price.as_of if found.price.source != "live" else "",
        "rough": found.price.rough,
    }


def _quota(use: QuotaUse) -> CapacityQuotaPart:
    return {
        "name": use.quota.name,
        "title": use.quota.title,
        "unit": use.quota.unit,
        "needed": use.needed,
        "used": use.reading.used,
        "limit": use.reading.limit,
        "unknown": use.reading.unknown,
        "short": use.is_short,
        "fix": use.fix,
    }


def _capacity(provider: str, way: Way) -> dict[str, object] | None:
    """Return how a pool names this way; a reservation that is still to be bought has no id."""
    if way.kind in ("spot", "on-demand"):
        return {"type": way.kind}
    if way.buy or not way.form:
        return None
    return {"type": "reserved", "reserved": {provider: {way.form: way.id or {}}}}


def _source(source: Source) -> CapacitySourcePart:
    line = source.line
    return {
        "provider": source.provider,
        "source": line.source,
        "state": line.state,
        "code": line.code,
        "text": line.text,
        "places": list(source.places),
    }
