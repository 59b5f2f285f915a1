"""Reads from the clouds which machines are available, in parallel, and adds prices and quotas to each way to get them.

In scope: what is read from where, and what a failure leaves unknown. Out of scope: what is looked for (`criteria`), the
calls (the providers), documents.

No failure here fails a command, and nothing is bought: what cannot be read is a line, and its ways are `not told`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from gpukube.capacity.criteria import distinct
from gpukube.capacity.ways import Found, Search, Source, price_of, ranked, usual_ways
from gpukube.catalog.live_prices import PoolToPrice, read_prices
from gpukube.core.capacity_sources import CapacityQuery, Offers, SourceLine, Way, failed_line
from gpukube.core.prices import Side
from gpukube.core.quotas import QuotaReading, QuotaUse
from gpukube.core.values import Capacity, ClusterRef, Reservation
from gpukube.engine.plan.quotas import as_read, by_place
from gpukube.engine.plan.regions import region_of
from gpukube.engine.run.calls import reading_responses
from gpukube.engine.run.fanout import run_all
from gpukube.errors import GpukubeError
from gpukube.provider import load_provider

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gpukube.capacity.criteria import Criteria, Place
    from gpukube.core.prices import PriceBook
    from gpukube.core.quotas import CloudQuota, QuotaDraw
    from gpukube.core.values import ClusterFacts, Settings
    from gpukube.engine.run.calls import Calls
    from gpukube.engine.run.clock import Clock
    from gpukube.engine.run.session import Session

AT_ONCE: Final = 8
_EXCHANGE_S: Final = 15.0
NO_CLUSTER: Final = "name a cluster of the account: --cluster"
_CLUSTER: Final = "the cluster"
_ALL: Final = "the cloud's answers"


@dataclass(frozen=True, slots=True)
class Line:
    """How to reach the clouds in this run.

    Attributes:
        settings: How to reach them.
        clock: Clock of the run.
        calls: Makes each call.
        sessions: Sessions of the clusters, by key.
    """

    settings: Settings
    clock: Clock
    calls: Calls
    sessions: Mapping[str, Session]


def short_timeout(settings: Settings) -> Settings:
    """Return settings with which one slow request does not use up the time of all clouds together."""
    return replace(settings, request_timeout_s=min(settings.request_timeout_s, _EXCHANGE_S))


def search_clouds(places: Sequence[Place], criteria: Criteria, line: Line, book: PriceBook) -> Search:
    """Read all places in parallel.

    Args:
        places: Where to look.
        criteria: What is looked for.
        line: How to reach the clouds.
        book: Prices that are known without a call.

    Raises:
        Stopped: The run was stopped.
    """
    facts = _identify(places, line)
    located = distinct(_located(place, facts.get(place.where)) for place in places)
    answers = _offers(located, facts, criteria, line)
    found = [Found(place, way) for place, offers in answers for way in offers.ways]
    book = read_prices(book, _to_price(found, criteria), line.settings, line.clock)
    priced = [replace(one, price=price_of(one.place, one.way, book)) for one in found]
    notes = [*(note for _, offers in answers for note in offers.notes), *book.notes]
    return Search(
        ranked(_with_quotas(priced, facts, criteria, line)), _sources(answers), tuple(dict.fromkeys(notes))
    )  # fmt: skip


def _identify(places: Iterable[Place], line: Line) -> dict[str, ClusterFacts | GpukubeError]:
    """Read the clusters: that they are the account's own, and their regions."""
    keys = dict.fromkeys(place.cluster.key for place in places if place.cluster)
    return run_all({key: line.sessions[key].cloud.identify for key in keys}, AT_ONCE)


def _located(place: Place, facts: ClusterFacts | GpukubeError | None) -> Place:
    if place.cluster is None or facts is None or isinstance(facts, GpukubeError):
        return place
    return place.at(region_of(place.cluster, facts.location))


def _offers(
    places: Sequence[Place], facts: Mapping[str, ClusterFacts | GpukubeError], criteria: Criteria, line: Line
) -> list[tuple[Place, Offers]]:
    answers: list[Offers | GpukubeError] = [
        _lost(place, _CLUSTER, fact) if isinstance(fact := facts.get(place.where), GpukubeError) else Offers((), ())
        for place in places
    ]
    tasks = {
        number: partial(read_place, place, criteria.nodes, criteria.seconds, line)
        for number, place in enumerate(places)
        if not isinstance(facts.get(place.where), GpukubeError)
    }
    for number, answer in run_all(tasks, AT_ONCE).items():
        answers[number] = answer
    return [(place, answer) for place, answer in zip(places, answers, strict=True) if isinstance(answer, Offers)]


def read_place(place: Place, nodes: int, seconds: int | None, line: Line) -> Offers:
    """Read one place; if nothing of it can be read, its ways are `not told`.

    Args:
        place: Where to look, with its region.
        nodes: Number of nodes.
        seconds: How long they are needed; None for an open end.
        line: How to reach the cloud.

    Raises:
        Stopped: The run was stopped.
    """
    try:
        return _fetch(place, nodes, seconds, line)
    except GpukubeError as error:
        return _lost(place, _ALL, error)


def _fetch(place: Place, nodes: int, seconds: int | None, line: Line) -> Offers:
    provider = load_provider(place.inquiry.provider)
    capacity = provider.extras.capacity
    if capacity is None:
        why = f"gpukube reads no capacity of {provider.spec.title}"
        return Offers(usual_ways(place, Way(kind="on-demand", machine="", known="not asked", why=why)), ())
    inquiry = replace(place.inquiry, settings=line.settings)
    query = CapacityQuery(
        inquiry,
        place.machines,
        nodes,
        zones=place.zones,
        seconds=seconds,
        cluster=place.cluster,
        mixed=place.mixed,
    )
    doing = "reading available machines"
    with reading_responses(provider.spec.title, place.where, doing):
        return line.calls(place.where, doing, partial(capacity.fetch, query))


def _lost(place: Place, source: str, error: GpukubeError) -> Offers:
    """Return what is known of a place that could not be read."""
    ways = usual_ways(place, Way(kind="on-demand", machine="", why=f"{source} could not be read"))
    return Offers(ways, (failed_line(source, error),))


def _to_price(found: Iterable[Found], criteria: Criteria) -> list[PoolToPrice]:
    """Return the machines whose price no source has."""
    pools: dict[tuple[str, str, str, str], PoolToPrice] = {}
    for one in found:
        place, way = one.place, one.way
        if way.usd is not None or way.kind not in ("on-demand", "spot"):
            continue
        machine = next(machine for machine in place.machines if machine.name == way.machine)
        cluster = place.cluster or ClusterRef(place.where, place.inquiry.provider, "", {})
        side = Side(machine, machine.name, way.kind, (), criteria.nodes, criteria.nodes)
        key = (place.inquiry.provider, place.inquiry.region, way.machine, way.kind)
        pools.setdefault(key, PoolToPrice(cluster, place.inquiry.region, side))
    return list(pools.values())


def _with_quotas(
    found: Sequence[Found], facts: Mapping[str, ClusterFacts | GpukubeError], criteria: Criteria, line: Line
) -> list[Found]:
    draws = [_draws(one, facts.get(one.place.where), criteria) for one in found]
    readings = _read_quotas(found, draws, line)
    return [
        replace(
            one,
            quotas=tuple(QuotaUse(d.quota, criteria.nodes * d.per_node, (), readings[d.quota]) for d in own),
            no_quota="" if one.place.where in facts else NO_CLUSTER,
        )
        for one, own in zip(found, draws, strict=True)
    ]


def _draws(one: Found, facts: ClusterFacts | GpukubeError | None, criteria: Criteria) -> tuple[QuotaDraw, ...]:
    quotas = load_provider(one.place.inquiry.provider).extras.quotas
    cluster, capacity = one.place.cluster, _capacity(one.way, criteria)
    machine = next((machine for machine in one.place.machines if machine.name == one.way.machine), None)
    if None in (quotas, cluster, capacity, machine, facts) or isinstance(facts, GpukubeError):
        return ()
    assert quotas and cluster and capacity and machine and facts  # noqa: S101, PT018 - none of them is None
    return quotas.draws(cluster, facts.location, machine, capacity)


def _capacity(way: Way, criteria: Criteria) -> Capacity | None:
    """Return how a pool buys this way; None if that is not known."""
    if way.kind == "spot":
        return Capacity("spot")
    if way.kind == "on-demand":
        return Capacity("on-demand")
    return Capacity("reserved", reservation=Reservation(way.form, way.id, criteria.seconds)) if way.form else None


def _read_quotas(
    found: Sequence[Found], draws: Sequence[Sequence[QuotaDraw]], line: Line
) -> dict[CloudQuota, QuotaReading]:
    readers: dict[CloudQuota, str] = {}
    for one, own in zip(found, draws, strict=True):
        for draw in own:
            readers.setdefault(draw.quota, one.place.where)
    readings = {quota: QuotaReading(unknown=quota.unread) for quota in readers}
    places = by_place(readers)
    tasks = {place: partial(line.sessions[readers[own[0]]].cloud.quotas, own) for place, own in places.items()}
    for place, answer in run_all(tasks, AT_ONCE).items():
        readings |= as_read(places[place], answer)
    return readings


def _sources(answers: Iterable[tuple[Place, Offers]]) -> tuple[Source, ...]:
    """Merge the lines of places: a refusal is the same everywhere, whatever its text."""
    found: dict[tuple[str, ...], tuple[str, SourceLine, list[str]]] = {}
    for place, offers in answers:
        for line in offers.sources:
            provider = place.inquiry.provider
            key = (provider, line.source, line.state, line.code or line.text)
            found.setdefault(key, (provider, line, []))[2].append(place.where)
    return tuple(Source(provider, line, tuple(dict.fromkeys(places))) for provider, line, places in found.values())
