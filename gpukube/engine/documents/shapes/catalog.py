"""The shapes of what `gpukube catalog` says."""

from __future__ import annotations

from typing import Literal, TypedDict

from gpukube.engine.documents.shapes.parts import (  # noqa: TC001 - schemas are made of these when that tool runs
    Diagnostic,
    GpuModel,
)


class PricePart(TypedDict):
    """A price: for Linux, one node or one device, without tax. It is no offer, and proves no capacity."""

    usdPerHour: float
    """US dollars per hour."""
    region: str
    """Where it holds."""
    date: str
    """The day it was read, YYYY-MM-DD."""


class StockPart(TypedDict):
    """Data of a refresh that is in use."""

    provider: str
    """Cloud."""
    region: str
    """The region that was asked."""
    date: str
    """The day it was read, YYYY-MM-DD."""
    types: int
    """GPU instance types that the cloud offers there."""


class MachinePart(TypedDict):
    """One GPU instance type; null is unknown, never zero."""

    provider: str
    """Cloud."""
    instanceType: str
    """As the cloud spells it; n1-* is a GPU that is attached to a machine of that series."""
    gpu: GpuModel
    """Its GPUs."""
    gpuMemoryGiB: float
    """Nominal memory of each GPU, or of the share."""
    vcpus: int | None
    """Of one node."""
    memoryGiB: float | None
    """Main memory of one node."""
    arch: Literal["amd64", "arm64"]
    """CPU architecture."""
    mig: bool | None
    """Whether its owner can cut the GPUs on this cloud; null where that is not confirmed, and refused."""
    accelerator: str
    """Accelerator type of Google Cloud; empty elsewhere."""
    localSsdGiB: float | None
    """Disks that come with it."""
    status: Literal["current", "legacy", "preview", "retired", "unknown"]
    """retired is refused; preview is used only when named; legacy and unknown are used with a warning."""
    notes: str
    """What to know besides."""
    successor: str
    """What to use in place of a retired type; empty where not known."""
    price: PricePart | None
    """On demand."""
    spot: PricePart | None
    """As spot."""
    source: Literal["embedded", "refreshed"]
    """Whether a refresh has seen it."""
    date: str
    """Day of that refresh, or of the embedded table."""
    regions: list[str]
    """Refreshed regions that offer it."""
    missing: list[str]
    """Refreshed regions of its cloud that do not."""
    restricted: str
    """Why this account cannot have it there; empty when nothing is said against it."""


class CatalogListDocument(TypedDict):
    """GPU instance types."""

    schemaVersion: Literal[1]
    """The meaning of a key never changes within a version; new keys may come."""
    kind: Literal["CatalogList"]
    """`catalog list`."""
    embedded: str
    """Date of the embedded table, YYYY-MM-DD."""
    refreshed: list[StockPart]
    """Refreshed data in use; empty when all is embedded."""
    region: str
    """Region that was asked for; empty for none."""
    machines: list[MachinePart]
    """By cloud, GPU and price."""
    leftOut: dict[str, int]
    """Reason -> how many types fit the filters and are not shown."""


class OtherPart(TypedDict):
    """A machine that fits and was not chosen."""

    instanceType: str
    """As the cloud spells it."""
    why: str
    """What speaks against it."""


class FoundPart(TypedDict):
    """What one cloud has."""

    provider: str
    """Cloud."""
    machine: MachinePart | None
    """The machine that `gpu: {model, count}` means; null when there is none."""
    why: str
    """Why this one, or why none."""
    rejected: list[OtherPart]
    """The others with these GPUs."""
    candidates: list[MachinePart]
    """Where there is none: what comes nearest."""


class CatalogFindDocument(TypedDict):
    """The instance type of each cloud for a GPU model and a number."""

    schemaVersion: Literal[1]
    """The meaning of a key never changes within a version; new keys may come."""
    kind: Literal["CatalogFind"]
    """`catalog find --gpu`."""
    embedded: str
    """Date of the embedded table, YYYY-MM-DD."""
    refreshed: list[StockPart]
    """Refreshed data in use; empty when all is embedded."""
    asked: GpuModel
    """What was looked for."""
    clouds: list[FoundPart]
    """Each cloud."""


class SlicePart(TypedDict):
    """One kind of device, on the machine where it is cheapest per device."""

    kind: Literal["gpu", "share", "mig"]
    """A whole GPU, a share that the cloud sells, or a MIG slice."""
    profile: str
    """MIG profile; empty otherwise."""
    memoryGB: float
    """Nominal, the number in the name; usable memory is a little less."""
    perNode: int
    """Devices of one node."""
    resources: dict[Literal["single", "mixed"], str]
    """MIG strategy -> what a pod asks for; without MIG it is the same whatever the strategy."""
    confidence: str
    """How well the profile's geometry is known; empty without MIG."""
    price: PricePart | None
    """Of one device on demand: that of the node divided by its devices."""
    machine: MachinePart
    """The machine."""


class CatalogSlicesDocument(TypedDict):
    """Devices with at least so much GPU memory."""

    schemaVersion: Literal[1]
    """The meaning of a key never changes within a version; new keys may come."""
    kind: Literal["CatalogSlices"]
    """`catalog find --slice-memory`."""
    embedded: str
    """Date of the embedded table, YYYY-MM-DD."""
    refreshed: list[StockPart]
    """Refreshed data in use; empty when all is embedded."""
    atLeastGB: float
    """What was asked for."""
    slices: list[SlicePart]
    """Smallest first, then the cheapest; one per cloud, GPU and kind."""


class ProfilePart(TypedDict):
    """One MIG profile of a machine's GPU."""

    name: str
    """As NVIDIA writes it."""
    memoryGB: int
    """The number in the name."""
    perGpu: int
    """Instances of one GPU."""
    perNode: int
    """Instances of one node."""
    available: bool
    """Whether this cloud makes it on this machine."""
    resources: dict[Literal["single", "mixed"], str]
    """MIG strategy -> what a pod asks for; empty where the cloud does not make it."""
    confidence: str
    """How well the geometry is known."""


class FactPart(TypedDict):
    """Something to know of a machine on its cloud."""

    text: str
    """The fact."""
    source: str
    """Where it is documented."""


class CatalogTypeDocument(TypedDict):
    """One instance type in full."""

    schemaVersion: Literal[1]
    """The meaning of a key never changes within a version; new keys may come."""
    kind: Literal["CatalogType"]
    """`catalog show`."""
    embedded: str
    """Date of the embedded table, YYYY-MM-DD."""
    refreshed: list[StockPart]
    """Refreshed data in use; empty when all is embedded."""
    machines: list[MachinePart]
    """The type; several where GPUs of several models or numbers can be attached."""
    computeCapability: str
    """Of the GPU; empty where there are several."""
    resources: dict[str, int]
    """What one node shows while its GPUs are neither cut nor shared."""
    profiles: list[ProfilePart]
    """MIG profiles of the GPU, smallest first."""
    mixes: list[list[str]]
    """The fullest mixes of plain profiles on one GPU, whether this cloud makes them or not."""
    facts: list[FactPart]
    """Drivers, images, sharing."""


class RefreshedPart(TypedDict):
    """What a refresh did for one region."""

    provider: str
    """Cloud."""
    region: str
    """The region that was asked."""
    refreshed: bool
    """Whether its data is new; otherwise the former stays."""
    types: int
    """GPU instance types it holds now."""
    prices: int
    """How many of them have a price that was read live, now or before."""
    added: list[str]
    """Types that the embedded table does not know."""
    notes: list[str]
    """What could not be read, and what stands in for it."""
    kept: str
    """Day of the data that stays after a failure; empty where there is none."""
    errors: list[Diagnostic]
    """Why it failed; empty when it did not."""


class CatalogRefreshDocument(TypedDict):
    """What a refresh did."""

    schemaVersion: Literal[1]
    """The meaning of a key never changes within a version; new keys may come."""
    kind: Literal["CatalogRefresh"]
    """`catalog refresh`."""
    exitCode: int
    """Of the command."""
    file: str
    """Where the data is kept."""
    clouds: list[RefreshedPart]
    """Each region."""
