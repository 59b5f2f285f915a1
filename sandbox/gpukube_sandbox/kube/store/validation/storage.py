"""Volume claims and storage classes.

Source: kubernetes pkg/apis/core/validation (ValidatePersistentVolumeClaimSpec), pkg/apis/storage/validation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube_sandbox.kube.store.quantities import parse_quantity
from gpukube_sandbox.kube.store.validation.fields import (
    forbidden,
    invalid,
    label_selector,
    one_of,
    qualified_name,
    required,
    subdomain,
    unsupported,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube_sandbox.kube.store.objects import JsonObject
    from gpukube_sandbox.kube.store.validation.fields import Cause

_ALONE = "ReadWriteOncePod"
_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", _ALONE)


def check_claim(new: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    """Reject a PersistentVolumeClaim without a size or access mode, and invalid changes."""
    spec = new.get("spec") or {}
    yield from check_claim_spec(spec, "spec")
    if old is None:
        return
    was = old.get("spec") or {}
    bound = (old.get("status") or {}).get("phase") == "Bound"
    free = {"volumeName", "volumeAttributesClassName", *(["resources"] if bound else ())}
    free |= set() if was.get("storageClassName") else {"storageClassName"}
    if any(was.get(key) != spec.get(key) for key in (was.keys() | spec.keys()) - free):
        text = (
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
        )
        yield forbidden("spec", text)


def check_claim_spec(spec: JsonObject, path: str) -> Iterator[Cause]:
    """Reject an invalid spec of a claim or a claim template."""
    modes, size = spec.get("accessModes") or [], ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if not modes:
        yield required(f"{path}.accessModes", "at least 1 access mode is required")
    for mode in modes:
        if mode not in _MODES:
            yield unsupported(f"{path}.accessModes", mode, _MODES)
    if _ALONE in modes and len(set(modes) & set(_MODES)) > 1:
        yield forbidden(f"{path}.accessModes", f"may not use {_ALONE} with other access modes")
    if size is None:
        yield required(f"{path}.resources[storage]")
    elif parse_quantity(size) <= 0:
        yield invalid(f"{path}.resources[storage]", str(size), "must be greater than zero")
    if spec.get("storageClassName"):
        yield from subdomain(f"{path}.storageClassName", str(spec["storageClassName"]))
    yield from label_selector(f"{path}.selector", spec.get("selector"))
    yield from one_of(f"{path}.volumeMode", spec.get("volumeMode"), ("Block", "Filesystem"))


def check_storage_class(new: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    """Reject a StorageClass without a provisioner, and changes of how it creates volumes."""
    if not new.get("provisioner"):
        yield required("provisioner")
    else:
        yield from qualified_name("provisioner", str(new["provisioner"]).lower())
    yield from one_of("reclaimPolicy", new.get("reclaimPolicy"), ("Delete", "Retain"))
    yield from one_of("volumeBindingMode", new.get("volumeBindingMode"), ("Immediate", "WaitForFirstConsumer"))
    if old is None:
        return
    for key in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"):
        if (old.get(key) or {}) != (new.get(key) or {}):
            yield invalid(key, new.get(key), "field is immutable")
