"""The shape of the document of `gpukube catalog mig`."""

from __future__ import annotations

from typing import Literal, TypedDict


class MigProfilePart(TypedDict):
    """One MIG profile of a GPU."""

    name: str
    """Name in NVIDIA's spelling."""
    memoryGB: int
    """The number in the name."""
    memoryMiB: int | None
    """Memory that the driver reports; null if no report is known."""
    perGpu: int
    """Instances per GPU."""
    resource: str
    """Resource that a pod requests under strategy mixed."""
    elsewhere: dict[str, str]
    """Other GPU -> name of the same fraction there."""
    confidence: str
    """How well the geometry is known."""


class CutPart(TypedDict):
    """GPUs with the same layout."""

    gpus: int
    """Number of GPUs."""
    layout: list[str]
    """Instances of one GPU, hardest to place first."""
    left: dict[str, int]
    """Profile -> number that still fits in addition, each on its own; empty for a full GPU."""
    mayBlock: bool
    """Whether instances created one by one in this order may be placed so that the last does not fit."""


class PackingPart(TypedDict):
    """GPUs for the requested instances."""

    wanted: dict[str, int]
    """Profile -> instances."""
    alike: bool
    """Whether all GPUs have one layout, as in a pool; there may then be more instances than requested."""
    gpus: int
    """Minimum number of GPUs."""
    cuts: list[CutPart]
    """Layouts of the GPUs."""


class FragmentPart(TypedDict):
    """A GPU with live instances."""

    live: list[str]
    """PROFILE@START of each instance."""
    left: dict[str, int]
    """Profile -> number that still fits, each on its own."""
    stranded: list[str]
    """Profiles that would fit if the same instances were placed again."""


class CatalogMigDocument(TypedDict):
    """The MIG geometry of one GPU, and the results for --want and --live."""

    schemaVersion: Literal[1]
    """The meaning of a key never changes within a version; new keys may come."""
    kind: Literal["CatalogMig"]
    """`catalog mig`."""
    model: str
    """The GPU."""
    profiles: list[MigProfilePart]
    """Profiles, smallest first."""
    mixes: list[list[str]]
    """The fullest mixes of plain profiles on one GPU."""
    packing: PackingPart | None
    """GPUs for the requested instances; null if none were requested."""
    fragment: FragmentPart | None
    """A GPU with live instances; null if none were given."""
