"""What a cloud package reports about the machines that are available now, and how they are bought.

A provider has one `CloudCapacity` as its extra `capacity`. It is pure and needs no SDK; `fetch` imports what it needs.
In scope: the query, the results, and the vocabulary of what is known. Out of scope: any cloud; comparing clouds,
quotas, and prices that the catalog knows (gpukube.capacity).

No answer is a promise, and the clouds' scores cannot be compared: they become one of a few classes, beside the cloud's
own words. Nothing here buys anything.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeVar, get_args

from gpukube.core.permissions import PRINT_CAPACITY_POLICY, PRINT_POLICY
from gpukube.errors import GpukubeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpukube.core.cloud_catalog import Inquiry
    from gpukube.core.values import ClusterRef
    from gpukube.gpu.machine import Machine

Kind = Literal["reservation", "block", "spot", "flex-start", "on-demand"]
"""How machines are bought. A block is bought for a time: an AWS Capacity Block, an Azure Block reservation, a
reservation of Google in calendar mode."""
Known = Literal["free", "offered", "likely", "possible", "unlikely", "none", "not told", "not asked"]
"""What is known about the machines of one way, best first.

free: reserved for the account, and unused. offered: the cloud offers to sell it. likely, possible, unlikely: the
cloud's own score, in bands. none: the cloud reports that there are not enough. not told: the cloud reports nothing for
this query, or it could not be read. not asked: gpukube does not read it, with the reason.
"""
State = Literal["ok", "not asked", "failed"]

KNOWN: Final[tuple[Known, ...]] = get_args(Known)
PAID: Final = "paid with the reservation"
"""Source of the price of a reservation's machines."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class CapacityQuery:
    """What to read from one cloud about one region.

    Attributes:
        inquiry: Cloud, region, account, and settings.
        machines: Instance types that would do, at most five, the preferred first.
        nodes: Number of nodes; all of one type, unless `mixed`.
        zones: Zones to look at; () for all of the region.
        seconds: How long the nodes are needed; None for an open end.
        cluster: Cluster whose account and credentials are used; None for the cloud's own credential chain.
        mixed: Whether one pool would take any of the machines: only then does a score for several types describe it.
    """

    inquiry: Inquiry
    machines: tuple[Machine, ...]
    nodes: int
    zones: tuple[str, ...] = ()
    seconds: int | None = None
    cluster: ClusterRef | None = None
    mixed: bool = False

    def covers(self, zone: str) -> bool:
        """Return whether a zone is one to look at."""
        return not self.zones or zone in self.zones


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way to get the machines of a `CapacityQuery`: a kind of purchase, in one place.

    Attributes:
        kind: How they are bought.
        machine: Name of the instance type.
        zone: Zone, by the cloud's name of it; "" if the way covers the region.
        known: Class of what is known.
        free: Number of free machines, if `known` is "free".
        words: The cloud's own words: "7/10 (3 types)", "High", "0.82, ~10 min", "2 of 4 free"; "" if it reported none.
        why: Why it is not told or not asked; "" for other classes.
        usd: US dollars per hour of one node, if this source has it. A reservation costs nothing more: 0.
        price_source: Where the price is from; "" without one.
        start, end: When the machines come and go, RFC 3339 in UTC; "" for now, and for an open end.
        form: How the spec names it under capacity.reserved: "capacityReservation"; "" for other kinds.
        id: The cloud's id of the reservation or the offer.
        buy: The one command of the cloud that buys it, printed and never run; "" if a pool is all that is needed.
        note: What else must be known before it is used: "ends with its machines".
    """

    kind: Kind
    machine: str
    zone: str = ""
    known: Known = "not told"
    free: int = 0
    words: str = ""
    why: str = ""
    usd: float | None = None
    price_source: str = ""
    start: str = ""
    end: str = ""
    form: str = ""
    id: str = ""
    buy: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class SourceLine:
    """What became of one source of a result.

    Attributes:
        source: Public name of the call: "EC2 GetSpotPlacementScores".
        state: Whether it was read.
        code: Code of the failure, as for errors; "" without one.
        text: Why it was not read; or what failed, and what to do.
    """

    source: str
    state: State = "ok"
    code: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Offers:
    """The result of a `CapacityQuery`.

    Attributes:
        ways: Ways in the places that sell one of the machines; none for a machine that no place sells. On demand is
            always among them. A kind whose source failed is "not told" for each machine.
        sources: One line per source, read or not.
        notes: What holds for the whole result.
    """

    ways: tuple[Way, ...]
    sources: tuple[SourceLine, ...]
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class Reading:
    """Collects the sources of one result while they are read."""

    lines: list[SourceLine] = field(default_factory=list)

    def read(self, source: str, call: Callable[[], _T]) -> _T | None:
        """Return what a source has and note its line; None if it failed."""
        try:
            found = call()
        except GpukubeError as error:
            self.lines.append(failed_line(source, error))
            return None
        self.lines.append(SourceLine(source))
        return found

    def skip(self, source: str, why: str) -> None:
        """Note a source that is not read."""
        self.lines.append(SourceLine(source, "not asked", text=why))


@dataclass(frozen=True, slots=True)
class CloudCapacity:
    """What a cloud package contributes.

    Attributes:
        fetch: Reads from the cloud. A source that fails is a line; raises GpukubeError only if nothing can be read.
        sells: Returns whether it sells an instance type on demand, or as Spot, at all: large ones are for reservations.
    """

    fetch: Callable[[CapacityQuery], Offers]
    sells: Callable[[str, Kind], bool] = lambda _name, _kind: True


def failed_line(source: str, error: GpukubeError) -> SourceLine:
    """Return the line of a source that failed: what is wrong, and what to do."""
    found = error.diagnostics[0]
    # The fixes of the clouds' packages name what a change of pools needs, which is not this.
    fix = found.fix.replace(PRINT_POLICY, PRINT_CAPACITY_POLICY)
    return SourceLine(source, "failed", found.code, "; ".join(filter(None, (found.seen, fix))))


def band(score: float, likely: float, possible: float) -> Known:
    """Return the class of a score that has lower bounds of two classes."""
    if score >= likely:
        return "likely"
    return "possible" if score >= possible else "unlikely"
