"""ConfigMaps and Secrets.

Source: kubernetes pkg/apis/core/validation (ValidateConfigMap, ValidateSecret and their updates).
"""

from __future__ import annotations

import re
from base64 import b64decode
from typing import TYPE_CHECKING

from gpukube_sandbox.kube.store.problems import bad_request
from gpukube_sandbox.kube.store.validation.fields import forbidden, invalid, required, too_long

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube_sandbox.kube.store.objects import JsonObject
    from gpukube_sandbox.kube.store.validation.fields import Cause

_LARGEST = 1 << 20
_LONGEST_KEY = 253
_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_KEY_RULE = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
    "'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_NEEDED = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
"""Type of a Secret -> its required keys."""
_ACCOUNT = "kubernetes.io/service-account.name"


def check_config_map(new: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    """Reject keys that are not file names, and more than 1 MiB."""
    size, binary = 0, new.get("binaryData") or {}
    for bag, sizes in (("data", _sizes(new)), ("binaryData", _decoded("ConfigMap", binary))):
        for key, length in sizes.items():
            size += length
            yield from _key(f"{bag}[{key}]", key)
            if bag == "data" and key in binary:
                yield invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
    if size > _LARGEST:
        yield too_long("", _LARGEST)
    yield from _unchanged(new, old, "data", "binaryData")


def check_secret(new: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    """Reject keys that are not file names, more than 1 MiB, and a type without its required keys."""
    sizes, kind = _decoded("Secret", new.get("data") or {}), new.get("type") or "Opaque"
    for key in sizes:
        yield from _key(f"data[{key}]", key)
    if sum(sizes.values()) > _LARGEST:
        yield too_long("data", _LARGEST)
    for key in _NEEDED.get(kind, ()):
        if key not in sizes:
            yield required(f"data[{key}]")
    if kind == "kubernetes.io/basic-auth" and not sizes.keys() & {"username", "password"}:
        yield required("data[username]")
        yield required("data[password]")
    annotations = (new.get("metadata") or {}).get("annotations") or {}
    if kind == "kubernetes.io/service-account-token" and not annotations.get(_ACCOUNT):
        yield required(f"metadata.annotations[{_ACCOUNT}]")
    if old is not None and (old.get("type") or "Opaque") != kind:
        yield invalid("type", kind, "field is immutable")
    yield from _unchanged(new, old, "data")


def _sizes(obj: JsonObject) -> dict[str, int]:
    return {key: len(str(value).encode()) for key, value in (obj.get("data") or {}).items()}


def _decoded(kind: str, bag: JsonObject) -> dict[str, int]:
    """Return the length of each value in bytes.

    Raises:
        ApiProblem: 400 if a value is not base64.
    """
    try:
        return {key: len(b64decode(value or "", validate=True)) for key, value in bag.items()}
    except ValueError:
        raise bad_request(f'{kind} in version "v1" cannot be handled as a {kind}: illegal base64 data') from None


def _key(field: str, key: str) -> Iterator[Cause]:
    if len(key) > _LONGEST_KEY:
        yield invalid(field, key, f"must be no more than {_LONGEST_KEY} characters")
    if not _KEY.fullmatch(key):
        yield invalid(field, key, _KEY_RULE)
    if key in {".", ".."}:
        yield invalid(field, key, f"must not be '{key}'")
    elif key.startswith(".."):
        yield invalid(field, key, "must not start with '..'")


def _unchanged(new: JsonObject, old: JsonObject | None, *bags: str) -> Iterator[Cause]:
    if old is None or not old.get("immutable"):
        return
    text = "field is immutable when `immutable` is set"
    if not new.get("immutable"):
        yield forbidden("immutable", text)
    for bag in bags:
        if (new.get(bag) or {}) != (old.get(bag) or {}):
            yield forbidden(bag, text)
