"""The shape of the document of `gpukube capacity find`."""

from __future__ import annotations

from typing import Literal, TypedDict

from gpukube.engine.documents.shapes.parts import (  # noqa: TC001 - the schema generator reads these at run time
    GpuModel,
)


class CapacityPricePart(TypedDict):
    """Price of one node, Linux, without disks, network, taxes, or discounts."""

    usdPerHour: float | None
    """US dollars per hour of one node; null if unknown, 0 if it is already paid."""
    usdPerGpuHour: float | None
    """US dollars per hour of one GPU; null if unknown."""
    source: str
    """Where the price is from: embedded, refreshed, live, or what the cloud calls it; empty if unknown."""
    asOf: str
    """The day the catalog read it, YYYY-MM-DD; empty for a price of this run."""
    rough: bool
    """Whether it is the price of another region."""


class CapacityQuotaPart(TypedDict):
    """What the nodes need of one quota."""

    name: str
    """Name in the cloud's API."""
    title: str
    """Name in the cloud's documentation."""
    unit: str
    """vCPUs or GPUs."""
    needed: float
    """Amount that the nodes need."""
    used: float | None
    """Amount in use; null if unknown."""
    limit: float | None
    """Limit; null if unknown."""
    unknown: str
    """Why one of them is unknown; empty if both are known."""
    short: bool
    """Whether the limit does not cover the nodes."""
    fix: str
    """How to raise it."""


class CapacityWayPart(TypedDict):
    """One way to get the machines, in one place."""

    kind: Literal["reservation", "block", "spot", "flex-start", "on-demand"]
    """How they are bought."""
    provider: str
    """Cloud."""
    cluster: str
    """Cluster whose account was read; empty without one."""
    region: str
    """Region; empty if it is not known before the cluster is read."""
    zone: str
    """Zone, by the cloud's name of it; empty for all of the region."""
    instanceType: str
    """Type as the cloud spells it."""
    known: Literal["free", "offered", "likely", "possible", "unlikely", "none", "not told", "not asked"]
    """What is known about the machines, best first; never a promise."""
    free: int | None
    """Free machines, if known is free; else null."""
    words: str
    """The cloud's own words; empty if it reported none."""
    why: str
    """Why it is not told, or not asked; else empty."""
    start: str
    """When the machines come, RFC 3339; empty for now."""
    end: str
    """When they end, RFC 3339; empty for an open end."""
    note: str
    """What else must be known before it is used."""
    price: CapacityPricePart
    """What it costs."""
    quotas: list[CapacityQuotaPart]
    """Quotas that limit the nodes; empty if none does, or if they were not asked."""
    quotaNotAsked: str
    """Why quotas were not asked; empty if they were."""
    id: str
    """The cloud's id of the reservation or the offer; empty for other kinds."""
    capacity: dict[str, object] | None
    """`capacity` of a pool that uses it; null if it must be bought first."""
    buy: str
    """The one command of the cloud that buys it; gpukube never runs it. Empty if a pool is all that is needed."""


class CapacitySourcePart(TypedDict):
    """What became of one source."""

    provider: str
    """Cloud."""
    source: str
    """Public name of the call."""
    state: Literal["ok", "not asked", "failed"]
    """Whether it was read."""
    code: str
    """Code of the failure; empty otherwise."""
    text: str
    """Why it was not asked; or what failed, and what to do."""
    places: list[str]
    """Clusters, or clouds with regions, for which this holds."""


class CapacityAskedPart(TypedDict):
    """The query."""

    gpu: GpuModel
    """GPUs of one node."""
    nodes: int
    """Number of nodes."""
    seconds: int | None
    """How long they are needed; null for an open end."""
    pool: str
    """Pool of the spec; empty without one."""


class CapacityDocument(TypedDict):
    """Ways to get GPU machines, the best first."""

    schemaVersion: Literal[0]
    """0: keys may still change."""
    kind: Literal["Capacity"]
    """`capacity find`."""
    asked: CapacityAskedPart
    """The query."""
    live: bool
    """Whether clouds were called; otherwise only the catalog's prices are known."""
    ways: list[CapacityWayPart]
    """Ordered by what is known, then by price per GPU."""
    sources: list[CapacitySourcePart]
    """What became of each source; empty without --live."""
    notes: list[str]
    """What else must be known."""
    create: str
    """Command that creates the pool of the spec; empty without one."""
