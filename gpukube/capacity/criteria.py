"""What is looked for, and where: pure.

In scope: the machines of each cloud that would do, the places to look at, and durations on the command line. Out of
scope: calls (`finding`), loading specs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from gpukube.core.cloud_catalog import Account, Inquiry
from gpukube.engine.plan.regions import region_of
from gpukube.errors import SpecError, Where
from gpukube.gpu.attached import ATTACHED
from gpukube.gpu.machines import machines
from gpukube.gpu.refusal import CatalogError
from gpukube.gpu.selection import resolve_machine, variant_reason
from gpukube.provider import load_provider

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gpukube.core.values import ClusterRef, Settings, Target
    from gpukube.gpu.machine import Machine
    from gpukube.gpu.models import GpuModel

MOST_MACHINES: Final = 3
"""Instance types per cloud: more would hide the places, and some clouds take at most five in one request."""
_MOST_OF_POOL: Final = 5
"""Instance types of one pool: see `CapacityQuery.machines`."""
_UNITS: Final = {"h": 3600, "d": 86_400, "w": 7 * 86_400}
_DURATION: Final = re.compile(r"(\d{1,4})([hdw])")


@dataclass(frozen=True, slots=True)
class Criteria:
    """What is looked for.

    Attributes:
        model: GPU model.
        count: GPUs per node.
        nodes: Number of nodes, all of one kind of purchase.
        seconds: How long they are needed; None for an open end.
    """

    model: GpuModel
    count: float
    nodes: int
    seconds: int | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """A region of one account, in which machines are looked for.

    Attributes:
        inquiry: Cloud, region, account, and settings; the region is "" if only the cloud knows it.
        machines: Instance types that would do, the preferred first.
        mixed: Whether a pool takes any of them.
        zones: Zones to look at; () for all.
        cluster: Cluster whose credentials are used, and whose account's quotas count; None without one.
    """

    inquiry: Inquiry
    machines: tuple[Machine, ...]
    mixed: bool = False
    zones: tuple[str, ...] = ()
    cluster: ClusterRef | None = None

    @property
    def where(self) -> str:
        """Cluster, or cloud and region, for messages."""
        return self.cluster.key if self.cluster else self.inquiry.where

    def at(self, region: str) -> Place:
        """Return the place with its region, once it is known."""
        return replace(self, inquiry=replace(self.inquiry, region=region))


def parse_duration(text: str) -> int:
    """Return the seconds of a duration such as 12h, 7d or 2w.

    Raises:
        SpecError: It is not one.
    """
    found = _DURATION.fullmatch(text.strip())
    if found is None or not int(found[1]):
        raise SpecError(
            f'"{text}" is not a duration', where=Where("--for"), fix="write hours, days or weeks: 12h, 7d, 2w",
            code="duration",
        )  # fmt: skip
    return int(found[1]) * _UNITS[found[2]]


def machines_for(provider: str, model: GpuModel, count: float) -> tuple[Machine, ...]:
    """Return the machine that a pool would get, then others with the same GPUs, the cheapest first.

    Raises:
        CatalogError: The cloud has none.
    """
    first = resolve_machine(provider, model, count).machine
    others = [
        machine
        for machine in machines(provider)
        if machine.model == model
        and machine.has_gpus(count)
        and machine.status == first.status
        and machine.name not in (first.name, ATTACHED)
        and bool(variant_reason(machine)) == bool(variant_reason(first))
    ]
    others.sort(key=lambda machine: (machine.price_usd_h is None, machine.price_usd_h or 0, machine.name))
    return (first, *others)[:MOST_MACHINES]


def places_of_regions(inquiries: Iterable[Inquiry], criteria: Criteria) -> tuple[tuple[Place, ...], tuple[str, ...]]:
    """Return the regions whose cloud has the machines, and why the others are left out.

    Raises:
        CatalogError: No cloud has them.
    """
    return _with_machines([(inquiry, None) for inquiry in inquiries], criteria)


def places_of_clusters(
    clusters: Iterable[ClusterRef], settings: Settings, criteria: Criteria
) -> tuple[tuple[Place, ...], tuple[str, ...]]:
    """Return the places of clusters; see `places_of_regions`."""
    return _with_machines([(_inquiry(cluster, settings), cluster) for cluster in clusters], criteria)


def places_of_pools(targets: Iterable[Target], settings: Settings) -> tuple[Place, ...]:
    """Return the places of one pool on its clusters: with its own instance types and zones."""
    return tuple(
        Place(
            _inquiry(target.cluster, settings),
            target.all_machines[:_MOST_OF_POOL],
            mixed=len(target.all_machines) > 1,
            zones=target.zones,
            cluster=target.cluster,
        )
        for target in targets
    )


def distinct(places: Iterable[Place]) -> tuple[Place, ...]:
    """Return the places without those that another cluster of the same account and region covers."""
    found: dict[object, Place] = {}
    for place in places:
        who, region = _account(place), place.inquiry.region or place.where
        found.setdefault((place.inquiry.provider, who, region, place.machines, place.zones), place)
    return tuple(found.values())


def _account(place: Place) -> str:
    """Return the account, subscription, or project of a place's cluster; "" without one."""
    if place.cluster is None:
        return ""
    return place.cluster.identity.get(load_provider(place.inquiry.provider).spec.address[0], "")


def _inquiry(cluster: ClusterRef, settings: Settings) -> Inquiry:
    return Inquiry(cluster.provider, region_of(cluster), Account(), settings)


def _with_machines(
    inquiries: Sequence[tuple[Inquiry, ClusterRef | None]], criteria: Criteria
) -> tuple[tuple[Place, ...], tuple[str, ...]]:
    places: list[Place] = []
    without: dict[str, CatalogError] = {}
    for inquiry, cluster in inquiries:
        try:
            fitting = machines_for(inquiry.provider, criteria.model, criteria.count)
        except CatalogError as error:
            without[inquiry.provider] = error
        else:
            places.append(Place(inquiry, fitting, cluster=cluster))
    if not places and without:
        raise _nowhere(without)
    return tuple(places), tuple(error.message for error in without.values())


def _nowhere(without: Mapping[str, CatalogError]) -> CatalogError:
    """Return one error for all clouds: what to write differs, as each has other machines."""
    first, *others = without.values()
    if not others:
        return first
    return CatalogError(
        "; ".join(error.message for error in without.values()),
        fix="; ".join(f"{provider}: {error.fix}" for provider, error in without.items()),
        why=first.why,
        code=first.code,
    )
