"""Stock: how many machines of a type each cloud can still start, per zone and way of buying, on the sandbox's clock.

In scope: the timetables, counting machines. Out of scope: when a cloud starts machines, how it words a stock-out.
Standard library only: the command line checks entries with it.

An entry limits each place that it matches: a type in a zone, bought in one way. A place without an entry has machines
without limit.
"""

from __future__ import annotations

import asyncio
import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from gpukube_sandbox.shapes import Keys, WrongEntry, check_entry, check_known

if TYPE_CHECKING:
    from gpukube_sandbox.clock import Clock

Json = dict[str, object]

PROVIDERS: Final = ("eks", "aks", "gke")
MARKETS: Final = ("on-demand", "spot", "reserved", "flex")
"""Ways to buy a machine; "flex" is GKE's flex-start."""
ANY: Final = "*"
_KEYS: Final = Keys({"provider": str, "free": int}, {"type": str, "zone": str, "kind": str, "then": dict})
_ROUNDING_S: Final = 1e-6
"""A sleep until a moment can end this much before it."""


class Place(NamedTuple):
    """Where machines are counted, or a pattern for it, in which each part may be "*"."""

    provider: str
    zone: str
    type: str
    kind: str

    @classmethod
    def of(cls, provider: str, zone: str, machine: str, kind: str) -> Place:
        """Return a place in lower case, because ARM ignores the case of sizes."""
        return cls(provider, zone.lower(), machine.lower(), kind)

    def matches(self, place: Place) -> bool:
        """Return whether this pattern matches a place."""
        return all(mine in {ANY, other} for mine, other in zip(self, place, strict=True))

    @property
    def precision(self) -> int:
        """Return how many parts are given."""
        return len(self) - self.count(ANY)


@dataclass(slots=True)
class Entry:
    """A timetable of the machines that launches can take, for each place that matches a pattern.

    Attributes:
        pattern: Which places.
        steps: (sandbox seconds from `since`, machines in total from then on), in order of time, the first at 0.
        since: When it was set.
        before: Machines that existed then, which do not count.
    """

    pattern: Place
    steps: tuple[tuple[float, int], ...]
    since: float = 0.0
    before: dict[Place, int] = field(default_factory=dict)

    def total(self, now: float) -> int:
        """Return how many machines there are in total."""
        return [count for at, count in self.steps if self.since + at <= now + _ROUNDING_S][-1]

    def next_step(self, now: float) -> float | None:
        """Return when the total changes next."""
        return next((self.since + at for at, _ in self.steps if self.since + at > now + _ROUNDING_S), None)

    def wire(self) -> Json:
        """Return the entry in the form that `parse_entry` reads."""
        provider, zone, machine, kind = self.pattern
        then = {f"{at:g}": count for at, count in self.steps[1:]}
        place: Json = {"provider": provider, "type": machine, "zone": zone, "kind": kind}
        return {**place, "free": self.steps[0][1], "then": then}


def parse_entry(document: object) -> Entry:
    """Parse `{"provider", "free", "type"?, "zone"?, "kind"?, "then"?: {seconds: machines}}`; parts may be "*".

    Raises:
        WrongEntry: An unknown or missing key, an unknown cloud or kind, a time or a number of machines out of bounds.
    """
    check_entry(document, _KEYS)
    given: Json = document if isinstance(document, dict) else {}
    provider, machine, zone, kind = (str(given.get(key) or ANY) for key in ("provider", "type", "zone", "kind"))
    check_known(provider, (*PROVIDERS, ANY), "provider")
    check_known(kind, (*MARKETS, ANY), "kind")
    then = given.get("then")
    steps = [(0.0, _count(given["free"], "free"))]
    for key, value in (then if isinstance(then, dict) else {}).items():
        try:
            at = float(key)
        except ValueError:
            at = 0.0
        if not 0 < at < float("inf"):
            raise WrongEntry(f"{key} is not a number of seconds above 0", "then", key)
        steps.append((at, _count(value, "then", key)))
    return Entry(Place.of(provider, zone, machine, kind), tuple(sorted(steps)))


def _count(value: object, *at: str) -> int:
    check_entry(value, int, *at)
    count = int(str(value))
    if count < 0:
        raise WrongEntry(f"{at[-1]} is {count}; it must be 0 or more", *at)
    return count


class Stock:
    """All entries, and the machines that exist.

    Args:
        clock: The sandbox's clock.
    """

    def __init__(self, clock: Clock) -> None:
        self.entries: list[Entry] = []
        self._clock = clock
        self._in_use: dict[Place, int] = {}
        self._changed = asyncio.Event()

    def put(self, entry: Entry) -> None:
        """Add an entry; it replaces the one with the same pattern. Its time begins now."""
        entry.since, entry.before = self._clock.now(), dict(self._in_use)
        self.entries = [one for one in self.entries if one.pattern != entry.pattern] + [entry]
        self._wake()

    def clear(self) -> None:
        """Remove all entries: there are machines without limit."""
        self.entries.clear()
        self._wake()

    def reset(self) -> None:
        """Remove all entries, and forget all machines."""
        self._in_use.clear()
        self.clear()

    def take(self, provider: str, zone: str, machine: str, kind: str, count: int) -> int:
        """Take machines, as many as there are; return how many.

        Args:
            provider: One of `PROVIDERS`.
            zone: The cloud's name of the zone; of a machine without one, of its region.
            machine: Machine type.
            kind: One of `MARKETS`.
            count: How many are wanted.
        """
        free = self.free(provider, zone, machine, kind)
        granted = count if free is None else min(free, count)
        self.add(provider, zone, machine, kind, granted)
        return granted

    def add(self, provider: str, zone: str, machine: str, kind: str, count: int) -> None:
        """Count machines that exist whatever the stock is, such as those of a new cluster."""
        place = Place.of(provider, zone, machine, kind)
        self._in_use[place] = self._in_use.get(place, 0) + count

    def give_back(self, provider: str, zone: str, machine: str, kind: str, count: int = 1) -> None:
        """Return machines that are gone."""
        place = Place.of(provider, zone, machine, kind)
        self._in_use[place] = max(0, self._in_use.get(place, 0) - count)
        self._wake()

    def free(self, provider: str, zone: str, machine: str, kind: str) -> int | None:
        """Return how many machines can be taken now; None without a limit."""
        place = Place.of(provider, zone, machine, kind)
        entry = self._entry(place)
        return None if entry is None else max(0, entry.total(self._clock.now()) - self._taken(entry, place))

    async def changed(self, within_s: float) -> None:
        """Wait until there may be more machines, at most so many sandbox seconds.

        That is when an entry is set or removed, when machines are given back, and at the next step of a timetable.
        """
        now = self._clock.now()
        steps = [entry.next_step(now) for entry in self.entries]
        due = min([now + within_s, *(at for at in steps if at is not None)])
        tasks = [asyncio.ensure_future(self._clock.sleep(due - now)), asyncio.ensure_future(self._changed.wait())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()

    def wire(self) -> list[Json]:
        """Return the entries in order of age, each with its total now and how many of its machines are taken."""
        now = self._clock.now()
        found = []
        for entry in self.entries:
            places = [place for place in self._in_use if self._entry(place) is entry]
            taken = sum(self._taken(entry, place) for place in places)
            found.append({**entry.wire(), "now": entry.total(now), "taken": taken})
        return found

    def save(self) -> tuple[list[Entry], dict[Place, int]]:
        """Return a copy of the content."""
        return copy.deepcopy((self.entries, self._in_use))

    def load(self, saved: tuple[list[Entry], dict[Place, int]]) -> None:
        """Restore a saved content."""
        self.entries, self._in_use = copy.deepcopy(saved)
        self._wake()

    def _entry(self, place: Place) -> Entry | None:
        """Return the most precise entry for a place; of several, the newest."""
        found = [entry for entry in reversed(self.entries) if entry.pattern.matches(place)]
        return max(found, key=lambda entry: entry.pattern.precision, default=None)

    def _taken(self, entry: Entry, place: Place) -> int:
        return max(0, self._in_use.get(place, 0) - entry.before.get(place, 0))

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
