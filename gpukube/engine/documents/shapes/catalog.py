"""The shapes of the documents of `gpukube catalog`."""

from __future__ import annotations

from typing import Literal, TypedDict

from gpukube.engine.documents.shapes.parts import (  # noqa: TC001 - the schema generator reads these at run time
    Diagnostic,
    GpuModel,
)


class PricePart(TypedDict):
    """A price: Linux, one node or one device, without tax. Not a quote, and not proof of capacity."""

    usdPerHour: float
    """US dollars per hour."""
    region: str
    """Region that it applies to."""
    date: str
    """The day it was read, YYYY-MM-DD."""


class StockPart(TypedDict):
    """Refreshed data in use."""

    provider: str
    """Cloud."""
    region: str
    """Region that was read."""
    date: str
    """The day it was read, YYYY-MM-DD."""
    types: int
    """GPU instance types that the cloud offers there."""


class MachinePart(TypedDict):
    """One GPU instance type; null is unknown, never zero."""

    provider: str
    """Cloud."""
    instanceType: str
    """Type as the cloud spells it; n1-* is a GPU attached to a machine of that series."""
    gpu: GpuModel
    """Its GPUs."""
    gpuMemoryGiB: float
    """Nominal memory of each GPU, or of the share."""
    vcpus: int | None
    """vCPUs of one node."""
    memoryGiB: float | None
    """Main memory of one node."""
    arch: Literal["amd64", "arm64"]
    """CPU architecture."""
    mig: bool | None
    """Whether MIG is available on this cloud; null if that is unconfirmed, and then rejected."""
    accelerator: str
    """Accelerator type of Google Cloud; empty elsewhere."""
    localSsdGiB: float | None
    """Local disks of the machine."""
    status: Literal["current", "legacy", "preview", "retired", "unknown", "no-image"]
    """retired is rejected; preview is used only if named; legacy and unknown are used with a warning; no-image needs a
    node image of your own."""
    notes: str
    """Additional notes."""
    successor: str
    """Replacement for a retired type; empty if unknown."""
    price: PricePart | None
    """On-demand price."""
    spot: PricePart | None
    """Spot price."""
    source: Literal["embedded", "refreshed"]
    """Whether the data comes from a refresh."""
    date: str
    """Date of that refresh, or of the embedded table."""
    regions: list[str]
    """Refreshed regions that offer it."""
    missing: list[str]
    """Refreshed regions of its cloud that do not offer it."""
    restricted: str
    """Why this account cannot use it there; empty if nothing is known against it."""


class CatalogListDocument(TypedDict):
    """GPU instance types."""

    schemaVersion: Literal[1]
    """The meaning of a key never changes within a version; new keys may come."""
    kind: Literal["CatalogList"]
    """`catalog list`."""
    embedded: str
    """Date of the embedded table, YYYY-MM-DD."""
    refreshed: list[StockPart]
    """Refreshed data in use; empty if everything is embedded."""
    region: str
    """Requested region; empty for none."""
    machines: list[MachinePart]
    """Types by cloud, GPU and price."""
    leftOut: dict[str, int]
    """Reason -> number of types that match the filters but are not shown."""


class OtherPart(TypedDict):
    """A machine that fits but was not chosen."""

    instanceType: str
    """Type as the cloud spells it."""
    why: str
    """Why it was not chosen."""


class FoundPart(TypedDict):
    """What one cloud offers."""

    provider: str
    """Cloud."""
    machine: MachinePart | None
    """The machine that `gpu: {model, count}` selects; null if there is none."""
    why: str
    """Why this machine was chosen, or why there is none."""
    rejected: list[OtherPart]
    """Other machines with these GPUs."""
    candidates: list[MachinePart]
    """The closest matches, if there is no machine."""


class CatalogFindDocument(TypedDict):
    """The instance type of each cloud for a GPU model and count."""

    schemaVersion: Literal[1]
    """The meaning of a key never changes within a version; new keys may come."""
    kind: Literal["CatalogFind"]
    """`catalog find --gpu`."""
    embedded: str
    """Date of the embedded table, YYYY-MM-DD."""
    refreshed: list[StockPart]
    """Refreshed data in use; empty if everything is embedded."""
    asked: GpuModel
    """The query."""
    clouds: list[FoundPart]
    """Each cloud."""


class SlicePart(TypedDict):
    """One kind of device, on the machine where it is cheapest per device."""

    kind: Literal["gpu", "share", "mig"]
    """A whole GPU, a share that the cloud sells, or a MIG slice."""
    profile: str
    """MIG profile; empty otherwise."""
    memoryGB: float
    """Nominal memory, the number in the name; usable memory is slightly less."""
    perNode: int
    """Devices of one node."""
    resources: dict[Literal["single", "mixed"], str]
    """MIG strategy -> resource that a pod requests; without MIG it is the same for every strategy."""
    confidence: str
    """How well the profile's geometry is known; empty without MIG."""
    price: PricePart | None
    """On-demand price of one device: the node's price divided by its devices."""
    machine: MachinePart
    """The machine."""


class CatalogSlicesDocument(TypedDict):
    """Devices with at least this much GPU memory."""

    schemaVersion: Literal[1]
    """The meaning of a key never changes within a version; new keys may come."""
    kind: Literal["CatalogSlices"]
    """`catalog find --slice-memory`."""
    embedded: str
    """Date of the embedded table, YYYY-MM-DD."""
    refreshed: list[StockPart]
    """Refreshed data in use; empty if everything is embedded."""
    atLeastGB: float
    """Requested minimum memory."""
    slices: list[SlicePart]
    """Devices, smallest first, then cheapest; one per cloud, GPU and kind."""


class ProfilePart(TypedDict):
    """One MIG profile of a machine's GPU."""

    name: str
    """Name in NVIDIA's spelling."""
    memoryGB: int
    """The number in the name."""
    perGpu: int
    """Instances per GPU."""
    perNode: int
    """Instances per node."""
    available: bool
    """Whether this cloud supports it on this machine."""
    resources: dict[Literal["single", "mixed"], str]
    """MIG strategy -> resource that a pod requests; empty if the cloud does not support the profile."""
    confidence: str
    """How well the geometry is known."""


class FactPart(TypedDict):
    """A fact about a machine on its cloud."""

    text: str
    """The fact."""
    source: str
    """Source of the fact."""


class NetworkPart(TypedDict):
    """The network between the GPUs of several nodes."""

    kind: str
    """The cloud's name for it."""
    interfaces: int
    """Interfaces of one node for it; 0 if unknown."""
    cards: int
    """Network cards of one node; 0 if the cloud lists none."""


class DisksPart(TypedDict):
    """Local disks that a machine includes."""

    count: int
    """Number of disks."""
    sizeGB: int
    """Size of each, in 10^9 bytes."""


class CatalogTypeDocument(TypedDict):
    """One instance type in full."""

    schemaVersion: Literal[1]
    """The meaning of a key never changes within a version; new keys may come."""
    kind: Literal["CatalogType"]
    """`catalog show`."""
    embedded: str
    """Date of the embedded table, YYYY-MM-DD."""
    refreshed: list[StockPart]
    """Refreshed data in use; empty if everything is embedded."""
    machines: list[MachinePart]
    """The type; several entries if GPUs of different models or counts can be attached."""
    computeCapability: str
    """Compute capability of the GPU; empty if there are several."""
    resources: dict[str, int]
    """Resources of one node without MIG and sharing."""
    profiles: list[ProfilePart]
    """MIG profiles of the GPU, smallest first."""
    mixes: list[list[str]]
    """The fullest mixes of plain profiles on one GPU, whether or not this cloud supports them."""
    facts: list[FactPart]
    """Facts about drivers, images, sharing."""
    network: NetworkPart | None
    """Network for jobs of several nodes; null if the machine has none."""
    disks: DisksPart | None
    """Local disks; null if there are none, or if their number is a choice or unknown."""


class RefreshedPart(TypedDict):
    """Result of a refresh for one region."""

    provider: str
    """Cloud."""
    region: str
    """Region that was read."""
    refreshed: bool
    """Whether its data is new; otherwise the previous data stays."""
    types: int
    """GPU instance types in its data."""
    prices: int
    """Number of them with a price that was read from the cloud, now or earlier."""
    added: list[str]
    """Types that are not in the embedded table."""
    notes: list[str]
    """What could not be read, and what is used instead."""
    kept: str
    """Date of the previous data that stays after a failure; empty if there is none."""
    errors: list[Diagnostic]
    """Why it failed; empty if it did not."""


class CatalogRefreshDocument(TypedDict):
    """Result of a refresh."""

    schemaVersion: Literal[1]
    """The meaning of a key never changes within a version; new keys may come."""
    kind: Literal["CatalogRefresh"]
    """`catalog refresh`."""
    exitCode: int
    """Exit code of the command."""
    file: str
    """File that contains the data."""
    clouds: list[RefreshedPart]
    """Each region."""
