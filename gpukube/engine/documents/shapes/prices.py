"""The shape of prices in documents: hourly list prices in US dollars. None of them is a bill."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class UsdPart(TypedDict):
    """US dollars between two bounds, which are equal if the amount is fixed."""

    min: float
    """With the minimum number of nodes, at the lowest price."""
    max: float
    """With the maximum number of nodes, at the highest price."""


class CostPart(TypedDict):
    """List prices in US dollars per hour of nodes: what pods hold of them, and the rest, which is idle."""

    held: UsdPart
    """Part of the nodes that is held, by the sizes of devices."""
    idle: UsdPart
    """The rest: free, unusable, unhealthy, not advertised."""
    pricedNodes: int
    """Nodes in these sums."""
    reservedNodes: int
    """Nodes of reserved capacity: paid, held or not, and without a list price."""
    unknownNodes: int
    """Other nodes whose price is unknown; they are in no sum."""


class PricedPart(TypedDict):
    """What the nodes of a live pool cost."""

    cost: CostPart
    """Of its nodes in the cluster."""
    rough: bool
    """Whether the price of another region is used."""
    asOf: str
    """Date on which the price was read, YYYY-MM-DD; empty if unknown."""
    noPrice: str
    """Why the price of its nodes is unknown; empty if it is known."""


class PriceChange(TypedDict):
    """What a pool costs per hour; null is unknown, never zero."""

    before: UsdPart | None
    """With the current nodes; zero if there is no pool."""
    after: UsdPart | None
    """With the declared nodes; zero if it is deleted."""


class PoolPricePart(TypedDict):
    """The price of a pool's machines. Disks, network, control planes, taxes and discounts are not included."""

    usdPerHour: PriceChange
    """Price of all nodes."""
    whileBothRun: UsdPart | None
    """For a replacement: old and new pool together, while both run with --replace surge; null otherwise, or if one of
    the two prices is unknown."""
    perNode: UsdPart | None
    """Price of one node afterwards; of a current one if the pool is deleted."""
    perGpuHour: UsdPart | None
    """Price of one physical GPU."""
    perDevice: UsdPart | None
    """Price of one device: a GPU, an instance, a share. Null if nodes have several kinds of devices, or none."""
    device: str
    """Resource name of that device; empty if perDevice is null."""
    spot: bool
    """Whether these are spot prices, which change at any time."""
    source: Literal["", "embedded", "refreshed", "live"]
    """embedded: gpukube's own table; refreshed: `gpukube catalog refresh`; live: read now; empty: unknown."""
    asOf: str
    """Date on which it was read, YYYY-MM-DD; empty if unknown."""
    place: str
    """Region, or zones, that the price applies to; empty if unknown."""
    rough: bool
    """Whether the price of another region is used, before or after."""
    unknown: str
    """Why a price is unknown; empty if all are known."""
    ifTried: NotRequired[UsdPart | None]
    """For an alternative that stands by: price of all its nodes if it gets them; null if unknown. usdPerHour is then
    what it costs without them."""


class PriceSums(TypedDict):
    """Sums of the known prices."""

    before: UsdPart
    """Total of the live pools."""
    after: UsdPart
    """Total of the declared pools."""


class UnknownPrices(TypedDict):
    """Number of pools that the totals omit because their price is unknown."""

    before: int
    """Live pools."""
    after: int
    """Declared pools."""


class FitPricePart(TypedDict):
    """The price of a pool that workloads use, with its current nodes and those it then needs."""

    cluster: str
    """Key of the cluster."""
    pool: str
    """Name of the pool in the spec."""
    nodes: NodeChange
    """Number of nodes."""
    usdPerHour: PriceChange
    """Price of all its nodes."""
    perNode: UsdPart | None
    """Price of one node; null if unknown."""
    spot: bool
    """See PoolPricePart, also for the following keys."""
    source: Literal["", "embedded", "refreshed", "live"]
    """Source of the price."""
    asOf: str
    """Date on which it was read."""
    place: str
    """Region, or zones, that it applies to."""
    rough: bool
    """Whether the price of another region is used."""
    unknown: str
    """Why it is unknown; empty if it is known."""


class NodeChange(TypedDict):
    """Nodes of a pool."""

    before: int
    """Nodes that are up."""
    after: int
    """Nodes including those that an autoscaler starts."""


class PriceSum(TypedDict):
    """Total cost of the pools. With an unknown price the total is a lower bound."""

    usdPerHour: PriceSums
    """Totals of the pools whose price is known, without pools of other owners."""
    usdPerMonth: PriceSums
    """The same for 730 hours."""
    unknown: UnknownPrices
    """Pools that the totals omit."""
    rough: bool
    """Whether prices of other regions are included."""
    leavesOut: list[str]
    """What none of these prices includes."""
    notes: list[str]
    """Which prices could not be read, and why."""
