"""The fields of a live node pool that a person chose, as a spec writes them.

In scope: their form. Out of scope: which members a person chose, and GKE's defaults (`members`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core import fields as paths
from gpukube.core.fields import FieldPath, label
from gpukube.core.jsontree import at, text
from gpukube.core.owners import ADVERTISER_LABEL
from gpukube.gpu.catalog import find_machine, machines
from gpukube_gke.facts.local_ssd import fixed_disks
from gpukube_gke.pool.fields import DRA_LABEL
from gpukube_gke.pool.members import MEMBERS, POOL_MEMBERS
from gpukube_gke.pool.native import comparable
from gpukube_gke.pool.node_settings import DISKS_OF
from gpukube_gke.pool.purchase import FORM_FIELD, RUN_FIELD

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from gpukube.core.members import Chosen
    from gpukube.core.values import Observed

_DEFAULTS: Final[Mapping[FieldPath, object]] = {
    paths.CAPACITY_TYPE: "on-demand",
    paths.DRIVER: "cloud",
    paths.SCOPE: "pool",
    paths.PLACEMENT: "none",
}
"""Defaults of fields that no single member sets."""
_WITH_DEFAULT: Final = frozenset(
    member.spec for member in MEMBERS.values() if member.kind == "field" and member.defaults
)
_METADATA: Final = "config.metadata.*"
_OF_BUYING: Final = (
    FieldPath("gke", "config", "reservationAffinity"),
    FieldPath("gke", "config", "maxRunDuration"),
    FieldPath("gke", "upgradeSettings"),
    FieldPath("gke", "management", "autoRepair"),
    FieldPath("gke", "autoscaling", "locationPolicy"),
)
"""Native fields that follow from reserved capacity."""


def chosen_fields(observed: Observed) -> dict[FieldPath, object]:
    """Return the fields that a person chose, as a spec writes them."""
    chosen = POOL_MEMBERS.chosen(observed)
    named = {one.path for one in chosen}
    found = {
        path: value
        for path, value in observed.fields.items()
        if not (path.is_below("gke") or value == _DEFAULTS.get(path) or _is_default(path, named))
    }
    found |= {FieldPath("gke", *one.wire): _as_written(one) for one in chosen if one.kind == "native"}
    if observed.labels.get(ADVERTISER_LABEL) == "dra":  # both follow from it
        found.pop(label(DRA_LABEL), None)
        found.pop(paths.DRIVER, None)
    if paths.LOCAL_STORAGE in found:
        _leave_fixed_disks(found, observed)
    if FORM_FIELD in found:
        found = _with_form(found)
    if found.get(paths.SCOPE) == "zone":
        _per_zone(found, observed)
    gpu = found.pop(paths.GPU, None)
    if gpu and not _comes_with_machine(observed):
        count, _, accelerator = str(gpu).partition(" x ")
        model = next((str(m.model) for m in machines("gke") if m.accelerator == accelerator), accelerator)
        found |= {FieldPath("gpu", "model"): model, FieldPath("gpu", "count"): int(count)}
    return found


def _is_default(path: FieldPath, chosen: Collection[str]) -> bool:
    """Return whether GKE would fill in the value; labels, tags and sysctls never are defaults."""
    return str(path) in _WITH_DEFAULT and str(path) not in chosen


def _as_written(one: Chosen) -> object:
    return comparable(one.value, MEMBERS.get(".".join(one.wire), MEMBERS[_METADATA]).leaf)


def _leave_fixed_disks(found: dict[FieldPath, object], observed: Observed) -> None:
    """Leave out the number of local disks if the machine has just one."""
    count = fixed_disks(observed.instance_type)
    for path in (FieldPath("gke", *steps) for steps in DISKS_OF.values()):
        if found.get(path) == count:
            del found[path]


def _with_form(found: dict[FieldPath, object]) -> dict[FieldPath, object]:
    """Convert how machines are bought to the spec's form: "reservation NAME" and the short-lived forms."""
    form, _, name = str(found.pop(FORM_FIELD)).partition(" ")
    run = found.pop(RUN_FIELD, None)
    kept = {path: value for path, value in found.items() if not any(path.is_below(*one) for one in _OF_BUYING)}
    if form == "reservation":
        return kept | {FieldPath(*FORM_FIELD, form): name}
    kept = {path: value for path, value in kept.items() if not path.is_below("upgrade")}
    forms = ("flexStart", "queued") if form == "flexStartQueued" else (form,)
    written: dict[FieldPath, object] = {FieldPath(*FORM_FIELD, one): {} for one in forms}
    if run:  # the first of two forms has it for both
        written[FieldPath(*FORM_FIELD, forms[0])] = {"maxRunDuration": run}
    return kept | written


def _per_zone(found: dict[FieldPath, object], observed: Observed) -> None:
    """Per-zone bounds are written per zone, but compared as pool totals."""
    zones = observed.fields.get(paths.ZONES)
    many = len(zones) if isinstance(zones, tuple) else 1
    for path in (paths.LEAST, paths.MOST):
        if isinstance(total := found.get(path, 0 if path == paths.LEAST else None), int):
            found[path] = total // max(1, many)


def _comes_with_machine(observed: Observed) -> bool:
    machine = find_machine("gke", observed.instance_type)
    wire = at(observed.native, "config", "accelerators", 0)
    return machine is not None and machine.accelerator == text(wire, "acceleratorType") and "*" not in machine.name
