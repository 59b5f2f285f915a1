"""The shapes of what `explain` says: why the owners of a pool are who they are, and what a field is."""

from __future__ import annotations

from typing import Literal, TypedDict

from gpukube.core.values import UpdateKind  # noqa: TC001 - schemas are made of these when that tool runs


class Fact(TypedDict):
    """Something the solver went by."""

    fact: str
    """What it is about: asked, machine, nodes, sharing, release, advertiser."""
    value: str
    """What was found."""
    source: str
    """Where: a place in the spec, a public source, objects of the cluster."""


class Row(TypedDict):
    """A row of the solver's tables that matched."""

    table: Literal["release", "driver", "plugin"]
    """Which table."""
    row: str
    """Its name; stable."""
    says: str
    """What follows from it."""
    source: str
    """Public source of the rule."""


class Setting(TypedDict):
    """Something that is set to make it so."""

    kind: Literal["label", "field", "value"]
    """A label of the nodes, a field of the request, a value of the chart."""
    name: str
    """Its name or path."""
    value: object
    """What it is set to."""
    why: str
    """What for."""


class Refusal(TypedDict):
    """Why it cannot be."""

    code: str
    """Stable name of the problem (docs/codes.md)."""
    message: str
    """What is wrong."""
    why: str
    """The rule behind it; empty where it is plain."""
    fix: str
    """What to do."""


class Alternative(TypedDict):
    """What another devicePlugin.owner would come to."""

    asked: str
    """The devicePlugin.owner that would be asked for."""
    devicePlugin: str | None
    """Who would advertise then; null where it is refused."""
    row: str
    """The row that would match."""
    says: str
    """What follows from it, or why it is refused."""
    fix: str
    """What to do where it is refused."""


class OwnerPart(TypedDict):
    """One pool on one cluster."""

    cluster: str
    """Key of the cluster."""
    pool: str
    """Name in the spec."""
    looked: bool
    """Whether the cluster itself was looked at (--live)."""
    driver: str | None
    """Who installs the driver; null where the pool is refused."""
    devicePlugin: str | None
    """Who advertises nvidia.com/*: chart, operator, cloud or none; null where the pool is refused."""
    reason: str
    """The answer in one line."""
    facts: list[Fact]
    """What the answer stands on."""
    rows: list[Row]
    """The rows that matched, one for each table."""
    settings: list[Setting]
    """What makes it so."""
    refusals: list[Refusal]
    """What stands against it."""
    alternatives: list[Alternative]
    """What else could be asked for."""


class OwnerDocument(TypedDict):
    """A pool on all its clusters."""

    schemaVersion: Literal[1]
    """Changes when the meaning of a key does."""
    kind: Literal["OwnerExplanation"]
    """What this is."""
    pools: list[OwnerPart]
    """The pool on each of its clusters."""


class Faith(TypedDict):
    """How faithfully one cloud does one feature."""

    provider: str
    """The cloud."""
    feature: str
    """The feature that the field asks for."""
    fidelity: Literal["exact", "emulated", "missing"]
    """Whether the cloud does it, or gpukube by a substitute."""
    substitute: str
    """What is done instead, where it is emulated; else empty."""
    reason: str
    """Why."""


class Effect(TypedDict):
    """What a change of the field does to a live pool on one cloud."""

    provider: str
    """The cloud."""
    direction: str
    """Which change (more, fewer), where that makes a difference; else empty."""
    kind: UpdateKind
    """disruptive: in place, but pods suffer; replace: by a new pool."""
    sentence: str
    """What happens, for people."""
    source: str
    """Public source of the fact."""


class FieldPart(TypedDict):
    """One field, and those below it."""

    field: str
    """Its path, pools[].sharing.mig."""
    type: str
    """What it takes."""
    required: bool
    """Whether it must be written."""
    default: object
    """What stands for it when it is not; null for the cloud's choice."""
    choices: list[str]
    """The only words it takes; empty when others are possible."""
    known: list[str]
    """Words that the catalog offers."""
    limits: str
    """Range, length or form."""
    description: str
    """What it means."""
    examples: list[object]
    """Values as they would be written."""
    providers: list[str]
    """The clouds it is for, where not all."""
    fidelity: list[Faith]
    """What each cloud makes of it."""
    changes: list[Effect]
    """What a change of it does on each cloud."""
    fields: list[FieldPart]
    """Fields below it."""


class FieldDocument(FieldPart):
    """The field that was asked for."""

    schemaVersion: Literal[1]
    """Changes when the meaning of a key does."""
    kind: Literal["FieldExplanation"]
    """What this is."""
