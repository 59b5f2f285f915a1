"""Validation of metadata.

Source: k8s.io/apimachinery pkg/api/validation/objectmeta.go, pkg/apis/meta/v1/validation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube_sandbox.kube.store.validation.fields import (
    dns_label,
    duplicate,
    forbidden,
    invalid,
    label_value,
    qualified_name,
    required,
    subdomain,
    too_long,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube_sandbox.kube.store.objects import JsonObject
    from gpukube_sandbox.kube.store.validation.fields import Cause


_STANDARD_FINALIZERS = frozenset({"kubernetes", "orphan", "foregroundDeletion"})
_MAX_ANNOTATIONS = 256 * 1024


def check_metadata(new: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    """Reject invalid names, labels, annotations, finalizers, and owners."""
    yield from _name(new)
    meta, before = new.get("metadata") or {}, (old or {}).get("metadata") or {}
    yield from check_marks(meta, "metadata")
    yield from _finalizers(meta, before)
    yield from _owners(list(meta.get("ownerReferences") or ()))


def _finalizers(meta: JsonObject, before: JsonObject) -> Iterator[Cause]:
    for at, name in enumerate(meta.get("finalizers") or ()):
        if "/" not in name and name not in _STANDARD_FINALIZERS:
            text = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid(f"metadata.finalizers[{at}]", name, text)
        elif before.get("deletionTimestamp") and name not in (before.get("finalizers") or ()):
            yield forbidden("metadata.finalizers", "no new finalizers can be added if the object is being deleted")


def _owners(owners: list[JsonObject]) -> Iterator[Cause]:
    for at, owner in enumerate(owners):
        for key in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(key):
                yield required(f"metadata.ownerReferences[{at}].{key}", "must not be empty")
    if sum(bool(owner.get("controller")) for owner in owners) > 1:
        yield invalid("metadata.ownerReferences", owners, "Only one reference can have Controller set to true")
    if len({(owner.get("uid"), owner.get("name")) for owner in owners}) < len(owners):
        yield duplicate("metadata.ownerReferences", [owner.get("uid") for owner in owners])


def _name(new: JsonObject) -> Iterator[Cause]:
    name = str((new.get("metadata") or {}).get("name") or "")
    if not name:
        yield required("metadata.name", "name or generateName is required")
    elif str(new.get("apiVersion")).startswith("rbac.authorization.k8s.io/"):
        if "/" in name or "%" in name:
            yield invalid("metadata.name", name, f"may not contain '{'/' if '/' in name else '%'}'")
    else:
        yield from (dns_label if new.get("kind") == "Namespace" else subdomain)("metadata.name", name)


def check_marks(meta: JsonObject, path: str) -> Iterator[Cause]:
    """Reject invalid labels and annotations of an object or a template."""
    for key, value in (meta.get("labels") or {}).items():
        yield from qualified_name(f"{path}.labels", key)
        yield from label_value(f"{path}.labels", str(value))
    annotations = meta.get("annotations") or {}
    for key in annotations:
        yield from qualified_name(f"{path}.annotations", key.lower())
    if sum(len(key) + len(str(value)) for key, value in annotations.items()) > _MAX_ANNOTATIONS:
        yield too_long(f"{path}.annotations", _MAX_ANNOTATIONS)
