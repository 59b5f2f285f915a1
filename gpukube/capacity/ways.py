"""Ways to get machines, with prices and quotas, and what of them is known without a call. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from gpukube.capacity.criteria import distinct
from gpukube.core.capacity_sources import KNOWN, Way
from gpukube.core.prices import UNPRICED, NodePrice, Usd
from gpukube.provider import load_provider

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpukube.capacity.criteria import Place
    from gpukube.core.capacity_sources import Kind, SourceLine
    from gpukube.core.prices import PriceBook
    from gpukube.core.quotas import QuotaUse

LIVE: Final = "add --live"


@dataclass(frozen=True, slots=True)
class Found:
    """One way to get the machines, with its price and quotas.

    Attributes:
        place: Where.
        way: What its cloud reports.
        price: Price of one node.
        quotas: What the nodes need of each quota that limits them.
        no_quota: Why quotas are not known; "" if they were read, or none applies.
    """

    place: Place
    way: Way
    price: NodePrice = UNPRICED
    quotas: tuple[QuotaUse, ...] = ()
    no_quota: str = ""

    @property
    def usd_per_gpu(self) -> float | None:
        """US dollars per hour of one GPU; None if unknown."""
        machine = next((one for one in self.place.machines if one.name == self.way.machine), None)
        usd = self.price.usd
        return None if usd is None or machine is None else usd.least / machine.gpus


@dataclass(frozen=True, slots=True)
class Source:
    """What became of one source, in all places where it is the same.

    Attributes:
        provider: Cloud.
        line: The source.
        places: Clusters, or clouds with regions.
    """

    provider: str
    line: SourceLine
    places: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Search:
    """The result of a search.

    Attributes:
        ways: All ways, the best first.
        sources: What became of each source; empty without calls.
        notes: What else must be known.
    """

    ways: tuple[Found, ...]
    sources: tuple[Source, ...] = ()
    notes: tuple[str, ...] = ()


def known_ways(places: Iterable[Place], book: PriceBook) -> Search:
    """Return what is known without a call: prices of the catalog."""
    found = [
        Found(place, way, price_of(place, way, book), no_quota=LIVE)
        for place in distinct(places)
        for way in usual_ways(place, Way(kind="on-demand", machine="", known="not asked", why=LIVE))
    ]
    return Search(ranked(found))


def usual_ways(place: Place, like: Way) -> tuple[Way, ...]:
    """Return the ways that need no reservation, for each machine and zone of a place; a block if the cloud has none."""
    capacity = load_provider(place.inquiry.provider).extras.capacity

    def kinds(name: str) -> list[Kind]:
        plain: tuple[Kind, ...] = ("on-demand", "spot")
        return [kind for kind in plain if capacity is None or capacity.sells(name, kind)] or ["block"]

    return tuple(
        replace(like, kind=kind, machine=machine.name, zone=zone)
        for machine in place.machines
        for zone in place.zones or ("",)
        for kind in kinds(machine.name)
    )


def price_of(place: Place, way: Way, book: PriceBook) -> NodePrice:
    """Return the price of a way: its source's, else the known one."""
    if way.usd is not None:
        return NodePrice(usd=Usd(way.usd, way.usd), spot=way.kind == "spot", source="live", place=way.zone)
    if way.kind not in ("on-demand", "spot"):
        return UNPRICED
    machine = next(machine for machine in place.machines if machine.name == way.machine)
    return book.price(machine, way.kind, place.inquiry.region, (way.zone,) if way.zone else ())


def ranked(found: Iterable[Found]) -> tuple[Found, ...]:
    """Order by what is known, then by price, then by name."""

    def key(one: Found) -> tuple[object, ...]:
        way, usd = one.way, one.usd_per_gpu
        name = (one.place.where, way.machine, way.kind, way.zone, way.start, way.id)
        return (KNOWN.index(way.known), usd is None, usd or 0, *name)

    return tuple(sorted(found, key=key))
