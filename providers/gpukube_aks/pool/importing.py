"""Selects the fields of a live agent pool that a person chose, without AKS's defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core import fields as paths
from gpukube.core.fields import FieldPath
from gpukube_aks.facts.fabric import is_confidential
from gpukube_aks.pool.fields import BINDINGS
from gpukube_aks.pool.members import MEMBERS, POOL_MEMBERS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from gpukube.core.values import Observed

DEFAULTS: Final[Mapping[FieldPath, Collection[object]]] = {
    **{row.path: MEMBERS[".".join(map(str, row.wire))].defaults for row in BINDINGS if row.wire and not row.read},
    **{FieldPath(*one.spec.split(".")): one.defaults for one in MEMBERS.values() if one.kind == "native"},
    paths.CAPACITY_TYPE: ("on-demand",),
    paths.DRIVER: ("cloud",),
    paths.PLACEMENT: ("none",),
}
"""Default values of a pool, as comparable fields: those of the members, and of fields that are read in another form."""


def chosen_fields(observed: Observed) -> dict[FieldPath, object]:
    """Return the fields that a person chose, in the spec's form.

    The disk type is omitted if AKS would choose the same one. The size alone makes machines confidential.
    """
    found = {path: value for path, value in observed.fields.items() if value not in DEFAULTS.get(path, ())}
    if paths.DISK_SIZE not in found and not any(
        one.path == str(paths.DISK_TYPE) for one in POOL_MEMBERS.chosen(observed)
    ):
        found.pop(paths.DISK_TYPE, None)
    return {**found, paths.CONFIDENTIAL: True} if is_confidential(observed.instance_type) else found
