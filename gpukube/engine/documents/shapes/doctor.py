"""The shape of what the doctor says."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from gpukube.engine.documents.shapes.parts import (  # noqa: TC001 - schemas are made of these when that tool runs
    Diagnostic,
    MergedPart,
    ScopePart,
    ShardPart,
)


class AilmentPart(TypedDict):
    """One thing that is wrong."""

    check: str
    """The check that found it; stable and documented in docs/doctor.md."""
    rule: str
    """Number of the rule of `workload lint` that finds the same mistake in manifests, GPK719; empty where none does."""
    title: str
    """What that check looks for."""
    severity: Literal["error", "warning"]
    """error: keeps GPUs from being used, or will; warning: costs or risks something."""
    where: str
    """Node, object or pool."""
    seen: str
    """What is wrong, with the value seen."""
    evidence: list[str]
    """Further lines that were seen."""
    consequence: str
    """What comes of it."""
    remedy: str
    """The exact command, or what to write."""
    link: str
    """Where this is documented."""
    fix: str | None
    """What --fix would do about it; null where somebody has to decide."""


class SkippedPart(TypedDict):
    """A check that could not be made."""

    check: str
    """Its id."""
    reading: str
    """What could not be read for it."""


class PatientPart(TypedDict):
    """One cluster."""

    cluster: str
    """Its key."""
    made: int
    """How many checks were made."""
    ailments: list[AilmentPart]
    """What they found, errors first."""
    skipped: list[SkippedPart]
    """Checks that could not be made."""
    mended: list[str]
    """What --fix did."""
    unmended: list[Diagnostic]
    """Why --fix could do no more."""
    errors: list[Diagnostic]
    """What could not be read, and why."""


class DoctorDocument(TypedDict):
    """What the doctor says of all clusters."""

    schemaVersion: Literal[1]
    """Changes when the meaning of a key does."""
    kind: Literal["Doctor"]
    """Of this document."""
    exitCode: int
    """Of the command."""
    summary: dict[str, int]
    """Severity -> ailments."""
    clusters: list[PatientPart]
    """Each cluster."""
    shard: NotRequired[ShardPart]
    """Which part of a fleet this is; only of a run with --shard."""
    merged: NotRequired[MergedPart]
    """Of which shards this was put together; only of what `report merge` writes."""
    scope: NotRequired[ScopePart]
    """What the run was of."""
