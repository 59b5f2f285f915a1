"""The shape of the doctor's document."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from gpukube.engine.documents.shapes.parts import (  # noqa: TC001 - the schema generator reads these at run time
    Diagnostic,
    MergedPart,
    ScopePart,
    ShardPart,
)


class AilmentPart(TypedDict):
    """One problem."""

    check: str
    """The check that found it; stable and documented in docs/doctor.md."""
    rule: str
    """Number of the `workload lint` rule for the same mistake in manifests, such as GPK719; empty if there is none."""
    title: str
    """What the check looks for."""
    severity: Literal["error", "warning"]
    """error: GPUs cannot be used, or soon will not be; warning: a cost or a risk."""
    where: str
    """Node, object or pool."""
    seen: str
    """What is wrong, including the observed value."""
    evidence: list[str]
    """Further observed lines."""
    consequence: str
    """What happens if it is not fixed."""
    remedy: str
    """The exact command, or what to write."""
    link: str
    """Documentation of the problem."""
    fix: str | None
    """What --fix would do; null if a person must decide."""


class SkippedPart(TypedDict):
    """A check that was skipped."""

    check: str
    """Id of the check."""
    reading: str
    """The reading that failed."""


class PatientPart(TypedDict):
    """One cluster."""

    cluster: str
    """Its key."""
    made: int
    """Number of checks that ran."""
    ailments: list[AilmentPart]
    """Problems found, errors first."""
    skipped: list[SkippedPart]
    """Checks that were skipped."""
    mended: list[str]
    """What --fix did."""
    unmended: list[Diagnostic]
    """Why --fix could do no more."""
    errors: list[Diagnostic]
    """What could not be read, and why."""


class DoctorDocument(TypedDict):
    """Findings of the doctor for all clusters."""

    schemaVersion: Literal[1]
    """Changes if the meaning of a key changes."""
    kind: Literal["Doctor"]
    """Kind of this document."""
    exitCode: int
    """Exit code of the command."""
    summary: dict[str, int]
    """Severity -> number of problems."""
    clusters: list[PatientPart]
    """Each cluster."""
    shard: NotRequired[ShardPart]
    """Part of a fleet that this covers; only in a run with --shard."""
    merged: NotRequired[MergedPart]
    """Shards that this was merged from; only in output of `report merge`."""
    scope: NotRequired[ScopePart]
    """What the run covered."""
