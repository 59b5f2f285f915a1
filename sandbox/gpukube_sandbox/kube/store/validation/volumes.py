"""Validation of a pod's volumes.

Source: kubernetes pkg/apis/core/validation/validation.go (ValidateVolumes, validateVolumeSource and the functions of
its sources, ValidateLocalNonReservedPath).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpukube_sandbox.kube.store.quantities import parse_quantity
from gpukube_sandbox.kube.store.validation.fields import (
    dns_label,
    duplicate,
    forbidden,
    invalid,
    no_parent_steps,
    one_of,
    relative_path,
    required,
)
from gpukube_sandbox.kube.store.validation.storage import check_claim_spec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from gpukube_sandbox.kube.store.objects import JsonObject
    from gpukube_sandbox.kube.store.validation.fields import Cause

_HOST_TYPES = (
    "", "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice",
)  # fmt: skip
_NEEDED = {
    "configMap": ("name",),
    "csi": ("driver",),
    "ephemeral": ("volumeClaimTemplate",),
    "hostPath": ("path",),
    "nfs": ("server", "path"),
    "persistentVolumeClaim": ("claimName",),
    "secret": ("secretName",),
}
_FILE_FIELDS = re.compile(r"metadata\.(name|namespace|uid|labels|annotations)(\['[^']+'\])?")
_MAX_MODE = 0o777
_OF_MODE = "must be a number between 0 and 0777 (octal), both inclusive"
_SHORTEST_TOKEN_S = 600


def check_volumes(volumes: list[JsonObject], path: str) -> Iterator[Cause]:
    """Reject volumes without exactly one source or with duplicate names, and incomplete sources."""
    seen = set()
    for at, volume in enumerate(volumes):
        place, name = f"{path}[{at}]", volume.get("name") or ""
        sources = [key for key, value in volume.items() if key != "name" and value is not None]
        if len(sources) > 1:
            yield forbidden(f"{place}.{sources[1]}", "may not specify more than 1 volume type")
        if not name:
            yield required(f"{place}.name")
        else:
            yield from dns_label(f"{place}.name", name)
        if name in seen:
            yield duplicate(f"{place}.name", name)
        seen.add(name)
        for kind in sources[:1]:
            yield from _source(kind, volume[kind], f"{place}.{kind}")


def _source(kind: str, source: JsonObject, place: str) -> Iterator[Cause]:
    for key in _NEEDED.get(kind, ()):
        if not source.get(key):
            yield required(f"{place}.{key}")
    mode = source.get("defaultMode")
    if mode is not None and not 0 <= mode <= _MAX_MODE:
        yield invalid(f"{place}.defaultMode", mode, _OF_MODE)
    yield from _RULES[kind](source, place) if kind in _RULES else ()


def _empty(source: JsonObject, place: str) -> Iterator[Cause]:
    size = source.get("sizeLimit")
    if size is not None and parse_quantity(size) < 0:
        yield forbidden(f"{place}.sizeLimit", "SizeLimit field must be a valid resource quantity")


def _host(source: JsonObject, place: str) -> Iterator[Cause]:
    yield from no_parent_steps(f"{place}.path", source.get("path") or "")
    yield from one_of(f"{place}.type", source.get("type"), _HOST_TYPES)


def _nfs(source: JsonObject, place: str) -> Iterator[Cause]:
    if not str(source.get("path") or "").startswith("/"):
        yield invalid(f"{place}.path", source.get("path") or "", "must be an absolute path")


def _ephemeral(source: JsonObject, place: str) -> Iterator[Cause]:
    claim = (source.get("volumeClaimTemplate") or {}).get("spec")
    if claim is not None:
        yield from check_claim_spec(claim, f"{place}.volumeClaimTemplate.spec")


def _items(items: list[JsonObject], path: str) -> Iterator[Cause]:
    for at, item in enumerate(items):
        place, mode = f"{path}[{at}]", item.get("mode")
        for key in ("key", "path"):
            if not item.get(key):
                yield required(f"{place}.{key}")
        yield from relative_path(f"{place}.path", item.get("path") or "")
        if mode is not None and not 0 <= mode <= _MAX_MODE:
            yield invalid(f"{place}.mode", mode, _OF_MODE)


def _files(files: list[JsonObject], path: str) -> Iterator[Cause]:
    for file in files:
        if not file.get("path"):
            yield required(f"{path}.path")
        yield from relative_path(f"{path}.path", file.get("path") or "")
        field = file.get("fieldRef")
        if field is not None and not _FILE_FIELDS.fullmatch(field.get("fieldPath") or ""):
            text = f"error converting fieldPath: field label not supported: {field.get('fieldPath')}"
            yield invalid(f"{path}.fieldRef.fieldPath", field.get("fieldPath"), text)
        elif field is None and file.get("resourceFieldRef") is None:
            yield required(path, "one of fieldRef and resourceFieldRef is required")


def _projected(sources: list[JsonObject], path: str) -> Iterator[Cause]:
    seen: set[str] = set()
    for at, source in enumerate(sources):
        place = f"{path}.sources[{at}]"
        for kind in ("secret", "configMap", "downwardAPI"):
            part = source.get(kind) or {}
            items = part.get("items") or []
            if kind == "downwardAPI":
                yield from _files(items, f"{place}.{kind}")
            elif kind in source:
                yield from [] if part.get("name") else [required(f"{place}.{kind}.name")]
                yield from _items(items, f"{place}.{kind}.items")
            for item in items:
                if item.get("path") in seen:
                    yield invalid(path, part.get("name") or item["path"], "conflicting duplicate paths")
                seen.add(item.get("path") or "")
        lasts = (source.get("serviceAccountToken") or {}).get("expirationSeconds")
        if lasts is not None and lasts < _SHORTEST_TOKEN_S:
            text = "may not specify a duration less than 10 minutes"
            yield invalid(f"{place}.serviceAccountToken.expirationSeconds", lasts, text)


_RULES: Mapping[str, Callable[[JsonObject, str], Iterator[Cause]]] = {
    "configMap": lambda source, place: _items(source.get("items") or [], f"{place}.items"),
    "downwardAPI": lambda source, place: _files(source.get("items") or [], place),
    "emptyDir": _empty,
    "ephemeral": _ephemeral,
    "hostPath": _host,
    "nfs": _nfs,
    "projected": lambda source, place: _projected(source.get("sources") or [], place),
    "secret": lambda source, place: _items(source.get("items") or [], f"{place}.items"),
}
"""Source of a volume -> its rules."""
