"""The fields of a live node pool that a person chose, without GKE's defaults.

Source:
    Defaults: google.container.v1 NodePool and NodeConfig; the scopes are those of `gcloud container node-pools create`.
    A block of zero values is a default (terraform-google-modules/terraform-google-kubernetes-engine#2304).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core import fields as paths
from gpukube.core.fields import FieldPath
from gpukube.core.jsontree import at, text
from gpukube.gpu.catalog import find_machine, machines
from gpukube_gke.pool.purchase import FORM_FIELD, RUN_FIELD

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from gpukube.core.values import Observed

_SCOPES: Final = tuple(
    f"https://www.googleapis.com/auth/{name}"
    for name in (
        "devstorage.read_only",
        "logging.write",
        "monitoring",
        "service.management.readonly",
        "servicecontrol",
        "trace.append",
    )
)
DEFAULTS: Final[Mapping[FieldPath, Collection[object]]] = {
    paths.CAPACITY_TYPE: ("on-demand",),
    paths.DISK_SIZE: (100,),
    paths.DISK_TYPE: ("pd-balanced",),
    paths.IMAGE: ("COS_CONTAINERD",),
    paths.MAX_PODS: (110,),
    paths.MAX_SURGE: ("1", 1),
    paths.MAX_UNAVAILABLE: ("0", 0),
    paths.DRIVER: ("cloud",),
    paths.SCOPE: ("pool",),
    FieldPath("gke", "management", "autoRepair"): (True,),
    FieldPath("gke", "management", "autoUpgrade"): (True,),
    FieldPath("gke", "upgradeSettings", "strategy"): ("SURGE",),
    FieldPath("gke", "config", "serviceAccount"): ("default",),
    FieldPath("gke", "config", "oauthScopes"): (_SCOPES,),
    FieldPath("gke", "config", "shieldedInstanceConfig", "enableIntegrityMonitoring"): (True,),
}
"""Default values; false and 0 of a native field count as defaults too."""
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
    found = {path: value for path, value in observed.fields.items() if not _is_default(path, value)}
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


def _is_default(path: FieldPath, value: object) -> bool:
    return value in DEFAULTS.get(path, ()) or (path.is_below("gke") and value in (False, 0))


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
