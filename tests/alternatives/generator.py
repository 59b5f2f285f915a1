"""Generated families, with the timetables of the stock where their machines come from, and what must become of them.

In scope: one family from a number, as a spec and as the places in the order in which they are to be tried. Out of
scope: running it (`stage`). Nothing here asks gpukube for machines, prices or an order: the tables say them again.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from gpukube.core.cloud_catalog import LivePrice
from gpukube.core.prices import PriceBook
from gpukube_sandbox import daemon
from tests.alternatives.stage import CLUSTERS, NODES, SPEED
from tests.changes.world import spec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube_sandbox.daemon import SandboxInfo
    from tests.changes.world import Document

LONGEST_S = 8000
"""Sandbox seconds within which stock changes: about as long as three attempts take."""
TYPES: Mapping[str, tuple[str, ...]] = {
    "eks": ("g4dn.xlarge", "g4dn.2xlarge", "g5.xlarge", "g6.xlarge"),
    "aks": ("Standard_NC4as_T4_v3", "Standard_NC8as_T4_v3", "Standard_NC24ads_A100_v4"),
    "gke": ("g2-standard-4", "g2-standard-8", "g2-standard-12"),
}
"""Machines with one GPU."""
ZONES: Mapping[str, Mapping[str, str]] = {
    "eks": {"us-east-1a": "us-east-1a", "us-east-1b": "us-east-1b", "us-east-1c": "us-east-1c"},
    "aks": {"1": "eastus-1", "2": "eastus-2", "3": "eastus-3"},
    "gke": {"us-central1-a": "us-central1-a", "us-central1-b": "us-central1-b"},
}
"""Zones, as specs and as the stock name them."""
MODELS: Mapping[str, Mapping[str, str]] = {
    "A100-80GB": {"eks": "p4de.24xlarge", "aks": "Standard_ND96amsr_A100_v4", "gke": "a2-ultragpu-8g"},
    "H100-80GB": {"eks": "p5.48xlarge", "aks": "Standard_ND96isr_H100_v5", "gke": "a3-highgpu-8g"},
}
"""GPUs, eight to a node, with the machine that has them on each cloud."""
ANYWHERE: Mapping[str, str] = {
    "p4de.24xlarge": "us-east-1b",
    "p5.48xlarge": "us-east-1a",
    **dict.fromkeys(("Standard_ND96amsr_A100_v4", "Standard_ND96isr_H100_v5"), "eastus"),
    **dict.fromkeys(("a2-ultragpu-8g", "a3-highgpu-8g"), "us-central1-a"),
}
"""Where there are machines for a pool without zones: elsewhere there are none."""
REGIONS: Mapping[str, str] = {"eks": "us-east-1", "aks": "eastus", "gke": "us-central1"}


class Place(NamedTuple):
    """Where the machines of a member come from.

    Attributes:
        pool: Cluster and name, "eks/m1".
        cloud: Its cloud.
        zone: As the stock names it.
        machine: Its type.
        kind: "on-demand" or "spot".
    """

    pool: str
    cloud: str
    zone: str
    machine: str
    kind: str

    @property
    def usd(self) -> float:
        """Price of a node: all differ, and mean nothing."""
        return (sum(map(ord, self.machine)) % 37 + 3) * (1.0 if self.kind == "on-demand" else 0.5)


@dataclass(frozen=True)
class Case:
    """A family and its world.

    Attributes:
        number: From which it follows.
        clusters: Names of its clusters, in the order written.
        pool: The pool as its user writes it.
        places: Its members, in the order in which they are to be tried.
        stock: Machines in each place: (sandbox seconds from the start, machines from then on).
        most: Maximum price of the whole pool; None for any.
    """

    number: int
    clusters: tuple[str, ...]
    pool: Document
    places: tuple[Place, ...]
    stock: Mapping[Place, tuple[tuple[float, int], ...]]
    most: float | None

    def document(self, there: Mapping[str, Document]) -> Document:
        """Write its spec."""
        return spec("team", there, [self.pool])

    def lay(self, info: SandboxInfo) -> None:
        """Have the stock begin."""
        for place, steps in self.stock.items():
            machine, kind = place.machine, place.kind
            daemon.set_stock(info, place.cloud, 0, type=machine, kind=kind)
            daemon.set_stock(info, place.cloud, steps[0][1], dict(steps[1:]), zone=place.zone, type=machine, kind=kind)

    @property
    def prices(self) -> PriceBook:
        """All prices, as read today."""
        live: dict[tuple[str, str], tuple[LivePrice, ...]] = {}
        for place in self.places:
            key = place.cloud, REGIONS[place.cloud]
            live[key] = (*live.get(key, ()), LivePrice(place.machine, place.usd, spot=place.kind == "spot"))
        return PriceBook(live=live, day="2026-11-28")

    @property
    def affordable(self) -> tuple[Place, ...]:
        """The places whose machines may be bought at all."""
        return tuple(one for one in self.places if self.most is None or one.usd * NODES <= self.most)

    @property
    def is_fixed(self) -> bool:
        """Whether no stock changes with time, so that it decides alone who wins."""
        return all(len(steps) == 1 for steps in self.stock.values())

    @property
    def winner(self) -> Place | None:
        """The first place that may be bought and has the machines; for a fixed stock only."""
        return next((one for one in self.affordable if self.stock[one][0][1] >= NODES), None)

    def machines(self, place: Place, since: float, begun: float, ended: float) -> set[int]:
        """Return the numbers of machines that a place has had between two moments.

        Args:
            place: The place.
            since: When the stock began, in seconds of the wall clock.
            begun: From when on, likewise.
            ended: Until when.
        """
        steps = self.stock[place]
        ends = [since + at / SPEED for at, _ in steps[1:]] + [float("inf")]
        return {
            count for (at, count), end in zip(steps, ends, strict=True) if since + at / SPEED <= ended and end >= begun
        }


def generated(number: int) -> Case:
    """Make the family of a number; some are for any of several clusters."""
    random = Random(number)  # noqa: S311 - not cryptography
    kind = random.choice(["eks", "aks", "gke", "any", "any"])
    clusters, pool, places = _anywhere(random) if kind == "any" else _zonal(random, kind)
    stock = {place: _timetable(random) for place in places}
    costs = [place.usd * NODES for place in places]
    most = random.choice([*costs, min(costs) - 1]) if random.random() < 0.3 else None
    if most is not None:
        pool["maxHourlyPrice"] = most
    return Case(number, clusters, pool, tuple(places), stock, most)


def _timetable(random: Random) -> tuple[tuple[float, int], ...]:
    first = random.choice([0, 0, 0, 1, 2, 3])
    if random.random() < 0.75:
        return ((0.0, first),)
    times = sorted(random.sample(range(1, LONGEST_S), random.randint(1, 2)))
    return ((0.0, first), *((float(at), random.choice([0, 1, 2, 3])) for at in times))


def _zonal(random: Random, cloud: str) -> tuple[tuple[str, ...], Document, list[Place]]:
    """Make a family on one cluster, each of whose members is in one zone."""
    every = [
        (machine, kind, zone) for machine in TYPES[cloud] for kind in ("on-demand", "spot") for zone in ZONES[cloud]
    ]
    chosen = random.sample(every, random.randint(2, 4))
    members, places = [], []
    for number, (machine, kind, zone) in enumerate(chosen):
        members.append({"name": f"m{number}", "instanceType": machine, "capacity": {"type": kind}, "zones": [zone]})
        places.append(Place(f"{cloud}/m{number}", cloud, ZONES[cloud][zone], machine, kind))
    return (cloud,), _written(members, (cloud,)), places


def _anywhere(random: Random) -> tuple[tuple[str, ...], Document, list[Place]]:
    """Make a family for any of several clusters: all its members on the first come before those on the second."""
    clusters = tuple(random.sample(["eks", "aks", "gke-a"], random.randint(2, 3)))
    every = [(model, kind) for model in MODELS for kind in ("on-demand", "spot")]
    chosen = random.sample(every, random.randint(1, 3))
    members = [
        {"name": f"m{number}", "gpu": {"model": model, "count": 8}, "capacity": {"type": kind}}
        for number, (model, kind) in enumerate(chosen)
    ]
    places = [
        Place(f"{cluster}/m{number}", cloud, ANYWHERE[machine], machine, kind)
        for cluster, cloud in ((one, CLUSTERS[one][0]) for one in clusters)
        for number, (machine, kind) in enumerate((MODELS[model][cloud], kind) for model, kind in chosen)
    ]
    return clusters, {**_written(members, clusters), "place": "any"}, places


def _written(members: list[Document], clusters: tuple[str, ...]) -> Document:
    first, *others = members
    pool = {**first, "clusters": list(clusters), "nodes": {"count": NODES}}
    return {**pool, "alternatives": others} if others else pool
