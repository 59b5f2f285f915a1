"""The shapes of what `explain` shows: the owners of a pool's driver and device plugin, and the meaning of a field."""

from __future__ import annotations

from typing import Literal, TypedDict

from gpukube.core.values import UpdateKind  # noqa: TC001 - the schema generator reads these at run time


class Fact(TypedDict):
    """A fact that the solver used."""

    fact: str
    """Subject: asked, machine, nodes, sharing, release, advertiser."""
    value: str
    """What was found."""
    source: str
    """Source: a position in the spec, a public source, objects of the cluster."""


class Row(TypedDict):
    """A row of the solver's tables that matched."""

    table: Literal["release", "driver", "plugin"]
    """Name of the table."""
    row: str
    """Name of the row; stable."""
    says: str
    """Its conclusion."""
    source: str
    """Public source of the rule."""


class Setting(TypedDict):
    """A setting that implements the decision."""

    kind: Literal["label", "field", "value"]
    """label: of the nodes; field: of the request; value: of the chart."""
    name: str
    """Name or path of the setting."""
    value: object
    """Its value."""
    why: str
    """Its purpose."""


class Refusal(TypedDict):
    """A reason why the decision is impossible."""

    code: str
    """Stable name of the problem (docs/codes.md)."""
    message: str
    """What is wrong."""
    why: str
    """The rule behind it; empty if obvious."""
    fix: str
    """What to do."""


class Alternative(TypedDict):
    """The result of another devicePlugin.owner."""

    asked: str
    """The other devicePlugin.owner."""
    devicePlugin: str | None
    """Who would advertise then; null if it is rejected."""
    row: str
    """The row that would match."""
    says: str
    """Its conclusion, or why it is rejected."""
    fix: str
    """What to do if it is rejected."""


class OwnerPart(TypedDict):
    """One pool on one cluster."""

    cluster: str
    """Key of the cluster."""
    pool: str
    """Name in the spec."""
    looked: bool
    """Whether the cluster itself was read (--live)."""
    driver: str | None
    """Who installs the driver; null if the pool is rejected."""
    devicePlugin: str | None
    """Who advertises nvidia.com/*: chart, operator, cloud or none; null if the pool is rejected."""
    reason: str
    """The answer in one line."""
    facts: list[Fact]
    """Facts that the answer is based on."""
    rows: list[Row]
    """The rows that matched, one for each table."""
    settings: list[Setting]
    """Settings that implement it."""
    refusals: list[Refusal]
    """Reasons against it."""
    alternatives: list[Alternative]
    """Other possible owners."""


class OwnerDocument(TypedDict):
    """A pool on all its clusters."""

    schemaVersion: Literal[1]
    """Changes if the meaning of a key changes."""
    kind: Literal["OwnerExplanation"]
    """Kind of this document."""
    pools: list[OwnerPart]
    """The pool on each of its clusters."""


class Faith(TypedDict):
    """How faithfully one cloud implements one feature."""

    provider: str
    """The cloud."""
    feature: str
    """The feature that the field requests."""
    fidelity: Literal["exact", "emulated", "missing"]
    """Whether the cloud supports it, or gpukube provides a substitute."""
    substitute: str
    """The substitute, if emulated; otherwise empty."""
    reason: str
    """Why."""


class Effect(TypedDict):
    """The effect of a change of the field on a live pool on one cloud."""

    provider: str
    """The cloud."""
    direction: str
    """Direction of the change (more, fewer), if it matters; otherwise empty."""
    kind: UpdateKind
    """disruptive: in place, but pods are disrupted; replace: with a new pool."""
    sentence: str
    """Human-readable effect."""
    source: str
    """Public source of the fact."""


class FieldPart(TypedDict):
    """One field, and those below it."""

    field: str
    """Path of the field, pools[].sharing.mig."""
    type: str
    """Type of its values."""
    required: bool
    """Whether it is required."""
    default: object
    """Value if it is omitted; null for the cloud's choice."""
    choices: list[str]
    """The only allowed values; empty if there are others."""
    known: list[str]
    """Known values from the catalog."""
    limits: str
    """Range, length or form."""
    description: str
    """What it means."""
    examples: list[object]
    """Example values."""
    providers: list[str]
    """Clouds that it applies to, if not all."""
    fidelity: list[Faith]
    """How each cloud implements it."""
    changes: list[Effect]
    """The effect of a change on each cloud."""
    fields: list[FieldPart]
    """Fields below it."""


class FieldDocument(FieldPart):
    """The requested field."""

    schemaVersion: Literal[1]
    """Changes if the meaning of a key changes."""
    kind: Literal["FieldExplanation"]
    """Kind of this document."""
