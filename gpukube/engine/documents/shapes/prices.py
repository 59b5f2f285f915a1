"""The shape of prices in documents: list prices per hour, in US dollars. None of them is a bill."""

from __future__ import annotations

from typing import Literal, TypedDict


class UsdPart(TypedDict):
    """US dollars between two bounds; they are equal where one number is known."""

    min: float
    """With the fewest nodes, at the lowest price."""
    max: float
    """With the most nodes, at the highest price."""


class PriceChange(TypedDict):
    """What a pool costs per hour; null is unknown, and never zero."""

    before: UsdPart | None
    """With the nodes that it has now; zero when nothing is there."""
    after: UsdPart | None
    """With the nodes that are declared; zero when it is deleted."""


class PoolPricePart(TypedDict):
    """The price of a pool's machines. Disks, network, control planes, taxes and discounts are not in it."""

    usdPerHour: PriceChange
    """Of all nodes."""
    whileBothRun: UsdPart | None
    """Of a replace: old and new pool together, while both run with --replace surge; null otherwise, or when one of the
    two prices is unknown."""
    perNode: UsdPart | None
    """Of one node after; of one that goes where the pool is deleted."""
    perGpuHour: UsdPart | None
    """Of one physical GPU of it."""
    perDevice: UsdPart | None
    """Of one device of it: a GPU, an instance, a share. Null where nodes have several kinds of devices, or none."""
    device: str
    """Resource name of that device; empty when perDevice is null."""
    spot: bool
    """Whether these are spot prices, which change at any time."""
    source: Literal["", "embedded", "refreshed", "live"]
    """embedded: of gpukube's own table; refreshed: `gpukube catalog refresh`; live: asked now; empty: unknown."""
    asOf: str
    """Day on which it was read, YYYY-MM-DD; empty when unknown."""
    place: str
    """Region, or zones, for which the price holds; empty when unknown."""
    rough: bool
    """Whether the price of another region stands in, before or after."""
    unknown: str
    """Why a price is not known; empty when all are."""


class PriceSums(TypedDict):
    """Sums of the known prices."""

    before: UsdPart
    """Of the live pools."""
    after: UsdPart
    """Of the declared pools."""


class UnknownPrices(TypedDict):
    """How many pools are not in the sums, because their price is not known."""

    before: int
    """Of the live pools."""
    after: int
    """Of the declared pools."""


class FitPricePart(TypedDict):
    """The price of a pool that workloads go to, with the nodes that it has and then needs."""

    cluster: str
    """Key of the cluster."""
    pool: str
    """Name of the pool in the spec."""
    nodes: NodeChange
    """How many."""
    usdPerHour: PriceChange
    """Of all its nodes."""
    perNode: UsdPart | None
    """Of one node; null when unknown."""
    spot: bool
    """As of pools of a plan, as all that follows."""
    source: Literal["", "embedded", "refreshed", "live"]
    """Where the price is from."""
    asOf: str
    """Day on which it was read."""
    place: str
    """Region, or zones, for which it holds."""
    rough: bool
    """Whether the price of another region stands in."""
    unknown: str
    """Why it is not known; empty when it is."""


class NodeChange(TypedDict):
    """Nodes of a pool."""

    before: int
    """Nodes that are up."""
    after: int
    """With those that an autoscaler starts."""


class PriceSum(TypedDict):
    """What the pools cost together. With an unknown price the sum is a lower bound."""

    usdPerHour: PriceSums
    """Of the pools whose price is known; pools that are not ours left out."""
    usdPerMonth: PriceSums
    """The same for 730 hours."""
    unknown: UnknownPrices
    """Pools that are not in the sums."""
    rough: bool
    """Whether prices of other regions are among them."""
    leavesOut: list[str]
    """What is not in any of these prices."""
    notes: list[str]
    """Which prices could not be read, and why."""
