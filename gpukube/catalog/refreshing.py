"""Refreshing the catalog from the clouds' APIs.

In scope: which regions to query, querying them in parallel, handling answers and failures, and the document. Out of
scope: calls and the meaning of answers (the providers), the file (cache.py).

One cloud's failure does not affect the others: its previous data stays, and the reason is reported.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from gpukube.catalog.seam import catalogs
from gpukube.core.cloud_catalog import Inquiry
from gpukube.engine.documents.parts import error_part
from gpukube.engine.run.fanout import run_all
from gpukube.errors import ExitCode, GpukubeError, SpecError, Where
from gpukube.gpu.machines import catalog_date, machines
from gpukube.gpu.refreshed import Stock
from gpukube.gpu.refusal import nearest, one_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.core.cloud_catalog import Account, CloudCatalog, Findings
    from gpukube.core.values import Settings
    from gpukube.engine.documents.shapes.catalog import CatalogRefreshDocument, RefreshedPart
    from gpukube.gpu.refreshed import Offer

AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of one inquiry.

    Attributes:
        inquiry: The inquiry.
        stock: The data to use: new or previous; None if there is neither.
        error: Why there is no new data.
    """

    inquiry: Inquiry
    stock: Stock | None
    error: GpukubeError | None = None


def choose_inquiries(
    providers: Sequence[str], regions: Sequence[str], account: Account, settings: Settings
) -> tuple[Inquiry, ...]:
    """Return the inquiries to make.

    Args:
        providers: Clouds; () for all, or, if regions are named, for the clouds of those regions.
        regions: Regions; () for the region of each cloud's embedded prices.
        account: Account of the requests.
        settings: Settings of the run.

    Raises:
        SpecError: A cloud does not exist, or a region belongs to none of the clouds.
    """
    known = catalogs()
    for name in providers:
        if name not in known:
            raise SpecError(
                f'no catalog for "{name}"',
                where=Where("--provider"),
                fix=f"choose {one_of(nearest(name, known))}",
                code="no-catalogue",
            )
    selected = {name: known[name] for name in (providers or known)}
    found = [
        Inquiry(name, region, account, settings) for name in selected for region in _regions(selected[name], regions)
    ]
    for region in regions:
        if not any(catalog.has_region(region) for catalog in selected.values()):
            examples = (f"{catalog.region_example} ({name})" for name, catalog in selected.items())
            raise SpecError(
                f'"{region}" is not a region of {one_of(selected)}',
                where=Where("--region"),
                fix=f"use a name such as {one_of(examples)}",
                code="region",
            )
    return tuple({(inquiry.provider, inquiry.region): inquiry for inquiry in found}.values())


def _regions(catalog: CloudCatalog, requested: Sequence[str]) -> Sequence[str]:
    return [region for region in requested if catalog.has_region(region)] if requested else (catalog.home,)


def refresh(inquiries: Sequence[Inquiry], former: Sequence[Stock], now: str) -> tuple[Outcome, ...]:
    """Run all inquiries in parallel.

    Args:
        inquiries: The inquiries.
        former: Previous data.
        now: Time, ISO 8601 in UTC.
    """
    known = catalogs()
    tasks = {(i.provider, i.region): partial(known[i.provider].fetch, i) for i in inquiries}
    before = {(stock.provider, stock.region): stock for stock in former}
    answers = run_all(tasks, AT_ONCE)
    outcomes = []
    for inquiry in inquiries:
        key = (inquiry.provider, inquiry.region)
        old, answer = before.get(key), answers[key]
        if isinstance(answer, GpukubeError):
            outcomes.append(Outcome(inquiry, old, answer))
        else:
            outcomes.append(Outcome(inquiry, _stock(inquiry, answer, old, now)))
    return tuple(outcomes)


def _stock(inquiry: Inquiry, found: Findings, old: Stock | None, now: str) -> Stock:
    """Date the new prices; keep previous ones, with their dates, if none could be read."""
    dated = [replace(offer, price_date=now[:10]) if offer.price_usd_h is not None else offer for offer in found.offers]
    if not found.priced and old is not None:
        prices: Mapping[tuple[str, str, float], Offer] = {offer.key: offer for offer in old.offers}
        dated = [_with_price_of(prices.get(offer.key), offer) for offer in dated]
    offers = tuple(sorted(dated, key=lambda offer: offer.key))
    return Stock(
        provider=inquiry.provider,
        region=inquiry.region,
        fetched=now,
        offers=offers,
        notes=found.notes,
        table=catalog_date(),
    )


def _with_price_of(old: Offer | None, offer: Offer) -> Offer:
    if old is None or offer.price_usd_h is not None:
        return offer
    return replace(offer, price_usd_h=old.price_usd_h, spot_usd_h=old.spot_usd_h, price_date=old.price_date)


def joined(former: Sequence[Stock], outcomes: Sequence[Outcome]) -> tuple[Stock, ...]:
    """Return the data to keep: previous data, replaced by new data for the same region."""
    kept = {(stock.provider, stock.region): stock for stock in former}
    kept |= {(o.stock.provider, o.stock.region): o.stock for o in outcomes if o.stock is not None and o.error is None}
    return tuple(kept.values())


def refresh_exit_code(outcomes: Sequence[Outcome]) -> ExitCode:
    """Return the exit code: 0 all new, 3 some, and if none is, that of the first failure."""
    failed = [outcome.error for outcome in outcomes if outcome.error is not None]
    if not failed:
        return ExitCode.DONE
    return failed[0].exit_code if len(failed) == len(outcomes) else ExitCode.PARTLY_DONE


def refresh_document(outcomes: Sequence[Outcome], file: str) -> CatalogRefreshDocument:
    """Return the document of a refresh."""
    return {
        "schemaVersion": 1,
        "kind": "CatalogRefresh",
        "exitCode": int(refresh_exit_code(outcomes)),
        "file": file,
        "clouds": [_part(outcome) for outcome in outcomes],
    }


def _part(outcome: Outcome) -> RefreshedPart:
    stock, inquiry = outcome.stock, outcome.inquiry
    offers = stock.offers if stock else ()
    embedded = {m.name for m in machines(inquiry.provider)}
    return {
        "provider": inquiry.provider,
        "region": inquiry.region,
        "refreshed": outcome.error is None,
        "types": len(offers),
        "prices": sum(offer.price_usd_h is not None for offer in offers),
        "added": sorted({offer.name for offer in offers} - embedded),
        "notes": list(stock.notes) if stock and outcome.error is None else [],
        "kept": stock.day if stock and outcome.error is not None else "",
        "errors": error_part(outcome.error) or [],
    }
