"""Hourly prices of nodes, from the catalog or from live cloud prices.

Pure. In scope: the price of a machine in a region, and the pools before and after a plan. Out of scope: calls and files
(gpukube.catalog.pricing), documents.

A price is for one region. The catalog's price of another region is marked as rough; spot prices of other regions are
not used. A missing price is unknown, never zero.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from gpukube.core.fields import CAPACITY_TYPE, ZONES
from gpukube.core.live import live_machine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.cloud_catalog import LivePrice
    from gpukube.core.values import Desired, Observed, PoolPlan, Target
    from gpukube.gpu.machine import Machine
    from gpukube.gpu.refreshed import Stock

Source = Literal["", "embedded", "refreshed", "live"]

HOURS_PER_MONTH: Final = 730
"""Length of a month in price calculators (infracost: HourToMonthUnitMultiplier)."""
_DIGITS: Final = 4
_RESERVED: Final = "reserved capacity has no list price"


@dataclass(frozen=True, slots=True)
class Usd:
    """US dollars per hour, as two bounds, which are equal if the price is exact.

    Attributes:
        least: Lower bound.
        most: Upper bound.
    """

    least: float
    most: float

    def __add__(self, other: Usd) -> Usd:
        """Return the sum of two amounts."""
        return Usd(round(self.least + other.least, _DIGITS), round(self.most + other.most, _DIGITS))

    def of(self, least: float, most: float) -> Usd:
        """Return the price of a minimum and a maximum number of nodes."""
        return Usd(round(self.least * least, _DIGITS), round(self.most * most, _DIGITS))

    def per(self, count: float) -> Usd:
        """Return the price of one of several equal parts."""
        return Usd(round(self.least / count, _DIGITS), round(self.most / count, _DIGITS))


NOTHING: Final = Usd(0.0, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePrice:
    """The price of one node.

    Attributes:
        usd: Price per hour; None if unknown.
        spot: Whether it is a spot price.
        source: Source: the embedded table, a refresh of the catalog, or the live cloud.
        as_of: Date when it was read, YYYY-MM-DD, or "".
        place: Region or zones to which it applies, or "".
        rough: Whether it is the price of another region.
        unknown: Why it is unknown, or "".
        guide: The catalog's price of any region, to rank pools if there is no better price.
    """

    usd: Usd | None = None
    spot: bool = False
    source: Source = ""
    as_of: str = ""
    place: str = ""
    rough: bool = False
    unknown: str = ""
    guide: float | None = None


UNPRICED: Final = NodePrice()
"""Price of a node before any lookup."""


@dataclass(frozen=True, slots=True)
class PriceBook:
    """Prices in addition to the embedded table.

    Attributes:
        stocks: Results of catalog refreshes.
        live: (provider, region) -> live prices.
        day: Date of the live prices, YYYY-MM-DD.
        notes: What could not be read, and why.
    """

    stocks: tuple[Stock, ...] = ()
    live: Mapping[tuple[str, str], tuple[LivePrice, ...]] = field(default_factory=dict)
    day: str = ""
    notes: tuple[str, ...] = ()

    def price(self, machine: Machine, capacity: str, region: str, zones: tuple[str, ...] = ()) -> NodePrice:
        """Return the price of a node.

        Args:
            machine: Machine of the catalog.
            capacity: Capacity type, as in the spec.
            region: Its region; "" if unknown.
            zones: Its possible zones; () for the whole region.
        """
        if capacity not in ("on-demand", "spot"):
            unknown = _RESERVED if capacity == "reserved" else f"the price of {capacity} machines is not known"
            return NodePrice(unknown=unknown)
        spot = capacity == "spot"
        known = self._catalogued(machine, spot=spot, region=region)
        return self._live(machine, spot=spot, region=region, zones=zones, guide=known.guide) or known

    def _live(
        self, machine: Machine, *, spot: bool, region: str, zones: tuple[str, ...], guide: float | None
    ) -> NodePrice | None:
        near = [
            price
            for price in self.live.get((machine.provider, region), ())
            if (price.machine, price.spot) == (machine.name, spot) and (not zones or price.zone in ("", *zones))
        ]
        if not near:
            return None
        usd = Usd(min(price.usd for price in near), max(price.usd for price in near))
        places = sorted({price.zone for price in near if price.zone})
        return NodePrice(
            usd=usd,
            spot=spot,
            source="live",
            as_of=self.day,
            place=", ".join(places) or region,
            guide=usd.least if guide is None else guide,
        )

    def _catalogued(self, machine: Machine, *, spot: bool, region: str) -> NodePrice:
        newer = None
        if self.stocks:
            from gpukube.gpu.refreshed import priced_machine  # noqa: PLC0415 - most runs have no refreshed data

            newer = priced_machine(machine, self.stocks, region)
        found = newer or machine
        usd = found.spot_usd_h if spot else found.price_usd_h
        what = f"{'spot price' if spot else 'price'} of {machine.name}"
        if not usd:
            return NodePrice(spot=spot, unknown=f"the catalog has no {what}")
        elsewhere = found.price_region != region
        if spot and elsewhere:
            where = f" in {region}" if region else ""
            return NodePrice(spot=True, unknown=f"the catalog has no {what}{where}", guide=usd)
        return NodePrice(
            usd=Usd(usd, usd),
            spot=spot,
            source="refreshed" if newer else "embedded",
            as_of=found.price_date,
            place=found.price_region,
            rough=elsewhere,
            guide=usd,
        )


EMBEDDED: Final = PriceBook()
"""Only the prices of the embedded table."""


@dataclass(frozen=True, slots=True)
class Side:
    """A pool before or after a plan, with the data that its price depends on.

    Attributes:
        machine: Its machine; None if the catalog lacks it.
        name: The cloud's name of the machine.
        capacity: Capacity type, as in the spec.
        zones: Possible zones of its nodes; () for the whole region.
        least: Minimum number of nodes; None if the cloud does not report the number.
        most: Maximum number of nodes.
    """

    machine: Machine | None
    name: str
    capacity: str
    zones: tuple[str, ...]
    least: int | None
    most: int | None

    def node(self, book: PriceBook, region: str) -> NodePrice:
        """Return the price of one of its nodes."""
        if self.machine is None:
            return NodePrice(unknown=f"the catalog does not have {self.name or 'the instance type'}")
        return book.price(self.machine, self.capacity, region, self.zones)

    def total(self, node: NodePrice) -> Usd | None:
        """Return the price of all its nodes; zero nodes cost zero, even at an unknown price."""
        if self.most == 0:
            return NOTHING
        if node.usd is None or self.least is None or self.most is None:
            return None
        return node.usd.of(self.least, self.most)


def before(plan: PoolPlan) -> tuple[Side, ...]:
    """Return the live pools: none, one, or the old and the new one during a replacement."""
    beside = plan.replacement.beside if plan.replacement else None
    return tuple(live_side(plan.cluster.provider, pool) for pool in (plan.observed, beside) if pool)


def after(plan: PoolPlan) -> Side | None:
    """Return the planned pool; None if it is deleted."""
    return target_side(plan.desired) if plan.desired and plan.action != "delete" else None


def live_side(provider: str, observed: Observed) -> Side:
    """Return a live pool with its current number of nodes."""
    zones = observed.fields.get(ZONES)
    return Side(
        machine=live_machine(provider, observed),
        name=observed.instance_type,
        capacity=str(observed.fields.get(CAPACITY_TYPE) or "on-demand"),
        zones=tuple(map(str, zones)) if isinstance(zones, (list, tuple)) else (),
        least=observed.nodes,
        most=observed.nodes,
    )


def target_side(desired: Desired) -> Side:
    """Return a declared pool with its minimum and maximum number of nodes."""
    target: Target = desired.target
    return Side(
        machine=target.machine,
        name=target.machine.name,
        capacity=target.capacity.type,
        zones=target.zones,
        least=target.nodes.minimum,
        most=target.nodes.maximum,
    )
