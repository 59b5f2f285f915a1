"""Prices shown with a plan."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Final

from gpukube.catalog.prices import known_prices
from gpukube.cli.stderr import write_stderr
from gpukube.engine.plan.price_limits import PriceLimits, has_limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gpukube.cli.options import Choices
    from gpukube.cli.stage import Job
    from gpukube.core.prices import PriceBook
    from gpukube.engine.documents.shapes.plan import PlanDocument
    from gpukube.engine.plan.planning import ClusterPlan


def plan_prices(choices: Choices, job: Job, plans: Sequence[ClusterPlan]) -> PriceBook:
    """Return the catalog's prices, or with --live-prices current ones from the clouds."""
    known = known_prices(os.environ, sandbox=choices.sandbox)
    if not choices.live_prices:
        return known
    from gpukube.catalog.live_prices import pools_to_price, read_prices  # only this option needs it

    return read_prices(known, pools_to_price(plans), job.run.settings, job.run.clock)


def with_price_limits(plans: tuple[ClusterPlan, ...], prices: PriceBook, now: float) -> tuple[ClusterPlan, ...]:
    """Add what the maximum prices of pools rule out, for plans that are shown."""
    if not has_limits(plans):
        return plans
    return PriceLimits(prices, now).shown(plans)


def warn_old_prices(choices: Choices, days: Iterable[str]) -> None:
    """Print a note if prices of these days are old; in the sandbox nothing costs anything."""
    today = datetime.now(UTC).date().isoformat()
    if not choices.sandbox and (old := old_days(days, today)):
        write_stderr(f"note: prices of {old[0]} are older than {OLD_DAYS} days; newer ones: gpukube catalog refresh")


def days_of(document: PlanDocument) -> list[str]:
    """Return the dates of the prices of a plan's pools."""
    pools = (pool for cluster in document["clusters"] for pool in cluster["pools"])
    return [price["asOf"] for pool in pools if (price := pool["price"])]


OLD_DAYS: Final = 90
"""Days after which table prices count as old: clouds change them a few times a year."""


def old_days(days: Iterable[str], today: str) -> tuple[str, ...]:
    """Return the dates, YYYY-MM-DD, that are older than OLD_DAYS; other text is skipped."""
    now = date.fromisoformat(today)
    found = []
    for day in sorted(set(days)):
        try:
            age = now - date.fromisoformat(day)
        except ValueError:
            continue
        if age.days > OLD_DAYS:
            found.append(day)
    return tuple(found)
