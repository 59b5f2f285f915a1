"""The shape of what `gpukube catalog mig` says."""

from __future__ import annotations

from typing import Literal, TypedDict


class MigProfilePart(TypedDict):
    """One MIG profile of a GPU."""

    name: str
    """As NVIDIA writes it."""
    memoryGB: int
    """The number in the name."""
    memoryMiB: int | None
    """What the driver reports of it; null when no report was seen."""
    perGpu: int
    """Instances of one GPU."""
    resource: str
    """What a pod asks for under strategy mixed."""
    elsewhere: dict[str, str]
    """Other GPU -> what the same fraction is called there."""
    confidence: str
    """How well the geometry is known."""


class CutPart(TypedDict):
    """GPUs that are cut alike."""

    gpus: int
    """How many."""
    layout: list[str]
    """Instances of one GPU, those hardest to place first."""
    left: dict[str, int]
    """Profile -> how many of it still fit beside, each by itself; empty for a full GPU."""
    mayBlock: bool
    """Whether instances made one by one in this order may be placed so that the last finds no room."""


class PackingPart(TypedDict):
    """How wanted instances are had."""

    wanted: dict[str, int]
    """Profile -> instances."""
    alike: bool
    """Whether one layout cuts all GPUs, as in a pool; then there may be more instances than were wanted."""
    gpus: int
    """The fewest GPUs."""
    cuts: list[CutPart]
    """How they are cut."""


class FragmentPart(TypedDict):
    """A GPU with instances on it."""

    live: list[str]
    """PROFILE@START of each instance."""
    left: dict[str, int]
    """Profile -> how many of it still fit, each by itself."""
    stranded: list[str]
    """Profiles that would fit if the same instances were placed anew."""


class CatalogMigDocument(TypedDict):
    """The MIG geometry of one GPU, and what was asked about it."""

    schemaVersion: Literal[1]
    """The meaning of a key never changes within a version; new keys may come."""
    kind: Literal["CatalogMig"]
    """`catalog mig`."""
    model: str
    """The GPU."""
    profiles: list[MigProfilePart]
    """Smallest first."""
    mixes: list[list[str]]
    """The fullest mixes of plain profiles on one GPU."""
    packing: PackingPart | None
    """How the wanted instances are had; null when none were named."""
    fragment: FragmentPart | None
    """A GPU as it is; null when none was described."""
