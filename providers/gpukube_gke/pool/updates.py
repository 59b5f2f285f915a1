"""The effect of changing each field of a live GKE pool, with its source.

In scope: the lookup. Out of scope: the rows (`fields`, `members`), sending an update (`change`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core import binding
from gpukube.core.values import UpdateRow
from gpukube_gke.pool.fields import BINDINGS
from gpukube_gke.pool.members import MEMBERS
from gpukube_gke.pool.native import native_path

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.fields import FieldPath
    from gpukube.core.values import Change

INTENT_ROWS: Final[Mapping[FieldPath, UpdateRow]] = {row.path: row.row for row in BINDINGS}
"""Rows of the portable fields of `Desired.fields`."""

NATIVE_ROWS: Final[Mapping[FieldPath, UpdateRow]] = {
    path: UpdateRow(path, effect.kind, effect.sentence, effect.call, effect.source)
    for path, effect in ((native_path(name), member.effect) for name, member in MEMBERS.items())
    if effect is not None
}
"""Rows of the native fields, one per field of `native.NATIVE`; that of the metadata covers each of its keys."""
_ROWS: Final[Mapping[FieldPath, UpdateRow]] = {**NATIVE_ROWS, **INTENT_ROWS}


def find_row(change: Change) -> UpdateRow:
    """Return the effect of a change; a field without a row is refused, never guessed."""
    row = binding.find_row(_ROWS, {}, change.field)
    if row is None:
        return UpdateRow(change.field, "refused", "the effect of changing this field is not documented", "", "")
    return binding.adjusted(BINDINGS, change, row)
