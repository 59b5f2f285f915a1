"""The field table: one row per field of a cloud, and everything derived from the rows.

A `Binding` describes one field: its value from the spec, its path in the API's form of a pool, how to read it from a
live pool, what a change does, and how well the cloud supports it. The rows yield the body of a create request, the
comparable fields of both sides, the updatability table, the API members that the escape hatch must not set, and the
abilities. Pure.

In scope: rows, and what is derived from them. Out of scope: any cloud; update requests, because each cloud groups
changes into calls differently (`change` of each provider).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Generic, TypeVar, get_args

from gpukube.core.fields import FieldPath, known, label
from gpukube.core.jsontree import at, merge_into, strings
from gpukube.core.owners.labels import ADVERTISER_LABEL
from gpukube.core.values import Change, TaintEffect, UpdateRow

if TYPE_CHECKING:
    from gpukube.core.values import Ability, Target, UpdateKind

ANY: Final = "*"
"""Last step of a path that matches every key: labels, tags."""
_ADVERTISER: Final = label(ADVERTISER_LABEL)


@dataclass(frozen=True, slots=True)
class Draft:
    """A pool being translated into a request.

    Attributes:
        target: What is declared.
        labels: Node labels as sent, including those that gpukube adds.
    """

    target: Target
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Effect:
    """What a change of a field does to a live pool, as in UpdateRow."""

    kind: UpdateKind
    sentence: str
    source: str
    call: str = ""


DraftT = TypeVar("DraftT", bound=Draft)
Live = TypeVar("Live")


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding(Generic[DraftT, Live]):
    """One field on one cloud.

    Attributes:
        path: The field; ("labels", "*") matches every label, and then `get` and `read` return mappings. A row without
            `get`, `read`, and `wire` describes changes of a single key of such a mapping.
        effect: What a change does to a live pool.
        wire: Its path in the body of a pool, with a number for the single item of a list; () if `write` returns several
            members, or if the body does not contain it.
        get: Returns the comparable value that a spec declares; None for the cloud's default.
        write: Returns the value at `wire` if it differs from the comparable one; None is not sent. Without `wire`, a
            tree to merge into the body.
        read: Returns the comparable value of a live pool; by default the value at `wire`.
        members: API members that it sets; by default the one at `wire`.
        spec: What to write in the spec instead of these members; by default the field.
        ability: How well the cloud supports it; None if another feature covers it.
        feature: Name of that feature; by default the field.
        adjust: Adjusts the row to the old and new value of a change.
        words: Values of `read` that gpukube knows; any other live value is shown verbatim, and changing it is refused.
            Empty if any value is valid.
    """

    path: FieldPath
    effect: Effect
    wire: tuple[str | int, ...] = ()
    get: Callable[[DraftT], object] | None = None
    write: Callable[[DraftT], object] | None = None
    read: Callable[[Live], object] | None = None
    members: tuple[str, ...] | None = None
    spec: str = ""
    ability: Ability | None = None
    feature: str = ""
    adjust: Callable[[Change, UpdateRow], UpdateRow] | None = None
    words: frozenset[str] = frozenset()

    @property
    def row(self) -> UpdateRow:
        """Row of the updatability table."""
        return UpdateRow(self.path, self.effect.kind, self.effect.sentence, self.effect.call, self.effect.source)


def body(bindings: Iterable[Binding[DraftT, Live]], draft: DraftT) -> dict[str, object]:
    """Return the request body of a pool, in the order of the rows."""
    found: dict[str, object] = {}
    for binding in bindings:
        make = binding.write or (binding.get if binding.wire else None)
        value = make(draft) if make else None
        if value is not None:
            for step in reversed(binding.wire):
                value = [value] if isinstance(step, int) else {step: value}
            if isinstance(value, (dict, Mapping)):  # testing dict first is faster
                merge_into(found, value)
    return found


def desired_fields(bindings: Iterable[Binding[DraftT, Live]], draft: DraftT) -> dict[FieldPath, object]:
    """Return the comparable fields of a declared pool, in the order of the rows."""
    fields = _fields((b.path, b.get(draft)) for b in bindings if b.get)
    return {path: value for path, value in fields.items() if value is not None}


def observed_fields(
    bindings: Iterable[Binding[DraftT, Live]], live: Live, native: Mapping[str, object]
) -> dict[FieldPath, object]:
    """Return the comparable fields of a live pool.

    Args:
        bindings: The rows.
        live: Argument of `read`.
        native: The API's form of the pool, in which `wire` is a path.
    """
    return known(
        _fields((b.path, b.read(live) if b.read else at(native, *b.wire)) for b in bindings if b.read or b.wire)
    )


def _fields(found: Iterable[tuple[FieldPath, object]]) -> dict[FieldPath, object]:
    fields: dict[FieldPath, object] = {}
    for path, value in found:
        if path[-1] == ANY:
            keyed = value if isinstance(value, (dict, Mapping)) else {}
            fields |= {FieldPath(*path[:-1], str(key)): one for key, one in keyed.items()}
        else:
            fields[path] = value
    return fields


def find_row(
    rows: Mapping[FieldPath, UpdateRow], native: Mapping[FieldPath, UpdateRow], path: FieldPath
) -> UpdateRow | None:
    """Return the row of a field: its own, one that matches every key of its parent, or that of its native member."""
    if path in rows:
        return rows[path]
    above = (rows.get(FieldPath(*path[:steps], ANY)) for steps in range(len(path) - 1, 0, -1))
    row = next((row for row in above if row), None) or native.get(path) or native.get(FieldPath(*path[:2]))
    return replace(row, field=path) if row else None


def adjusted(bindings: Iterable[Binding[DraftT, Live]], change: Change, row: UpdateRow) -> UpdateRow:
    """Return the row of a change, adjusted to its old and new value."""
    if change.field == _ADVERTISER and "dra" in (change.old, change.new):
        return _renewed(row)
    binding = next((b for b in bindings if b.path == row.field), None)
    known = binding.words if binding else frozenset()
    if known and change.old is not None and change.old not in known and change.new in (None, *known):
        return unknown_word(change.old, row)
    return binding.adjust(change, row) if binding and binding.adjust else row


def adjust_taints(change: Change, row: UpdateRow) -> UpdateRow:
    """Return the row of a change of taints: a new NoExecute evicts pods; unknown effects are refused."""
    old, new = strings(change.old), strings(change.new)
    if unknown := next((taint for taint in old if taint.rpartition(":")[2] not in get_args(TaintEffect)), ""):
        return unknown_word(unknown, row)
    if any(taint.endswith(":NoExecute") for taint in {*new} - {*old}):
        return replace(row, kind="disruptive", sentence="a new NoExecute taint evicts the pods that do not tolerate it")
    return row


def _renewed(row: UpdateRow) -> UpdateRow:
    """Return the row of a change of the advertiser from or to the DRA driver, which renews the nodes on every cloud.

    The two count devices without each other: with running pods on the nodes, a new pod would get a GPU that is in use
    (docs: eks/device-management-nvidia-dra-device-plugin).
    """
    sentence = (
        "the DRA driver and a device plugin do not know each other's pods and would allocate a GPU twice, so the nodes "
        "are new; if somebody changed the label of this pool by hand, change it back there"
    )
    source = "docs: eks/device-management-nvidia-dra-device-plugin"
    return replace(row, kind="replace", sentence=sentence, call="", source=source)


def unknown_word(live: object, row: UpdateRow) -> UpdateRow:
    """Refuse to change a live value that gpukube does not know: the consequences are unknown."""
    sentence = f'the live value "{live}" is unknown to this version of gpukube: change it with the cloud\'s own tool'
    return replace(row, kind="refused", sentence=sentence, call="")


def managed_members(bindings: Iterable[Binding[DraftT, Live]]) -> dict[str, str]:
    """Return the API members that the rows set -> the field of the spec to write instead."""
    found: dict[str, str] = {}
    for binding in bindings:
        wire = ".".join(step for step in binding.wire if isinstance(step, str))
        members = (wire,) if binding.members is None and wire else binding.members or ()
        field = FieldPath(*binding.path[:-1]) if binding.path.key == ANY else binding.path
        found |= dict.fromkeys(members, binding.spec or str(field))
    return found


def abilities(bindings: Iterable[Binding[DraftT, Live]]) -> dict[str, Ability]:
    """Return how well the cloud supports each feature."""
    return {b.feature or str(b.path): b.ability for b in bindings if b.ability is not None}
