"""Current prices of a plan's machines, read from the clouds.

In scope: which prices to read, in parallel and within a time limit, and the notes. Out of scope: which price applies
where (gpukube.core.prices), the calls (the providers).

Prices are optional: no failure here fails a command. A price that cannot be read becomes a note, and the catalog's
price is used.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final

from gpukube.core.cloud_catalog import Account, Inquiry, PriceInquiry
from gpukube.core.prices import PriceBook, after, before
from gpukube.engine.plan.regions import region_of
from gpukube.engine.run.calls import Calls
from gpukube.engine.run.fanout import run_all
from gpukube.errors import GpukubeError
from gpukube.provider import load_provider

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpukube.core.cloud_catalog import LivePrice, LivePrices
    from gpukube.core.prices import Side
    from gpukube.core.values import ClusterRef, Settings
    from gpukube.engine.plan.planning import ClusterPlan
    from gpukube.engine.run.clock import Clock
    from gpukube.gpu.machine import Machine

PATIENCE_S: Final = 30.0
"""Time limit for all prices: Google's price list has tens of thousands of entries and takes some seconds."""
_EXCHANGE_S: Final = 15.0
_AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True)
class PoolToPrice:
    """A pool whose price to read.

    Attributes:
        cluster: Cluster of the pool.
        region: Region of the cluster; "" if unknown.
        side: Its machine, and how it is bought.
    """

    cluster: ClusterRef
    region: str
    side: Side


def pools_to_price(plans: Iterable[ClusterPlan]) -> Iterator[PoolToPrice]:
    """Yield the pools of plans, before and after the change."""
    for plan in plans:
        region = region_of(plan.cluster, plan.facts.location if plan.facts else "")
        for pool in plan.pools:
            if pool.action != "conflict":
                yield from (PoolToPrice(plan.cluster, region, side) for side in (*before(pool), after(pool)) if side)


def read_prices(book: PriceBook, pools: Iterable[PoolToPrice], settings: Settings, clock: Clock) -> PriceBook:
    """Add current prices from the clouds' price APIs, read in parallel and once per machine.

    Args:
        book: Known prices.
        pools: Pools whose prices to read.
        settings: How to reach the clouds.
        clock: Clock of the run; stopping it ends the calls.

    Raises:
        Stopped: The run was stopped.
    """
    quick = replace(settings, request_timeout_s=min(settings.request_timeout_s, _EXCHANGE_S))
    questions, notes = _questions(pools, quick)
    calls = Calls(clock, clock.now() + PATIENCE_S, "")
    tasks = {key: partial(calls, question.inquiry.where, "reading prices", partial(_ask, question))
             for key, question in questions.items()}  # fmt: skip
    live: dict[tuple[str, str], tuple[LivePrice, ...]] = {}
    for key, answer in run_all(tasks, _AT_ONCE).items():
        if isinstance(answer, GpukubeError):
            notes.append(f"{'/'.join(key)}: prices could not be read: {answer}")
        else:
            live[key] = answer.prices
            notes += [f"{'/'.join(key)}: {note}" for note in answer.notes]
            notes += [f"{'/'.join(key)}: no current {missing}" for missing in _missing(questions[key], answer)]
    shown = [f"{note}; showing the catalog's price" for note in notes]
    if settings.sandbox and live:
        shown.append("the sandbox's prices are invented")
    return replace(book, live=live, day=datetime.now(UTC).date().isoformat(), notes=tuple(shown))


def _questions(
    pools: Iterable[PoolToPrice], settings: Settings
) -> tuple[dict[tuple[str, str], PriceInquiry], list[str]]:
    machines: dict[tuple[str, str], dict[tuple[str, str], Machine]] = {}
    notes: dict[str, None] = {}
    for item in pools:
        provider = item.cluster.provider
        catalog = load_provider(provider).extras.catalog
        if item.side.machine is None or item.side.capacity not in ("on-demand", "spot"):
            continue
        if catalog is None or catalog.prices is None:
            notes[f"{provider}: it has no price API"] = None
        elif not item.region:
            notes[f"{item.cluster.key}: its region is unknown until the cluster is read"] = None
        else:
            of_region = machines.setdefault((provider, item.region), {})
            of_region[item.side.machine.name, item.side.capacity] = item.side.machine
    questions = {
        (provider, region): PriceInquiry(
            Inquiry(provider, region, Account(), settings),
            on_demand=tuple(machine for (_, how), machine in found.items() if how == "on-demand"),
            spot=tuple(machine for (_, how), machine in found.items() if how == "spot"),
        )
        for (provider, region), found in machines.items()
    }
    return questions, list(notes)


def _ask(question: PriceInquiry) -> LivePrices:
    catalog = load_provider(question.inquiry.provider).extras.catalog
    assert catalog is not None  # noqa: S101 - _questions keeps only such clouds
    assert catalog.prices is not None  # noqa: S101 - as above
    return catalog.prices(question)


def _missing(question: PriceInquiry, answer: LivePrices) -> list[str]:
    """Return the requested prices that the answer lacks without an explanation in its notes."""
    if answer.notes:
        return []
    has = {(price.machine, price.spot) for price in answer.prices}
    requested = [*((machine, False) for machine in question.on_demand), *((machine, True) for machine in question.spot)]
    return [
        f"{'spot price' if spot else 'price'} of {machine.name}"
        for machine, spot in requested
        if (machine.name, spot) not in has
    ]
